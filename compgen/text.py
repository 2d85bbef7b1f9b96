"""Text and JSON files: read whole, or refused in a sentence."""

import contextlib
import fnmatch
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Have errors of the system name the file that they are about: they become a ValueError."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None


def read_text(path: Path | str) -> str:
    """The text of a UTF-8 file, without the mark (BOM) that Windows puts before it.

    Raises:
        ValueError: if it cannot be read; the message names the file.
    """
    try:
        with naming(path), open(path, encoding="utf-8-sig", newline="\n") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text ({error.reason})") from None


def files_below(folder: Path, name: str) -> list[Path]:
    """The files of this name, a pattern, in and below a folder and the folders that are linked
    there, each once, by its own path rather than a link's; sorted."""
    files = sorted(folder.rglob(name), key=Path.is_symlink, reverse=True)
    found = {os.path.realpath(file): file for file in files}
    seen: set[str] = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        if (real := os.path.realpath(place)) in seen:
            folders.clear()
        seen.add(real)
        for file in fnmatch.filter(names, name):
            found.setdefault(os.path.realpath(Path(place, file)), Path(place, file))
    return sorted(found.values())


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        ValueError: if it cannot be read; the message names it.
    """
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # thousands of brackets
        raise ValueError(f"{path}: not JSON ({error})") from None


def read_lines(path: Path | str, n: int | None = None) -> list[str]:
    """The lines of a UTF-8 file without their ends; only a line feed ends a line.

    Args:
        path: the file.
        n: how many sentences there are, if the file has a line for each.

    Raises:
        ValueError: if it cannot be read, or has not ``n`` lines; the message names the file.
    """
    lines = split_lines(read_text(path))
    if n is not None and len(lines) != n:
        raise ValueError(f"{path}: it has {len(lines)} lines, for {n} sentences")
    return lines


def split_lines(text: str) -> list[str]:
    """The lines of a text without their ends; only a line feed ends a line."""
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def single_spaced(lines: Iterable[str]) -> list[str]:
    """The lines with one space between words and none around them."""
    return [" ".join(line.split()) for line in lines]


def suffix(path: Path) -> str:
    """How a file's name ends, but for ``.gz``."""
    return Path(path.name.removesuffix(".gz")).suffix


def joined(text: str) -> str:
    """A text whose subwords, BPE's or SentencePiece's, are words again."""
    text = f"{text} ".replace("@@ ", "").removesuffix(" ")
    return text.replace(" ", "").replace("▁", " ").strip() if "▁" in text else text


def in_subwords(sentences: Iterable[str]) -> bool:
    """Whether a sentence has a mark of BPE's or SentencePiece's subwords."""
    return any("@@ " in sentence or "▁" in sentence for sentence in sentences)


def table(name: Path | str, lines: Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """Columns of a table: fields with tabs between, without quotes, and a line of their names.

    Args:
        name: the file's, for messages.
        lines: of the file.
        columns: the names of those that are wanted.

    Returns:
        Of each line but the first the fields of these columns, without white space around them.

    Raises:
        ValueError: a column is missing, or a line has more or fewer fields than the first.
    """
    header = lines[0].split("\t") if lines else []
    if missing := [column for column in columns if column not in header]:
        raise ValueError(
            f"{name} has no column {missing[0]!r}; its first line names {', '.join(header)}."
        )
    places = [header.index(column) for column in columns]
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != len(header):
            raise ValueError(
                f"{name}, line {number} has {len(fields)} fields, but the first has {len(header)}."
            )
        rows.append([fields[place].strip() for place in places])
    return rows


def read_fields(path: Path, n: int) -> list[list[str]]:
    """The fields of each line, with tabs between them.

    Raises:
        ValueError: the file cannot be read, or a line has more or fewer than ``n``.
    """
    rows = [line.split("\t") for line in read_lines(path)]
    for number, row in enumerate(rows, start=1):
        if len(row) != n:
            raise ValueError(f"{path}, line {number} does not have {n} fields with tabs between.")
    return rows


def read_dictionary(path: Path) -> list[str]:
    """The types of a fairseq dictionary, in its order.

    Raises:
        ValueError: it cannot be read, a line is no type with its count, or a type stands twice.
    """
    types: list[str] = []
    known = {"<s>", "<pad>", "</s>", "<unk>"}
    for line in read_lines(path):
        entry = line.removesuffix(" #fairseq:overwrite")
        name, _, count = entry.rpartition(" ")
        if not count.isdecimal() or (entry == line and name in known):
            raise ValueError(f"{path} is not a fairseq dictionary.")
        known.add(name)
        types.append(name)
    return types


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write the lines as UTF-8 text, each with its newline.

    Raises:
        ValueError: if they cannot be written.
    """
    with naming(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)


def count_lines(path: Path) -> int:
    """The number of newlines in a file."""
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
