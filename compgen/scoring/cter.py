"""Compound translation error rate (CTER), CoGnition's automatic metric.

Li, Yin, Chen and Zhang, "On Compositional Generalization of Neural Machine Translation" (ACL
2021).  A test line embeds a novel compound in a context; a lexicon lists the Chinese words that
count as a translation of each of the compound's atoms.  A line is wrong if an atom is not
translated or stands on the wrong side of its noun.  The rules, with all their leniencies, are those
of the published tool.
"""

import functools
import hashlib
import html
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compgen.text import joined, read_lines, single_spaced

MODIFIERS = {"mod0": "he liked", "mod1": "at the store", "mod2": "on the floor"}
ATOMS = {
    "P": "about around before behind except for from inside like near on to toward towards under "
    "with without",
    "V": "asked visited heard lost hated stopped woke found watched took saw told caught liked "
    "left gave invited met chose",
    "DET": "the every any another each",
    "ADJ": "small red dirty lazy smart large special silly quiet empty fake",
    "N": "dog doctor sandwich hat waiter lawyer peanut farmer car girl boyfriend child chair "
    "building clown bee apartment farm airplane",
    "MOD": " ".join(MODIFIERS),
}
TYPE_OF_ATOM = {atom: kind for kind, atoms in ATOMS.items() for atom in atoms.split()}
TYPES = ("NP", "VP", "PP")
GROUP = 5  # consecutive lines that share a compound

Lexicon = Mapping[str, tuple[str, ...]]  # no alternatives at all: always translated, no position


@dataclass(frozen=True, slots=True)
class Line:
    """A line to be judged.

    Args:
        source: the English sentence, words separated by spaces.
        compound: the novel compound in it.
        hypothesis: its translation, in words, subwords or characters.
        atoms: the compound's atoms by their type.
    """

    source: str
    compound: str
    hypothesis: str
    atoms: Mapping[str, str]

    @property
    def text(self) -> str:
        """The translation without subword marks and spaces."""
        return "".join(joined(self.hypothesis).split())

    @property
    def type(self) -> str:
        """NP, VP or PP: CG-test's verb phrases have a verb, its PPs a preposition, NPs neither."""
        return "VP" if "V" in self.atoms else "PP" if "P" in self.atoms else "NP"

    @property
    def compound_length(self) -> int:
        """Words in the compound; those of a modifier count, so ``he liked`` is 2."""
        return len(self.compound.split())

    @property
    def context_length(self) -> int:
        """Source tokens outside the compound, punctuation included."""
        return len(words(self.source)) - self.compound_length


Parse = Callable[[str], Mapping[str, str]]  # a compound's atoms by their type
GroupOf = Callable[[int], Hashable]  # which compound the line of an index belongs to


def five_by_five(index: int) -> int:
    """CoGnition's compounds: five consecutive lines share one."""
    return index // GROUP


def read_lexicon(path: Path | str, lines: Sequence[str] | None = None) -> Lexicon:
    """Read lines of an atom, a tab and its translations, joined by ``/``.

    A later line for the same atom wins.  The entry ``/`` alone means that the atom always counts
    as translated and has no position; everywhere else nothing before, between or behind slashes
    is an *empty* alternative, which is found at every position.

    Args:
        path: the file.
        lines: what is in it, where that has been read: a pipe can be read only once.

    Raises:
        ValueError: if the file cannot be read, is empty, or a line has not these two parts.
    """
    lexicon = {}
    for number, line in enumerate(read_lines(path) if lines is None else lines, 1):
        atom, tab, entry = line.partition("\t")
        if not tab or not atom:
            raise ValueError(f"{path}, line {number}: not an atom, a tab and its translations")
        lexicon[atom] = () if entry == "/" else tuple(entry.split("/"))
    if not lexicon:
        raise ValueError(f"{path}: it has no atoms")
    return lexicon


def fingerprint(lexicon: Lexicon) -> str:
    """Eight hexadecimal digits that tell one lexicon from another."""
    return hashlib.sha256(repr(sorted(lexicon.items())).encode()).hexdigest()[:8]


@functools.cache
def parse(compound: str) -> Mapping[str, str]:
    """The atoms of a compound by their type.

    The phrases of ``MODIFIERS`` become one atom each, as strings and before the words are split.
    There is one slot per type: a later atom of the same type replaces the earlier.

    Raises:
        ValueError: if a word is not an atom, or there is none.
    """
    text = compound
    for atom, phrase in MODIFIERS.items():
        text = text.replace(phrase, atom)
    atoms = {}
    for atom in text.split():
        if atom not in TYPE_OF_ATOM:
            raise ValueError(f"{atom!r} in the compound {compound!r} is not an atom of CoGnition")
        atoms[TYPE_OF_ATOM[atom]] = atom
    if not atoms:
        raise ValueError("the compound is empty")
    return atoms


def check_compounds(
    compounds: Sequence[str], lexicon: Lexicon, path: Path | str, first: int = 1
) -> None:
    """Check compounds that begin on a file's line ``first``.

    Raises:
        ValueError: if a compound holds an unknown atom or one that the lexicon lacks, or the lines
            are not groups of five that share a compound.
    """
    if not compounds:
        raise ValueError(f"{path}: it has no compounds")
    if len(compounds) % GROUP:
        raise ValueError(f"{path}: {len(compounds)} lines are not groups of {GROUP}")
    for i, compound in enumerate(compounds):
        start = i // GROUP * GROUP
        if i > start:
            if compound != compounds[start]:
                raise ValueError(
                    f"{path}, line {first + i}: {compound!r} is not the compound of line "
                    f"{first + start}, {compounds[start]!r}; groups of {GROUP} lines share one"
                )
            continue
        try:
            unlisted = set(parse(compound).values()) - lexicon.keys()
        except ValueError as error:
            raise ValueError(f"{path}, line {first + i}: {error}") from None
        if unlisted:
            raise ValueError(f"{path}, line {first + i}: {min(unlisted)!r} is not in the lexicon")


def align(
    sources: Sequence[str],
    compounds: Sequence[str],
    hypotheses: Sequence[str],
    parse: Parse = parse,
) -> list[Line]:
    """Put together what belongs to each line; ``parse`` finds a compound's atoms.

    Raises:
        ValueError: if there are not as many of each, or a compound is empty or not in its source,
            where ``<unk>`` stands for any word.
    """
    if not len(sources) == len(compounds) == len(hypotheses):
        raise ValueError(
            f"not one of each per line: {len(sources)} sources, {len(compounds)} compounds, "
            f"{len(hypotheses)} hypotheses"
        )
    lines = [
        Line(source, compound, hypothesis, parse(compound))
        for source, compound, hypothesis in zip(sources, compounds, hypotheses, strict=True)
    ]
    for number, line in enumerate(lines, 1):
        if not line.compound.strip():
            raise ValueError(f"line {number}: the compound is empty")
        if (
            f" {line.compound} " not in f" {line.source} "  # nearly always enough, and fast
            and _start(words(line.source), line.compound.split()) is None
            and _bare(line.compound) not in _bare(line.source)
        ):
            raise ValueError(
                f"line {number}: the compound {line.compound!r} is not in the source "
                f"{line.source!r}, in whole words"
            )
    return lines


def _bare(text: str) -> str:
    """A text without apostrophes and the like: Moses writes ``dog 's`` for ``dog's``."""
    words = re.findall(r"\w+|[^\w\s'\u2019&-]", html.unescape(joined(text)))
    return f" {' '.join(words)} "


def find_faults(
    line: Line, lexicon: Lexicon, text: str, order: Iterable[tuple[str, str]]
) -> tuple[str, ...]:
    """The atoms that are not translated or, if all are, the pairs in the wrong order.

    An atom is translated if any of its alternatives is in the text.  Its positions are the first
    and the last of all alternatives; an empty alternative is found from position 0 to the end.

    Args:
        line: the atoms to look for.
        lexicon: their translations.
        text: where to look.
        order: pairs of types; the first position of the one must come before the last of the
            other, if both have positions.

    Returns:
        ``atom:TYPE:ATOM`` for each atom that is not translated, else ``order:TYPE-TYPE`` for each
        wrong order.
    """
    missing, first, last = [], {}, {}
    for kind, atom in line.atoms.items():
        alternatives = lexicon[atom]
        found = [alternative for alternative in alternatives if alternative in text]
        if found:
            first[kind] = min(map(text.find, found))
            last[kind] = max(map(text.rfind, found))
        elif alternatives:
            missing.append(f"atom:{kind}:{atom}")
    return tuple(missing) or tuple(
        f"order:{one}-{other}"
        for one, other in order
        if one in first and other in last and not first[one] < last[other]
    )


class Rules:
    """How compounds are read and lines judged: here the published rules of CoGnition's lexicon."""

    name = "published"
    groupings: tuple[str, ...] = ("type", "compound_length", "context_length", "modifier")
    translations: Lexicon  # those that the judge looks for

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = self.translations = lexicon

    def parse(self, compound: str) -> Mapping[str, str]:
        """A compound's atoms by their type.

        Raises:
            ValueError: if it cannot be divided into atoms.
        """
        return parse(compound)

    def read_compounds(self, path: Path | str) -> list[str]:
        """Read a compound per line.

        Raises:
            ValueError: the file or a compound in it cannot be read; CoGnition's come in fives.
        """
        compounds = single_spaced(read_lines(path))
        check_compounds(compounds, self.lexicon, path)
        return compounds

    def judge(self, line: Line) -> tuple[str, ...]:
        """What is wrong with a line, as ``atom:N:dog`` or ``order:ADJ-N``; nothing if it is right.

        Determiner, adjective and, where no verb has a position, modifier must come before the noun.
        """
        text, verb = line.text, line.atoms.get("V")
        has_place = verb and any(alternative in text for alternative in self.lexicon[verb])
        before_noun = ("DET", "ADJ") if has_place else ("DET", "ADJ", "MOD")
        return find_faults(line, self.lexicon, text, [(kind, "N") for kind in before_noun])

    def text(self, line: Line) -> str:
        """A line's translation as the judge sees it."""
        return line.text

    def group_of(self, lines: Sequence[Line]) -> GroupOf:
        """Which lines share a compound, by their index."""
        return five_by_five

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


def words(source: str) -> list[str]:
    """The words of a source sentence, whole."""
    return joined(source).split()


def _start(words: list[str], compound: list[str]) -> int | None:
    """Where the compound starts first; a word that is unknown, or has unknown subwords, can be
    any."""
    for start in range(len(words) - len(compound) + 1):
        there = zip(words[start:], compound, strict=False)
        if all(word == atom or "<unk>" in word for word, atom in there):
            return start
    return None
