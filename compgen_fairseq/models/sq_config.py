"""Configuration and presets of SQ-Transformer."""

from dataclasses import dataclass
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from compgen.ranges import AT_LEAST_1, SHARE, SHARE_ABOVE_0, Range, ranges
from compgen_fairseq.modules.vector_quantizer import SIMILARITIES
from compgen_fairseq.options import option


@ranges(
    (AT_LEAST_1, ("encoder_predictor_layers", "decoder_predictor_layers")),
    (Range(2), ("source_codes", "target_codes")),
    (SHARE_ABOVE_0, ("predictor_share",)),
    (SHARE, ("code_ema_decay",)),
)
@dataclass
class SQTransformerConfig(FairseqDataclass):
    """Every option of ``--arch sq_transformer``. Sizes default to the paper's CoGnition model."""

    encoder_layers: int = option(6, "number of encoder layers")
    decoder_layers: int = option(6, "number of decoder layers")
    encoder_embed_dim: int = option(512, "width of the model (the decoder's is the same)")
    encoder_ffn_embed_dim: int = option(1024, "inner width of the encoder's FFN")
    decoder_ffn_embed_dim: int = option(
        1024, "inner width of the decoder's FFN and of every highway gate"
    )
    encoder_attention_heads: int = option(8, "heads in the encoder")
    decoder_attention_heads: int = option(8, "heads in the decoder")
    dropout: float = option(0.3, "dropout on embeddings and sublayer outputs")
    attention_dropout: float = option(0.0, "dropout on attention weights")
    activation_dropout: float = option(0.0, "dropout after the FFN's ReLU")
    share_decoder_input_output_embed: bool = option(
        False, "accepted so that fairseq's recipes run unchanged: the embeddings are tied anyway"
    )
    share_all_embeddings: bool = option(
        False, "one embedding table for source and target (needs a joined dictionary)"
    )
    max_source_positions: int = option(1024, "longest source sentence, in tokens")
    max_target_positions: int = option(1024, "longest target sentence, in tokens")
    attention: ChoiceEnum(["sal", "srl", "plain"]) = option(  # type: ignore[valid-type]
        "srl",
        "sal: systematic attention layer (queries and keys from the codes); srl: systematically "
        "regularized layer; plain: word stream only",
    )
    quantizer: Optional[ChoiceEnum(["sovq", "vq", "none"])] = option(  # type: ignore[valid-type]
        None,
        "sovq: vector quantization with an MMI objective; vq: without; none: no codes "
        "(default: sovq with sal and srl, none with plain)",
    )
    mmi: Optional[ChoiceEnum(["brown", "tokens", "none"])] = option(  # type: ignore[valid-type]
        None,
        "what p(z|context) reads: brown: the context's codes (variational Brown clustering); "
        "tokens: its word embeddings; none: no MMI term (default: brown with sovq, else none); the "
        "target's predictor also reads the encoder's output, as in the authors' code",
    )
    encoder_predictor_layers: int = option(3, "layers of the source side's p(z|context)")
    decoder_predictor_layers: int = option(6, "layers of the target side's p(z|context)")
    predictor_share: float = option(
        1.0,
        "share of each training batch's sentences that p(z|context) is trained on, drawn anew for "
        "either side; 1 as published, less is faster (docs/notes/speed.md)",
    )
    code_ema_decay: Optional[float] = option(
        None,
        "decay of the moving average of their words that draws the codes; 1: none (default: 0.999 "
        "with sal, 1 with srl, as the authors')",
    )
    sal_cross_attention: ChoiceEnum(["shared", "paper"]) = option(  # type: ignore[valid-type]
        "shared",
        "shared: the code stream queries the encoder's word stream once, for both residuals; "
        "paper: each stream queries its own (appendix A.5)",
    )
    source_codes: int = option(64, "size of the source side's codebook")
    target_codes: int = option(32, "size of the target side's codebook")
    posterior: ChoiceEnum(SIMILARITIES) = option(  # type: ignore[valid-type]
        "distance",
        "similarity of embeddings and codes in q(z|x): distance, as in the published runs, or "
        "cosine, as in the paper's appendix A.4 (unscaled: nearly uniform with many codes)",
    )
    code_classes: ChoiceEnum(  # type: ignore[valid-type]
        ["learned", "brown", "substitution"]
    ) = option(
        "learned",
        "learned: words find their codes by vector quantization, as published; brown: every "
        "word's code is its class by Brown clustering of the distinct training sentences, fixed "
        "from the start (no MMI terms, no predictors); substitution: the same with classes of "
        "exchangeable words; Brown clustering merges some if they are more than the codes; a model "
        "that is fine-tuned keeps the classes that it has",
    )
    class_meanings: ChoiceEnum(["free", "own"]) = option(  # type: ignore[valid-type]
        "free",
        "free: any word can help to choose any target word; own, beyond the paper: only the words "
        "of a class choose between the target words that they exchange (with --attention sal and "
        "--code-classes substitution)",
    )
    loss_recipe: ChoiceEnum(["scan", "cogs", "cognition"]) = option(  # type: ignore[valid-type]
        "cognition",
        "whose published weights of the loss terms --criterion structural_cross_entropy uses",
    )

    def resolve(self) -> None:
        """Fill in the options that follow from others; refuse what can't be.

        Raises:
            ValueError: on an impossible number or combination, naming the flags.
        """
        plain = self.attention == "plain"
        if self.quantizer is None:
            self.quantizer = "none" if plain else "sovq"
        if self.code_classes != "learned":
            if self.mmi not in (None, "none"):
                raise ValueError(
                    f"--mmi {self.mmi}: --code-classes {self.code_classes} has no MMI terms"
                )
            self.mmi = "none"
        elif self.mmi is None:
            self.mmi = "brown" if self.quantizer == "sovq" else "none"
        codes = "codes: --quantizer sovq or vq, not none"
        if not plain and self.quantizer == "none":
            raise ValueError(f"--attention {self.attention} needs {codes}")
        if (self.quantizer, self.mmi, self.code_classes) == ("sovq", "none", "learned"):
            raise ValueError(
                "--quantizer sovq needs an MMI term: --mmi brown or tokens "
                "(without one it is --quantizer vq)"
            )
        if self.quantizer != "sovq" and self.mmi != "none":
            raise ValueError(f"--mmi {self.mmi} needs --quantizer sovq, not {self.quantizer}")
        if self.code_ema_decay is None:
            self.code_ema_decay = 0.999 if self.attention == "sal" else 1.0
        elif self.quantizer == "none":
            raise ValueError(f"--code-ema-decay needs {codes}")
        variant = (self.attention, self.code_classes)
        if self.class_meanings == "own" and variant != ("sal", "substitution"):
            raise ValueError(
                "--class-meanings own goes with --attention sal and --code-classes substitution"
            )
        if self.sal_cross_attention == "paper" and self.attention != "sal":
            raise ValueError("--sal-cross-attention paper goes with --attention sal")
        if self.code_classes != "learned" and self.quantizer == "none":
            raise ValueError(f"--code-classes {self.code_classes} needs {codes}")


_SEMANTIC_PARSING = {
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_embed_dim": 256,
    "encoder_ffn_embed_dim": 512,
    "decoder_ffn_embed_dim": 512,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "decoder_predictor_layers": 2,
}
_WMT = {"source_codes": 16, "target_codes": 16}

#: The paper's appendix B.2: sizes, codebooks and variant of each data set; the predictors' depths
#: are those of the authors' code. Of IWSLT the paper has nothing: the codes are WMT's.
PRESETS: dict[str, dict[str, Any]] = {
    "sq_transformer_scan": {
        **_SEMANTIC_PARSING,
        "attention": "sal",
        "source_codes": 6,
        "target_codes": 4,
        "loss_recipe": "scan",
    },
    "sq_transformer_cogs": {
        **_SEMANTIC_PARSING,
        "source_codes": 32,
        "target_codes": 16,
        "loss_recipe": "cogs",
    },
    "sq_transformer_cognition": {},
    "sq_transformer_iwslt_de_en": {
        **_WMT,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
    },
    "sq_transformer_wmt_en_de": dict(_WMT),
    "sq_transformer_wmt_en_fr": dict(_WMT),
}
