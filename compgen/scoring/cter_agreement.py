"""How well CTER's automatic verdicts agree with people's."""

from collections.abc import Sequence
from pathlib import Path

from compgen.scoring import cter
from compgen.scoring.cter import Lexicon, Line
from compgen.text import read_lines, table

COLUMNS = ("source", "compound", "hypothesis", "error")


def agreement(people: Sequence[bool], judged: Sequence[bool]) -> dict[str, float]:
    """Precision, recall and F1, in percent, of a judge that looks for what people call wrong.

    Args:
        people: whether a person calls each line wrong, shape ``(n,)``.
        judged: whether the judge does, shape ``(n,)``.
    """
    from sklearn.metrics import precision_recall_fscore_support  # takes its time

    found = precision_recall_fscore_support(people, judged, average="binary", zero_division=0)
    names = ("precision", "recall", "f1")
    return {name: 100 * float(value) for name, value in zip(names, found, strict=False)}


def read_verdicts(path: Path | str, lexicon: Lexicon) -> tuple[list[Line], list[bool]]:
    """Read lines and people's verdicts, 1 for wrong and 0 for right.

    The file has columns separated by tabs and named in its first line: those of ``COLUMNS``, in any
    order, and any others.

    Raises:
        ValueError: if the file cannot be read, lacks a column or a verdict, or its lines cannot be
            judged (see :func:`cter.check_compounds` and :func:`cter.align`).
    """
    rows = table(path, read_lines(path), COLUMNS)
    for number, (*_, error) in enumerate(rows, 2):
        if error not in ("0", "1"):
            raise ValueError(f"{path}, line {number}: the verdict {error!r} is not 0 or 1")
    sources, compounds, hypotheses, errors = ([row[i] for row in rows] for i in range(4))
    cter.check_compounds(compounds, lexicon, path, first=2)
    try:
        lines = cter.align(sources, compounds, hypotheses)
    except ValueError as error:
        raise ValueError(f"{path}, without its first line: {error}") from None
    return lines, [error == "1" for error in errors]
