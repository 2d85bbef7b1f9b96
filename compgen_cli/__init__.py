"""Commands of the package; each is a thin shell around a function of the library."""

import warnings

# of fairseq with PyTorch 2.15, as it is imported
warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", FutureWarning)
