"""Error rates of lines that were judged: of all, and by type, lengths and modifier."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from compgen.scoring.cter import TYPES, GroupOf, Line, five_by_five

#: The lengths that each bin ends with; Proto-Transformer's analysis also cuts at 13.
CONTEXT_BINS = {4: "0-4", 7: "5-7", 10: "8-10", 13: "11-13", inf: "14+"}
TITLES = {
    "type": "phrase",
    "compound_length": "compound length (words, a modifier's too)",
    "context_length": "context length (tokens outside the compound)",
    "modifier": "modifier (he liked, at the store, on the floor)",
}


@dataclass(frozen=True)
class CTER:
    """The error rates of some lines.

    Args:
        wrong: how many of the lines are wrong.
        n: how many lines there are.
        wrong_compounds: how many of their compounds are wrong in at least one of these lines.
        compounds: how many compounds they have: groups of lines by ``group_of``, CoGnition's of
            five.
    """

    wrong: int
    n: int
    wrong_compounds: int
    compounds: int

    @property
    def instance(self) -> float:
        """Wrong lines in percent."""
        return 100.0 * self.wrong / self.n if self.n else 0.0

    @property
    def aggregate(self) -> float:
        """Wrong compounds in percent."""
        return 100.0 * self.wrong_compounds / self.compounds if self.compounds else 0.0

    @property
    def numbers(self) -> dict[str, float]:
        """Both rates and the number of lines, as JSON has them."""
        return {"instance": self.instance, "aggregate": self.aggregate, "n": self.n}

    def row(self, name: str) -> str:
        """A row of :func:`table`."""
        return f"{name:12s}{self.instance:10.2f}{self.aggregate:11.2f}{self.n:8d}"


def rates(
    wrong: Sequence[bool], indices: Iterable[int] | None = None, group_of: GroupOf = five_by_five
) -> CTER:
    """Count errors.

    Args:
        wrong: for each line of the test set whether it is wrong, shape ``(n,)``.
        indices: the lines to count; by default all.
        group_of: which lines share a compound, by their index.
    """
    chosen = range(len(wrong)) if indices is None else list(indices)
    errors = [i for i in chosen if wrong[i]]
    return CTER(
        len(errors), len(chosen), len(set(map(group_of, errors))), len(set(map(group_of, chosen)))
    )


GROUPINGS: dict[str, Callable[[Line], Hashable]] = {
    "type": lambda line: line.type,
    "compound_length": lambda line: line.compound_length,
    "context_length": lambda line: next(
        name for end, name in CONTEXT_BINS.items() if line.context_length <= end
    ),
    "modifier": lambda line: "with" if "MOD" in line.atoms else "without",
}


def groups(
    lines: Sequence[Line],
    wrong: Sequence[bool],
    group_of: GroupOf = five_by_five,
    names: Iterable[str] = tuple(GROUPINGS),
) -> dict[str, dict[str, CTER]]:
    """The error rates of each group of lines, by each of some of ``GROUPINGS``.

    The lines of a compound can fall into several bins of context length: there its aggregate rate
    counts the compound in each, by the lines that are in it.

    Args:
        lines: all lines of the test set, shape ``(n,)``.
        wrong: for each whether it is wrong, shape ``(n,)``.
        group_of: which lines share a compound, by their index.
        names: by what they are grouped.
    """
    table: dict[str, dict[str, CTER]] = {}
    for name in names:
        members: dict[Hashable, list[int]] = {}
        for i, line in enumerate(lines):
            members.setdefault(GROUPINGS[name](line), []).append(i)
        order = TYPES.index if name == "type" else _leading_number
        table[name] = {
            str(k): rates(wrong, members[k], group_of)
            for k in sorted(members, key=order)  # type: ignore[arg-type]
        }
    return table


def _leading_number(key: object) -> tuple[int, str]:
    digits = str(key).rstrip("+").partition("-")[0]
    return (int(digits) if digits.isdigit() else 0, str(key))


def table(total: CTER, groups: Mapping[str, Mapping[str, CTER]]) -> str:
    """The rates for people to read, with an empty line below each part."""
    head = f"{'CTER in %':12s}{'instance':>10s}{'aggregate':>11s}{'lines':>8s}"
    parts = [[head, total.row("all")]]
    for name, members in groups.items():
        parts.append([TITLES[name], *(rate.row(f"  {key}") for key, rate in members.items())])
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


@dataclass(frozen=True)
class Judged:
    """Lines and the verdicts on them.

    Args:
        lines: of a test set, ``n`` of them.
        faults: what is wrong with each; nothing if it is right.
        group_of: which compound the line of an index belongs to.
    """

    lines: Sequence[Line]
    faults: Sequence[tuple[str, ...]]
    group_of: GroupOf

    @property
    def wrong(self) -> list[bool]:
        """Whether each line is wrong."""
        return list(map(bool, self.faults))

    def by_compound(self) -> list[list[bool]]:
        """Whether each line is wrong, the lines of a compound together."""
        found: dict[Hashable, list[bool]] = {}
        for i, wrong in enumerate(self.wrong):
            found.setdefault(self.group_of(i), []).append(wrong)
        return list(found.values())
