"""Trained models for ``torch.hub.load(FOLDER_OF_THIS_FILE, NAME, RUN, source="local")``.

Each takes the arguments of fairseq's ``from_pretrained``: the folder of the run, the checkpoint's
name (``checkpoint_file="checkpoint_best.pt"``) and the data folder (``data_name_or_path``).
"""

import compgen_fairseq

dependencies = ["torch", "fairseq", "faiss"]

sq_transformer = compgen_fairseq.SQTransformerModel.from_pretrained
syntactic_attention = compgen_fairseq.SyntacticAttentionModel.from_pretrained
proto_transformer = compgen_fairseq.ProtoTransformerModel.from_pretrained
cat_transformer = compgen_fairseq.CATTransformerModel.from_pretrained
