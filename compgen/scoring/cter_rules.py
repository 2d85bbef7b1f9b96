"""The rules that a lexicon asks for: CoGnition's, strict or published, or those of own compounds.

CoGnition's lexicon has two columns, one of own compounds three (see docs/cter.md).
"""

import functools
import html
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from compgen.scoring import cter
from compgen.scoring.cter import GroupOf, Line, Rules
from compgen.scoring.cter_strict import StrictRules
from compgen.text import joined, read_lines, single_spaced

#: Chinese, Japanese, Thai, Lao, Burmese and Khmer letters
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


class OwnRules(Rules):
    """The rules of a lexicon of own compounds.

    Args:
        lines: of the lexicon; ``bad`` has the number of each that cannot be read, and why.
    """

    name = "own"
    groupings = ("type", "compound_length", "context_length")  # own compounds have no modifiers

    def __init__(self, lines: Sequence[str]) -> None:
        self.types: dict[str, str] = {}  # of each atom
        self.listed: dict[str, tuple[str, ...]] = {}  # its translations, as they are written
        self.order: list[tuple[str, str]] = []  # pairs of types; the first stands before the second
        self.by_words = True  # look for whole words, not for parts of the text
        self.unspaced = 0  # a line with words that are written without spaces
        self.told = False  # how to match
        self.bad: list[tuple[int, str]] = []
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith("#"):
                try:
                    self._add([cell.strip() for cell in line.split("\t")], number)
                except ValueError as error:
                    self.bad.append((number, str(error)))
        if self.unspaced and not self.told:
            text = "written without spaces: add a line `match` TAB `characters`"
            self.bad.append((self.unspaced, f"{text} (or `words`, where words are separated)"))
        for number, line in () if self.bad else enumerate(lines, 1):
            name, *kinds = map(str.strip, line.split("\t"))
            for kind in kinds if name == "order" else ():
                if kind not in self.types.values():
                    self.bad.append((number, f"no atom is of the type {kind} of this order"))
        order = {f"order {one} {other}": () for one, other in self.order}
        atoms = {f"{self.types[atom]} {atom}": words for atom, words in self.listed.items()}
        super().__init__({**atoms, **order, f"words {self.by_words}": ()})
        self.translations = {a: tuple(map(self._form, words)) for a, words in self.listed.items()}

    def _add(self, cells: list[str], number: int) -> None:
        if cells in (["match", "characters"], ["match", "words"]):
            self.by_words, self.told = cells[1] == "words", True
            return
        if len(cells) != 3 or not all(cells):
            raise ValueError("not a type, an atom and its translations with tabs between them")
        kind, atom, entry = cells
        known = " ".join(cter.ATOMS)
        if kind == "order":
            if not {atom, entry} <= cter.ATOMS.keys() or atom == entry:
                raise ValueError(f"order is followed by two different types of {known}")
            self.order.append((atom, entry))
            return
        if kind not in cter.ATOMS:
            raise ValueError(f"{kind!r} is not a type; the types are {known}")
        if atom in self.types:
            raise ValueError(f"{atom!r} has been listed before")
        translations = () if entry == "/" else tuple(map(str.strip, entry.split("/")))
        if not all(re.search(r"\w", one) for one in translations):
            raise ValueError(f"a translation of {atom!r} is empty")
        if UNSPACED.search(entry):
            self.unspaced = self.unspaced or number
        self.types[atom] = kind
        self.listed[atom] = translations

    def read_compounds(self, path: Path | str) -> list[str]:
        compounds = single_spaced(read_lines(path))
        if bad := self.bad_compounds(compounds):
            raise ValueError(_first(path, bad))
        return compounds

    def bad_compounds(self, compounds: Sequence[str]) -> list[tuple[int, str]]:
        """The lines of compounds that cannot be read, and why; each compound once."""
        bad, seen = [], set()
        for number, compound in enumerate(compounds, 1):
            if compound not in seen:
                seen.add(compound)
                try:
                    self.parse(compound)
                except ValueError as error:
                    bad.append((number, str(error)))
        return bad if compounds else [(1, "there is no compound")]

    def group_of(self, lines: Sequence[Line]) -> GroupOf:
        return lambda i: lines[i].compound

    def judge(self, line: Line) -> tuple[str, ...]:
        return cter.find_faults(line, self.translations, self.text(line), self.order)

    def text(self, line: Line) -> str:
        return self._form(line.hypothesis)

    def _form(self, text: str) -> str:
        text = html.unescape(joined(text))  # Moses writes ' as &apos;
        text = unicodedata.normalize("NFC", text).casefold()
        if not self.by_words:
            return text.replace(" ", "")
        import regex  # for re, vowel signs are not in words

        words = regex.findall(r"\w+", text)
        return f" {' '.join(words)} "

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Finds the longest atom at a word's start, or else a word."""
        atoms = sorted(self.types, key=len, reverse=True)
        return re.compile("|".join([*(rf"{re.escape(atom)}(?!\S)" for atom in atoms), r"\S+"]))

    def parse(self, compound: str) -> Mapping[str, str]:
        atoms: dict[str, str] = {}
        for atom in self._pattern.findall(compound):
            if atom not in self.types:
                raise ValueError(
                    f"{atom!r} in the compound {compound!r} is not an atom of the lexicon"
                )
            kind = self.types[atom]
            if kind in atoms:
                raise ValueError(
                    f"the compound {compound!r} has two atoms of the type {kind}: "
                    f"{atoms[kind]!r} and {atom!r}"
                )
            atoms[kind] = atom
        if not atoms:
            raise ValueError("the compound is empty")
        return atoms


def load(path: Path | str, strict: bool = False, lines: Sequence[str] | None = None) -> Rules:
    """The rules of a lexicon.

    Args:
        path: the lexicon.
        strict: judge by :class:`StrictRules`, which know CoGnition's compounds only.
        lines: what was read of it, for a file that can be read once only.

    Raises:
        ValueError: if the lexicon cannot be read, or strict rules are asked of own compounds.
    """
    lines = read_lines(path) if lines is None else lines
    if is_own(lines):
        if strict:
            raise ValueError(f"{path} is of own compounds: strict rules are CoGnition's")
        own = OwnRules(lines)
        if own.bad:
            raise ValueError(_first(path, own.bad))
        return own
    lexicon = cter.read_lexicon(path, lines)
    return StrictRules(lexicon) if strict else Rules(lexicon)


def is_own(lines: Sequence[str]) -> bool:
    """Whether a lexicon is of own compounds: it has comments or three columns."""
    return any(line.startswith("#") or line.count("\t") > 1 for line in lines)


def _first(path: Path | str, bad: list[tuple[int, str]]) -> str:
    number, text = bad[0]
    more = f"; compgen-cter --check lists {len(bad) - 1} more bad lines" if len(bad) > 1 else ""
    return f"{path}, line {number}: {text}{more}"
