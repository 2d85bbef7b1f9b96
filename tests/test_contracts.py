"""Which models fulfil what the tasks ask for."""

from fairseq.models.transformer import TransformerModel

from compgen_fairseq.contracts import HasPrototypes, TakesClasses
from compgen_fairseq.models.proto_transformer import ProtoTransformerModel
from compgen_fairseq.models.sq_transformer import SQTransformerModel
from compgen_fairseq.models.syntactic_attention import SyntacticAttentionModel


def test_models_with_classes() -> None:
    assert issubclass(SQTransformerModel, TakesClasses)
    assert issubclass(SyntacticAttentionModel, TakesClasses)
    assert not issubclass(TransformerModel, TakesClasses)


def test_models_with_prototypes() -> None:
    model = ProtoTransformerModel.__new__(ProtoTransformerModel)
    assert not isinstance(model, HasPrototypes)
    model.prototype_config = None
    assert isinstance(model, HasPrototypes)
