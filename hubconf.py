"""Trained models for ``torch.hub.load(FOLDER_OF_THIS_FILE, NAME, RUN, source="local")``.

Each takes the arguments of fairseq's ``from_pretrained``: the folder of the run, the checkpoint's
name (``checkpoint_file="checkpoint_best.pt"``) and the data folder (``data_name_or_path``).
"""

from typing import Any

import compgen_fairseq

dependencies = ["torch", "fairseq", "faiss"]


def sq_transformer(*args: Any, **kwargs: Any) -> Any:
    """SQ-Transformer and its plain backbone."""
    return compgen_fairseq.SQTransformerModel.from_pretrained(*args, **kwargs)


def syntactic_attention(*args: Any, **kwargs: Any) -> Any:
    """Syntactic Attention."""
    return compgen_fairseq.SyntacticAttentionModel.from_pretrained(*args, **kwargs)


def proto_transformer(*args: Any, **kwargs: Any) -> Any:
    """Proto-Transformer."""
    return compgen_fairseq.ProtoTransformerModel.from_pretrained(*args, **kwargs)


def cat_transformer(*args: Any, **kwargs: Any) -> Any:
    """A Transformer with CAT's encoder."""
    return compgen_fairseq.CATTransformerModel.from_pretrained(*args, **kwargs)
