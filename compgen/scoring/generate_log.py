"""Reads what fairseq-generate and fairseq-interactive print, and refuses what is incomplete."""

import html
import io
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from compgen.text import in_subwords, joined, read_lines, read_text, single_spaced, split_lines

logger = logging.getLogger(__name__)

SHOWN = 5  # ids of a fault
Texts = dict[str, str]  # the sentences of one id by their letter: S, T, H and D

SENTENCE = re.compile(r"([STHD])-(\d+)\t(.*)")
STATED = re.compile(r"Translated ([\d,]+) sentences \(")
CLOSING = re.compile(r"Generate .* with beam=\d+: |Total time: .* translation time: ")
SKIPPED = re.compile(r"([\d,]+) samples have invalid sizes and will be skipped")
# With `> log 2>&1` a logger's message can come before the line feed of the sentence before it.
LOGGER = re.compile(r"(?:INFO|WARNING|ERROR):fairseq[\w.]*:|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \| ")


@dataclass(frozen=True)
class Generation:
    """The sentences of a log in the order of their ids.

    Args:
        sources: what was translated, one string per sentence; empty ones where it is unknown.
        targets: the references, as many; none at all for a log of fairseq-interactive.
        hypotheses: the best hypotheses, as many, detokenized where the log has it.
        path: what messages call it.
    """

    sources: list[str]
    targets: list[str]
    hypotheses: list[str]
    path: Path | str = field(default="the log", compare=False)

    def references(self, file: Path | str | None = None, *, alike: bool = False) -> list[str]:
        """The references: a file's lines, spaced as in a log, or else the log's targets.

        Args:
            file: of the references.
            alike: refuse a file in subwords if the log is in words, and the other way round.

        Raises:
            ValueError: if there are none, or not one for each sentence.
        """
        if file:
            found = single_spaced(read_lines(file, len(self.sources)))
            if alike and in_subwords(found) != in_subwords(self.targets or self.hypotheses):
                raise ValueError(
                    f"one of {file} and {self.path} is in subwords, the other is not: decode "
                    "with --remove-bpe or without it"
                )
            self._warn_of_others(found, file)
            return found
        if not self.targets:
            raise ValueError(f"{self.path}: it has no references (T- lines)")
        return self.targets

    def _warn_of_others(self, references: list[str], file: Path | str) -> None:
        """Warn if most references are of other words than the log's targets, unknown ones apart."""
        pairs = zip(references, self.targets, strict=bool(self.targets))
        known = [(_letters(a), _letters(b)) for a, b in pairs if "<<unk>>" not in b]
        others = sum(a != b for a, b in known)
        if 2 * others > len(known):
            logger.warning(
                "%d of %d lines of %s differ from the references in %s by more than spaces, case "
                "and punctuation: are they of the same sentences?",
                others,
                len(known),
                file,
                self.path,
            )


def _letters(text: str) -> str:
    text = unicodedata.normalize("NFKC", html.unescape(joined(text)))
    return "".join(filter(str.isalnum, text.casefold()))


def read(path: Path | str, expected: int | None = None, plain: bool = False) -> Generation:
    """Read the log of a run of fairseq-generate, or of all its shards one after the other.

    The ids must be exactly 0..n-1, in any order.  n is ``expected`` if given, else the number of
    sentences the log says were translated, though never less than the largest id + 1.

    Args:
        path: a file with fairseq-generate's output, with or without the loggers' messages.
        expected: how many sentences the data set has.
        plain: take a file without any of fairseq's lines, which a log that lost its sentences has,
            for one hypothesis a line.

    Raises:
        ValueError: if sentences are missing, left out as too long, incomplete or repeated, if
            nothing shows that the log was written to its end, or if the file cannot be read.
    """
    text = read_text(path)
    rows = split_lines(text) if plain else []
    if plain and not any(SENTENCE.match(row) or " | INFO | " in row for row in rows):
        hypotheses = single_spaced(rows)
        if not hypotheses:
            raise ValueError(f"{path}: there are no sentences to score")
        if expected not in (None, len(hypotheses)):
            raise ValueError(f"{path}: it has {len(hypotheses)} lines, not --expected {expected}")
        return Generation([""] * len(hypotheses), [], hypotheses, path)
    lines = io.StringIO(text, newline=None)  # as a text file: "\r\n" ends a line, too
    try:
        return replace(parse(lines, expected), path=path)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse(log: Iterable[str], expected: int | None = None) -> Generation:
    """Do what :func:`read` does for lines that end in a line feed; its errors name no file."""
    lines = list(log)
    if lines and not lines[-1].endswith("\n"):
        raise ValueError("the last line is cut short")
    messages = [line for line in lines if not SENTENCE.match(line)]
    for skipped in filter(None, map(SKIPPED.search, messages)):
        raise ValueError(
            f"fairseq left out {skipped[1]} sentences as too long for the model: they have to be "
            "translated, too, or removed from the data set"
        )
    sentences = list(_sentences(lines))
    found = dict(sentences)
    kinds = {kind for texts in found.values() for kind in texts}
    if "S" not in kinds or not kinds & {"H", "D"}:
        raise ValueError("it has no sentences with hypotheses (S-, H- and D- lines)")

    repeated = sorted(i for i, times in Counter(i for i, _ in sentences).items() if times > 1)
    n = expected
    if n is None:
        n = _number_translated(messages, max(found) + 1, combine=max if repeated else sum)
    faults = {
        "incomplete": sorted(i for i, texts in found.items() if texts.keys() != kinds),
        "repeated": repeated,
        "unexpected": sorted(i for i in found if i >= n),
    }
    complaints = [f"{len(ids)} {fault} ({_some(ids)})" for fault, ids in faults.items() if ids]
    if missing := n - sum(i < n for i in found):  # a log may claim a number beyond all memory
        first = list(islice((i for i in range(n) if i not in found), min(missing, SHOWN + 1)))
        complaints.insert(0, f"{missing} missing ({_some(first)})")
    if complaints:
        raise ValueError(f"it is not one output for each of {n} sentences: {', '.join(complaints)}")

    def column(kind: str) -> list[str]:
        return [found[i][kind] for i in range(n)] if kind in kinds else []

    return Generation(column("S"), column("T"), column("D") or column("H"))


def _sentences(lines: list[str]) -> Iterator[tuple[int, Texts]]:
    """Each run of lines about one sentence; with ``--nbest`` its first, best hypothesis counts."""
    number, texts = -1, Texts()
    for line in lines:
        match = SENTENCE.match(line.rstrip("\n"))
        if match is None:
            continue
        kind, text = match[1], LOGGER.split(match[3], maxsplit=1)[0]
        if kind in "HD":
            text = text.partition("\t")[2]  # the score comes first
        if int(match[2]) != number or kind == "S":
            if texts:
                yield number, texts
            number, texts = int(match[2]), Texts()
        texts.setdefault(kind, text)
    if texts:
        yield number, texts


def _number_translated(messages: list[str], at_least: int, combine: Callable[..., int]) -> int:
    """How many sentences the messages at the end of a log promise; every shard has its own."""
    stated = [int(m[1].replace(",", "")) for m in map(STATED.search, messages) if m]
    if not stated and not any(map(CLOSING.search, messages)):
        raise ValueError("it has no closing line, so its end may be missing; say --expected N")
    return max(at_least, combine(stated) if stated else 0)


def _some(ids: list[int]) -> str:
    """The first few of many ids."""
    names = ", ".join(map(str, ids[:SHOWN]))
    return f"id{'s' if len(ids) > 1 else ''} {names}{', ...' if len(ids) > SHOWN else ''}"
