"""The rules that a lexicon asks for: CoGnition's, strict or published, or those of own compounds.

CoGnition's lexicon has two columns, one of own compounds three (see docs/cter.md).
"""

import functools
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from compgen.scoring import cter
from compgen.scoring.cter import MODIFIERS, CTERError, Judge, Lexicon, Line, Parse
from compgen.scoring.cter_strict import StrictRules

GROUPINGS = ("type", "compound_length", "context_length")  # own compounds have no modifiers


@dataclass(frozen=True)
class Rules:
    """How compounds are read and lines judged.

    Args:
        name: published, strict or own.
        lexicon: what the fingerprint is of.
        translations: those that the judge looks for.
        judge: what is wrong with a line.
        parse: a compound's atoms by their type.
        text: a line's translation as the judge sees it.
    """

    name: str
    lexicon: Lexicon
    translations: Lexicon
    judge: Judge
    parse: Parse
    text: Callable[[Line], str]

    def read_compounds(self, path: Path | str) -> list[str]:
        """Read a compound per line.

        Raises:
            CTERError: the file or a compound in it cannot be read; CoGnition's come in fives.
        """
        if self.name != "own":
            return cter.read_compounds(path, self.lexicon)
        compounds = cter.read_lines(path)
        if bad := self.bad_compounds(compounds):
            raise CTERError(_first(path, bad))
        return compounds

    def bad_compounds(self, compounds: Sequence[str]) -> list[tuple[int, str]]:
        """The lines of own compounds that cannot be read, and why; each compound once."""
        bad, seen = [], set()
        for number, compound in enumerate(compounds, 1):
            if compound not in seen:
                seen.add(compound)
                try:
                    self.parse(compound)
                except CTERError as error:
                    bad.append((number, str(error)))
        return bad if compounds else [(1, "there is no compound")]

    def group_of(self, lines: Sequence[Line]) -> Callable[[int], Hashable]:
        """Which lines share a compound, by their index."""
        if self.name == "own":
            return lambda i: lines[i].compound
        return lambda i: i // cter.GROUP

    def wrong(
        self, sources: Sequence[str], compounds: Sequence[str], hypotheses: Sequence[str]
    ) -> list[list[bool]]:
        """Which lines are wrong, in groups of those that share a compound.

        Raises:
            CTERError: as :func:`cter.align`.
        """
        lines = cter.align(sources, compounds, hypotheses, self.parse)
        group_of = self.group_of(lines)
        groups: dict[Hashable, list[bool]] = {}
        for i, line in enumerate(lines):
            groups.setdefault(group_of(i), []).append(bool(self.judge(line)))
        return list(groups.values())

    def explain(self, line: Line, fault: str) -> str:
        """A fault in words: the atom, and the part of the translation from it to the noun.

        Args:
            line: a line.
            fault: one of those that the judge found in it, ``atom:N:dog`` or ``order:ADJ-N``.
        """
        text = self.text(line)
        kind, _, other = fault.split(":")[1].partition("-")
        atom, noun = line.atoms[kind], line.atoms.get(other, "")
        name, known = MODIFIERS.get(atom, atom), [word for word in self.translations[atom] if word]
        if fault.startswith("atom:"):
            return f"nothing stands for {name!r} ({'/'.join(map(str.strip, known))})"
        pairs = [
            sorted([(text.find(one), len(one)), (text.rfind(other), len(other))])
            for one in known
            for other in self.translations[noun]
            if other and one in text and other in text
        ]
        said = f"{name!r} does not go with {noun!r}"
        if not pairs:
            return said
        (start, _), (end, length) = min(pairs, key=lambda pair: pair[1][0] - pair[0][0])
        return f"{said}: {text[start : end + length].strip()}"


def load(path: Path | str, strict: bool = False) -> Rules:
    """The rules of a lexicon.

    Args:
        path: the lexicon.
        strict: judge by :class:`StrictRules`, which know CoGnition's compounds only.

    Raises:
        CTERError: if the lexicon cannot be read, or strict rules are asked of own compounds.
    """
    lines = cter.read_lines(path)
    if is_own(lines):
        if strict:
            raise CTERError(f"{path} is of own compounds: strict rules are CoGnition's")
        own = OwnLexicon.of(lines)
        if own.bad:
            raise CTERError(_first(path, own.bad))
        return Rules("own", own.stamp(), own.sought(), own.judge, own.parse, own.text)
    lexicon = cter.read_lexicon(path)
    text = Line.text.fget  # type: ignore[attr-defined]
    if strict:
        rules = StrictRules(lexicon)
        return Rules("strict", lexicon, rules.translations, rules, cter.parse, text)
    judge = partial(cter.judge, lexicon=lexicon)
    return Rules("published", lexicon, lexicon, judge, cter.parse, text)


def is_own(lines: Sequence[str]) -> bool:
    """Whether a lexicon is of own compounds: it has comments or three columns."""
    return any(line.startswith("#") or line.count("\t") > 1 for line in lines)


@dataclass
class OwnLexicon:
    """A lexicon of own compounds.

    Args:
        types: the type of each atom.
        translations: of each atom; none: always translated, nowhere in particular.
        order: pairs of types; the first stands before the second.
        by_words: look for whole words, whatever their case, and not for parts of the text.
        bad: the number of each line that cannot be read, and why.
    """

    types: dict[str, str] = field(default_factory=dict)
    translations: dict[str, tuple[str, ...]] = field(default_factory=dict)
    order: list[tuple[str, str]] = field(default_factory=list)
    by_words: bool = True
    bad: list[tuple[int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, lines: Sequence[str]) -> "OwnLexicon":
        """Read lines; what cannot be read is in ``bad``."""
        lexicon = cls()
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith("#"):
                try:
                    lexicon._add([cell.strip() for cell in line.split("\t")])
                except CTERError as error:
                    lexicon.bad.append((number, str(error)))
        for one, other in lexicon.order:
            for kind in (one, other):
                if kind not in lexicon.types.values() and not lexicon.bad:
                    lexicon.bad.append((len(lines), f"no atom is of the type {kind} of an order"))
        return lexicon

    def _add(self, cells: list[str]) -> None:
        if cells == ["match", "characters"]:
            self.by_words = False
            return
        if len(cells) != 3 or not all(cells):
            raise CTERError("not a type, an atom and its translations with tabs between them")
        kind, atom, entry = cells
        known = " ".join(cter.ATOMS)
        if kind == "order":
            if not {atom, entry} <= cter.ATOMS.keys() or atom == entry:
                raise CTERError(f"order is followed by two different types of {known}")
            self.order.append((atom, entry))
            return
        if kind not in cter.ATOMS:
            raise CTERError(f"{kind!r} is no type; the types are {known}")
        if atom in self.types:
            raise CTERError(f"{atom!r} has been listed before")
        translations = () if entry == "/" else tuple(map(str.strip, entry.split("/")))
        if not all(re.search(r"\w", one) for one in translations):
            raise CTERError(f"a translation of {atom!r} is empty")
        self.types[atom] = kind
        self.translations[atom] = translations

    def stamp(self) -> Lexicon:
        """All that verdicts depend on."""
        order = {f"order {one} {other}": () for one, other in self.order}
        atoms = {f"{self.types[atom]} {atom}": words for atom, words in self.translations.items()}
        return {**atoms, **order, f"words {self.by_words}": ()}

    def sought(self) -> Lexicon:
        """The translations as they are looked for in :meth:`text`."""
        return {atom: tuple(map(self._form, words)) for atom, words in self.translations.items()}

    def text(self, line: Line) -> str:
        """The translation as it is searched."""
        return self._form(line.hypothesis)

    def _form(self, text: str) -> str:
        text = text.replace("@@ ", "")
        if not self.by_words:
            return text.replace(" ", "")
        words = re.findall(r"\w+", text.casefold())
        return f" {' '.join(words)} "

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Finds the longest atom at a word's start, or else a word."""
        atoms = sorted(self.types, key=len, reverse=True)
        return re.compile("|".join([*(rf"{re.escape(atom)}(?!\S)" for atom in atoms), r"\S+"]))

    def parse(self, compound: str) -> Mapping[str, str]:
        """The atoms of a compound by their type.

        Raises:
            CTERError: if a word is in no atom, there is none, or two are of one type.
        """
        atoms: dict[str, str] = {}
        for atom in self._pattern.findall(compound):
            if atom not in self.types:
                raise CTERError(f"{atom!r} in the compound {compound!r} is no atom of the lexicon")
            kind = self.types[atom]
            if kind in atoms:
                raise CTERError(
                    f"the compound {compound!r} has two atoms of the type {kind}: "
                    f"{atoms[kind]!r} and {atom!r}"
                )
            atoms[kind] = atom
        if not atoms:
            raise CTERError("the compound is empty")
        return atoms

    @functools.cached_property
    def judge(self) -> Judge:
        """What is wrong with a line: :func:`cter.find_faults` with this lexicon's order."""
        sought = self.sought()
        return lambda line: cter.find_faults(line, sought, self.text(line), self.order)


def _first(path: Path | str, bad: list[tuple[int, str]]) -> str:
    number, text = bad[0]
    more = f"; --check lists {len(bad) - 1} more bad lines" if len(bad) > 1 else ""
    return f"{path}, line {number}: {text}{more}"
