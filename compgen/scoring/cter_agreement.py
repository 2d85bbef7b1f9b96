"""How well CTER's automatic verdicts agree with people's."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compgen.scoring import cter
from compgen.scoring.cter import Lexicon, Line
from compgen.text import read_lines

COLUMNS = ("source", "compound", "hypothesis", "error")


@dataclass(frozen=True)
class Agreement:
    """How well a judge finds the lines that people call wrong, in percent.

    Args:
        found: wrong lines that the judge calls wrong.
        false_alarms: right lines that the judge calls wrong.
        missed: wrong lines that the judge calls right.
    """

    found: int
    false_alarms: int
    missed: int

    @property
    def precision(self) -> float:
        """How many of the lines that the judge calls wrong are."""
        return _percent(self.found, self.found + self.false_alarms)

    @property
    def recall(self) -> float:
        """How many of the wrong lines the judge calls wrong."""
        return _percent(self.found, self.found + self.missed)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _percent(2 * self.found, 2 * self.found + self.false_alarms + self.missed)


def agreement(people: Sequence[bool], judged: Sequence[bool]) -> Agreement:
    """Compare verdicts.

    Args:
        people: whether a person calls each line wrong, shape ``(n,)``.
        judged: whether the judge does, shape ``(n,)``.
    """
    pairs = list(zip(people, judged, strict=True))
    return Agreement(
        pairs.count((True, True)), pairs.count((False, True)), pairs.count((True, False))
    )


def read_verdicts(path: Path | str, lexicon: Lexicon) -> tuple[list[Line], list[bool]]:
    """Read lines and people's verdicts, 1 for wrong and 0 for right.

    The file has columns separated by tabs and named in its first line: those of ``COLUMNS``, in any
    order, and any others.

    Raises:
        ValueError: if the file cannot be read, lacks a column or a verdict, or its lines cannot be
            judged (see :func:`cter.check_compounds` and :func:`cter.align`).
    """
    header, *rows = [row.split("\t") for row in read_lines(path)] or [[]]
    if lacking := [name for name in COLUMNS if name not in header]:
        raise ValueError(f"{path}: its first line does not name the column {lacking[0]!r}")
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise ValueError(f"{path}, line {number}: {len(row)} columns instead of {len(header)}")
        if row[header.index("error")] not in ("0", "1"):
            raise ValueError(
                f"{path}, line {number}: the verdict {row[header.index('error')]!r} is not 0 or 1"
            )
    sources, compounds, hypotheses, errors = (
        [row[header.index(name)] for row in rows] for name in COLUMNS
    )
    cter.check_compounds(compounds, lexicon, path, first=2)
    try:
        lines = cter.align(sources, compounds, hypotheses)
    except ValueError as error:
        raise ValueError(f"{path}, without its first line: {error}") from None
    return lines, [error == "1" for error in errors]


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
