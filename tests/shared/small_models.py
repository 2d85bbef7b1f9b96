"""Flags of one small model of each kind."""

SIZES = [
    *("--encoder-layers", 1, "--decoder-layers", 1, "--encoder-embed-dim", 16),
    *("--encoder-ffn-embed-dim", 32, "--decoder-ffn-embed-dim", 32),
    *("--encoder-attention-heads", 2, "--decoder-attention-heads", 2),
]
CAT = [
    *("--encoder-layers", 2, "--encoder-embed-dim", 16, "--encoder-ffn-embed-dim", 32),
    *("--encoder-attention-heads", 2, "--codes", 8, "--max-positions", 96),
]
TRANSFORMER = ["--arch", "transformer", *SIZES, "--decoder-embed-dim", 16]
PROTO = ["--arch", "proto_transformer", *SIZES, "--decoder-embed-dim", 16]
PREDICTORS = ["--encoder-predictor-layers", 1, "--decoder-predictor-layers", 1]
SQ = ["--arch", "sq_transformer_scan", *SIZES, "--criterion", "structural_cross_entropy"]
MODELS = {
    "sal": [*SQ, *PREDICTORS],
    "srl": [*SQ, *PREDICTORS, "--attention", "srl"],
    "plain": [*SQ, "--attention", "plain"],
    "brown": [*SQ, "--code-classes", "brown"],
    "meanings": [*SQ, "--code-classes", "substitution", "--class-meanings", "own"],
    "cat": [
        *("--arch", "cat_transformer_scan", *SIZES, "--decoder-embed-dim", 16, "--codes", 8),
        *("--criterion", "composition_cross_entropy"),
    ],
    "proto": [*PROTO, "--prototype-stage1-epochs", 1],
    "syntactic": ["--arch", "syntactic_attention"],
}
