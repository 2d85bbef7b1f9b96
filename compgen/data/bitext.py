"""Parallel text: read, clean, tokenise, cut into subwords and filter, one line at a time.

No function holds a corpus in memory.  A *pair* is a source line and its target line, without line
feeds.  Moses' rules come from sacremoses, BPE from subword-nmt, SentencePiece from sentencepiece.
"""

import gzip
import html
import itertools
import multiprocessing
import os
import re
import signal
import threading
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack, redirect_stderr
from dataclasses import dataclass
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path

import regex
import sentencepiece
from sacremoses import MosesPunctNormalizer, MosesTokenizer
from subword_nmt import apply_bpe, learn_bpe
from tqdm import tqdm

from compgen.text import count_lines, naming, suffix

Pair = tuple[str, str]
Side = Callable[[str], str]

SYMBOLS = {"<s>", "<pad>", "</s>"}  # of fairseq's dictionaries; its <unk> does no harm
PARTS = ("train", "valid", "test")

BATCH = 2000  # pairs that a worker process gets at once
LONGEST_WORD = 1000  # characters; the limit of Moses' clean-corpus-n.perl
CACHED_WORDS = 1_000_000  # words whose subwords a process remembers
SAMPLE = 10_000_000  # sentences that SentencePiece learns from at most, drawn at random

METADATA = re.compile(r"<(url|talkid|keywords|speaker|reviewer|translator)\b")
TITLE = re.compile(r"</?(title|description)>")
SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg\s*>", re.DOTALL | re.IGNORECASE)
OPENING = re.compile(r"<seg\b", re.IGNORECASE)


def stream_lines(path: Path, progress: str | None = None) -> Iterator[str]:
    """The lines of a UTF-8 file, gzip'ed if its name ends in ``.gz``.

    Only a line feed ends a line. The mark (BOM) that Windows puts before a text is no part of it.

    Args:
        path: the file.
        progress: the title of a progress bar over its bytes, shown on a terminal; None: no bar.

    Raises:
        ValueError: if a gzip'ed file is cut short or damaged, or a line is not UTF-8.
    """
    with (
        open(path, "rb") as raw,
        tqdm(
            desc=progress,
            total=path.stat().st_size,
            unit="B",
            unit_scale=True,
            disable=None if progress else True,
        ) as bar,
    ):
        stream = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        try:
            for number, line in enumerate(stream, 1):
                if number % BATCH == 1:
                    bar.update(raw.tell() - bar.n)
                yield line.decode("utf-8" if number > 1 else "utf-8-sig").rstrip("\n")
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is cut short or damaged ({error}).") from None
        except UnicodeDecodeError as error:
            reason = f"{error.object[error.start : error.end]!r}, {error.reason}"
            raise ValueError(f"{path}, line {number} is not UTF-8 text ({reason}).") from None
        bar.update(raw.tell() - bar.n)


def read_talks(path: Path, progress: str | None = None) -> Iterator[str]:
    """The lines of an IWSLT training file (``train.tags.*``): titles, descriptions, speech.

    The other lines in tags (address, number, keywords, ...) are left out, as in fairseq's
    ``prepare-iwslt14.sh``.
    """
    for line in stream_lines(path, progress):
        if not METADATA.match(line.lstrip()):
            yield TITLE.sub("", line)


def read_segments(path: Path, progress: str | None = None) -> Iterator[str]:
    """The text of each ``<seg>`` of a test set (SGML of WMT, XML of IWSLT).

    A segment may run over several lines.  Character references are resolved, and the typographic
    apostrophe becomes ``'`` (fairseq's ``prepare-*.sh`` do the latter).

    Raises:
        ValueError: if there is no segment, or one is not closed.
    """
    text = "\n".join(stream_lines(path, progress))
    segments = SEGMENT.findall(text)
    if not segments or len(segments) != len(OPENING.findall(text)):
        raise ValueError(
            f"{path} is not a complete test set: it has {len(segments)} whole segments."
        )
    for segment in segments:
        yield " ".join(html.unescape(segment).replace("\u2019", "'").split())


def read_pairs(source: Path, target: Path, progress: str) -> Iterator[Pair]:
    """The pairs of two files, each read as its name says: a test set, talks or lines.

    Args:
        source: ``*.sgm``, ``*.xml``, or these in ``.gz`` (:func:`read_segments`), ``train.tags.*``
            (:func:`read_talks`) or another file (:func:`stream_lines`).
        target: likewise.
        progress: what is done with it, for the progress bar.

    Raises:
        ValueError: if one side has more lines than the other.
    """
    first, second = _reader(source), _reader(target)
    sides = itertools.zip_longest(first(source, f"{progress} {source.name}"), second(target))
    for number, (one, other) in enumerate(sides):
        if one is None or other is None:
            shorter, longer = (source, target) if one is None else (target, source)
            raise ValueError(
                f"{shorter} has only {number} lines and {longer} has more: they are not a pair."
            )
        yield one, other


def _reader(path: Path) -> Callable[..., Iterator[str]]:
    if suffix(path) in (".sgm", ".xml"):
        return read_segments
    return read_talks if path.name.startswith("train.tags.") else stream_lines


def write_parts(pairs: Iterable[tuple[str, Pair]], folder: Path, languages: Pair) -> None:
    """Write pairs to ``folder/{train,valid,test}.LANGUAGE``.

    Args:
        pairs: each with the name of its part.
        folder: a new folder for the files.
        languages: of the source and of the target.

    Raises:
        ValueError: if a part has no pair, or cannot be written.
    """
    folder.mkdir()
    written = dict.fromkeys(PARTS, 0)
    with naming(folder), ExitStack() as stack:
        files = {
            (part, language): stack.enter_context(
                open(folder / f"{part}.{language}", "w", encoding="utf-8", newline="\n")
            )
            for part in PARTS
            for language in languages
        }
        for part, pair in pairs:
            for language, line in zip(languages, pair, strict=True):
                files[part, language].write(line + "\n")
            written[part] += 1
    for part, number in written.items():
        if not number:
            why = ", or every pair is too long or too unequal in length" if part == "train" else ""
            raise ValueError(f"no pair is left for {part}: the files are too small{why}.")


def fits(pair: Pair, longest: int, ratio: float) -> bool:
    """Whether Moses' ``clean-corpus-n.perl`` keeps a pair.

    Args:
        pair: a source line and its target line.
        longest: the most words of a side; the least is 1.
        ratio: the most words of one side per word of the other.
    """
    words = [side.split() for side in pair]
    shorter, longer = sorted(map(len, words))
    short = shorter >= 1 and longer <= longest and longer <= ratio * shorter
    return short and all(len(word) <= LONGEST_WORD for side in words for word in side)


@dataclass
class Moses:
    """A line as the Moses scripts leave it; without any option only its white space is tidied.

    Args:
        language: a two-letter code.
        normalize: normalise punctuation and put a space for each character that does not print
            (``normalize-punctuation.perl``, ``remove-non-printing-char.perl``).
        tokenize: separate the tokens and escape the characters special to Moses
            (``tokenizer.perl``).
        split_dashes: split words at dashes, too (its ``-a``).
        lowercase: write small letters only (``lowercase.perl``).
    """

    language: str
    normalize: bool = False
    tokenize: bool = False
    split_dashes: bool = False
    lowercase: bool = False

    def __post_init__(self) -> None:
        self._normalizer = MosesPunctNormalizer(self.language)
        self._tokenizer = MosesTokenizer(self.language)

    def __call__(self, line: str) -> str:
        if self.normalize:
            line = regex.sub(r"\p{C}", " ", self._normalizer.normalize(line))
        if self.tokenize:
            line = self._tokenizer.tokenize(
                line, aggressive_dash_splits=self.split_dashes, return_str=True
            )
        return " ".join((line.lower() if self.lowercase else line).split())


def learn_codes(texts: Sequence[Path], merges: int, codes: Path) -> None:
    """Learn BPE on several texts together and write subword-nmt's codes.

    Raises:
        ValueError: if the texts have no word of two letters.
    """
    words: Counter[str] = Counter()
    for text in texts:
        for line in stream_lines(text, f"words of {text.name}"):
            words.update(line.split())
    if not any(len(word) > 1 for word in words):  # the texts are a preparation's own, soon gone
        raise ValueError("the training text has no word of two letters to learn BPE from.")
    learn_bpe.tqdm = partial(tqdm, desc="merges", disable=None)  # its own bar fills up logs
    with naming(codes), open(codes, "w", encoding="utf-8", newline="\n") as file:
        counted = (f"{word} {count}\n" for word, count in words.items())
        learn_bpe.learn_bpe(counted, file, merges, is_dict=True)
    if count_lines(codes) < 2:  # a line about the version
        raise ValueError("the training text has no two letters twice to learn BPE from.")


def learn_sentencepiece(texts: Sequence[Path], size: int, model: Path) -> None:
    """Learn a SentencePiece vocabulary (unigram model) on several texts together.

    Raises:
        ValueError: if the texts do not allow this size.
    """
    lines = itertools.chain.from_iterable(
        stream_lines(text, f"sentences of {text.name}") for text in texts
    )
    written = BytesIO()
    sentencepiece.set_random_generator_seed(1)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=lines,
            model_writer=written,
            vocab_size=size,
            character_coverage=1.0,
            input_sentence_size=SAMPLE,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).rpartition("] ")[2].rstrip(".")
        raise ValueError(f"SentencePiece cannot learn {size} pieces: {reason}.") from None
    model.write_bytes(written.getvalue())


class Bpe:
    """A line in BPE subwords, with ``@@`` after all but the last of a word."""

    def __init__(self, codes: Path) -> None:
        try:
            with codes.open(encoding="utf-8") as file, redirect_stderr(StringIO()):
                self._bpe = apply_bpe.BPE(file)
        except (SystemExit, ValueError, IndexError):
            raise ValueError(f"{codes} does not hold subword-nmt's BPE codes.") from None

    def __call__(self, line: str) -> str:
        if len(self._bpe.cache) > CACHED_WORDS:
            self._bpe.cache.clear()
        return self._bpe.process_line(line)


class SentencePiece:
    """A line in SentencePiece's pieces, with ``▁`` before each word."""

    def __init__(self, model: Path) -> None:
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        except (RuntimeError, OSError):
            raise ValueError(f"{model} is not a SentencePiece model.") from None

    def __call__(self, line: str) -> str:
        return " ".join(self._processor.encode(line, out_type=str))


def refuse_symbols(part: str, lines: Sequence[str]) -> None:
    """Refuse words that are symbols of fairseq's dictionaries; Moses' tokenizer escapes them.

    Raises:
        ValueError: naming the word, the part of the data and the lines.
    """
    words = {word for line in lines if "<" in line for word in line.split()}
    if found := SYMBOLS & words:
        shown = ", ".join(repr(line[:80]) for line in lines)
        raise ValueError(
            f"{part} has the word {min(found)}, a symbol of fairseq's: escape it ({shown})."
        )


def transform(
    pairs: Iterable[Pair], source: Side, target: Side, workers: int = 1
) -> Iterator[Pair]:
    """Change each side of each pair, in worker processes, and keep the order.

    Args:
        pairs: read only as far as the workers need.
        source, target: what is done to a line of that side; picklable.
        workers: the number of processes; with 1 all is done in this one.
    """
    stream = iter(pairs)
    batches = iter(lambda: list(itertools.islice(stream, BATCH)), [])
    if workers == 1:
        for batch in batches:
            yield from _transform(source, target, batch)
        return
    with ProcessPoolExecutor(workers, initializer=_start, initargs=(source, target)) as pool:
        waiting: deque[Future[list[Pair]]] = deque()
        for batch in batches:
            waiting.append(pool.submit(_work, batch))
            if len(waiting) > 2 * workers:  # all of them busy, and no more read than this
                yield from waiting.popleft().result()
        for future in waiting:
            yield from future.result()


def _transform(source: Side, target: Side, batch: list[Pair]) -> list[Pair]:
    return [(source(one), target(other)) for one, other in batch]


_sides: list[Side] = []  # what a worker process does to a source and to a target line


def _start(source: Side, target: Side) -> None:
    """Have a worker leave interrupts to its parent, and end when the parent was killed."""
    _sides[:] = source, target
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None  # this runs in a worker

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(batch: list[Pair]) -> list[Pair]:
    source, target = _sides
    return _transform(source, target, batch)
