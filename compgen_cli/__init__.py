"""Commands of the package; each is a thin shell around a function of the library."""

import warnings

# fairseq's import warns with PyTorch 2.15, before compgen_fairseq.compat.quieten is there
warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", FutureWarning)
