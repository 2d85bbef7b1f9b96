"""The metrics that fairseq-generate's ``--scoring`` knows by name."""

from fairseq.dataclass import FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer

from compgen.scoring.exact_match import ExactMatch, exact_match, warn_of_lost_matches


@register_scorer("exact_match", dataclass=FairseqDataclass)
class ExactMatchScorer(BaseScorer):
    """fairseq-generate's ``--scoring exact_match``; it is fed detokenized sentences."""

    def result(self) -> ExactMatch:
        return exact_match(self.pred, self.ref)

    def score(self) -> float:
        return self.result().percent

    def result_string(self) -> str:
        warn_of_lost_matches(self.pred, self.ref)
        return str(self.result())
