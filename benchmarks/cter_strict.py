"""Published and strict CTER verdicts side by side, on right translations and on broken ones.

No human labels of CoGnition outputs are public.  So the references of CG-test stand for right
translations, and errors are made from them: of each reference that the published rules accept,
every kind of error below that applies makes one wrong translation.  What a reference gets wrong
itself counts as a false alarm here.

    COMPGEN_DATA=... python benchmarks/cter_strict.py
"""

import argparse
import os
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from compgen.scoring import cter
from compgen.scoring.cter_strict import StrictRules

Span = tuple[int, int]
COMMA = "，"  # noqa: RUF001


@dataclass(frozen=True)
class Tally:
    """How many translations there were and how many of them each judge called wrong."""

    total: int
    published: int
    strict: int

    def __str__(self) -> str:
        shares = (100 * n / self.total for n in (self.published, self.strict))
        return "".join(f"{share:11.2f}" for share in shares) + f"{self.total:9d}"


class Breaker:
    """Makes wrong translations out of right ones.

    Args:
        lexicon: the translations of the atoms.
        words: Chinese words, the more frequent the more often, to take decoys from.
        draw: the source of chance.
    """

    def __init__(self, lexicon: cter.Lexicon, words: Sequence[str], draw: random.Random) -> None:
        self.lexicon = lexicon
        self.draw = draw
        self.decoys = {
            atom: [
                word for word in words if any(a in word and a != word for a in alternatives if a)
            ]
            for atom, alternatives in lexicon.items()
        }

    def errors(self, line: cter.Line) -> Iterator[tuple[str, str, str]]:
        """The error, the type of atom and the wrong translation, as far as they apply."""
        text = line.text
        spans = self._phrase(line, text)
        if spans is None:
            return
        noun = spans["N"]
        for kind, (start, end) in spans.items():
            atom = line.atoms[kind]
            without = text[:start] + text[end:]
            yield "left out", kind, without
            yield "replaced", kind, text[:start] + self._other(atom) + text[end:]
            if self.decoys[atom]:
                decoy = self.draw.choice(self.decoys[atom])
                yield "left out, a word with it elsewhere", kind, f"{decoy}{COMMA}{without}"
            # where a verb phrase happens can be said in many places
            free = kind == "MOD" and line.type == "VP" and atom != "mod0"
            if not free:
                yield "moved to another clause", kind, f"{text[start:end]}{COMMA}{without}"
            if end <= noun[0] and kind in ("DET", "ADJ", "MOD", "P") and not free:
                rest = text[end : noun[1]] + text[start:end] + text[noun[1] :]
                yield "moved to the noun's other side", kind, text[:start] + rest
            elif start >= noun[1] and kind == "P":
                rest = text[start:end] + text[noun[0] : start] + text[end:]
                yield "moved to the noun's other side", kind, text[: noun[0]] + rest

    def _phrase(self, line: cter.Line, text: str) -> dict[str, Span] | None:
        """Where each atom is: the occurrences nearest to the noun; None if one has none there."""
        nouns = self._occurrences(line.atoms["N"], text)
        best: tuple[int, dict[str, Span]] | None = None
        for noun in nouns:
            spans, distance = {"N": noun}, 0
            for kind, atom in line.atoms.items():
                if kind == "N" or not self.lexicon[atom]:
                    continue
                gaps = [
                    (max(noun[0] - span[1], span[0] - noun[1]), -span[1] + span[0], span)
                    for span in self._occurrences(atom, text)
                    if span[1] <= noun[0] or (span[0] >= noun[1] and kind in "PV")
                ]
                if not gaps:
                    break
                gap, _, spans[kind] = min(gaps)
                distance += gap
            else:
                if best is None or distance < best[0]:
                    best = distance, spans
        return best and best[1]

    def _occurrences(self, atom: str, text: str) -> list[Span]:
        longest = sorted(filter(None, self.lexicon[atom]), key=len, reverse=True)
        return [m.span() for m in re.finditer("|".join(map(re.escape, longest)), text)]

    def _other(self, atom: str) -> str:
        """A translation of another atom of the type that is none of this one's."""
        mine = set(self.lexicon[atom])
        others = [
            alternatives[0]
            for other, alternatives in sorted(self.lexicon.items())
            if cter.TYPE_OF_ATOM[other] == cter.TYPE_OF_ATOM[atom]
            and alternatives
            and not mine & set(alternatives)
        ]
        return self.draw.choice(others)


def main() -> int:
    """Print the share of translations that each judge calls wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("COMPGEN_DATA"))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if not args.data:
        sys.exit("cter_strict.py: say --data FOLDER or set COMPGEN_DATA")
    folder = Path(args.data) / "cognition"
    test = folder / "data/cg-test/cg-test"
    try:
        lexicon = cter.read_lexicon(folder / "eval/lexicon")
        words = " ".join(cter.read_lines(folder / "data/valid.zh")).split()
        lines = cter.align(
            cter.read_lines(test.with_suffix(".en")),
            cter.read_compounds(test.with_suffix(".compound"), lexicon),
            cter.read_lines(test.with_suffix(".zh")),
        )
    except cter.CTERError as error:
        sys.exit(f"cter_strict.py: {error}")

    published, strict = partial(cter.judge, lexicon=lexicon), StrictRules(lexicon)
    breaker = Breaker(lexicon, words, random.Random(args.seed))
    counts: dict[str, Counter[str]] = defaultdict(Counter)

    def count(kind: str, line: cter.Line) -> None:
        verdicts = {"published": bool(published(line)), "strict": bool(strict(line)), "total": True}
        counts[kind].update(verdicts)

    for line in lines:
        for kind in ("references", f"references, {line.type}"):
            count(kind, line)
        if not published(line):
            for change, part, text in breaker.errors(line):
                for kind in (change, f"{change}: {part}"):
                    count(kind, replace(line, hypothesis=text))
    print(f"{'called wrong, in %':42s}{'published':>11s}{'strict':>11s}{'of':>9s}")
    for kind in sorted(counts, key=lambda kind: ("references" not in kind, kind)):
        print(f"{kind:42s}{Tally(**counts[kind])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
