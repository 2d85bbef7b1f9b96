"""SHA-256 checksums of files and folders."""

import hashlib
from pathlib import Path

from compgen.text import read_lines


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums(path: Path) -> dict[str, str]:
    """The SHA-256 of a file (under the name ``.``) or of every file in a folder, by its path.

    Raises:
        FileNotFoundError: ``path`` is not there.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return {file.relative_to(path).as_posix(): sha256(file) for file in files}
    return {".": sha256(path)}


def read_checksums(path: Path) -> dict[str, str]:
    """The SHA-256 by file name in a list as ``sha256sum`` writes it; a leading ``./`` is left out.

    Raises:
        ValueError: a line of the list has not that form.
    """
    listed = {}
    for number, line in enumerate(read_lines(path), start=1):
        digest, _, name = line.partition(" ")
        name = name.lstrip(" *").removeprefix("./")
        if len(digest) != 64 or set(digest) - set("0123456789abcdef") or not name:
            raise ValueError(f"{path}, line {number} is not of the form 'SHA256  FILE'.")
        listed[name] = digest
    return listed


def check_file(path: Path, expected: str | None) -> None:
    """Make sure that the file ``path`` is there and has the SHA-256 ``expected``, if it is known.

    Raises:
        ValueError: the file is missing or its checksum is another.
    """
    if not path.is_file():
        raise ValueError(f"{path} is missing.")
    if expected is not None and (found := sha256(path)) != expected:
        raise ValueError(
            f"{path} is not the publisher's file: it is truncated, changed or of another version"
            f" (SHA-256 {found}, not {expected}); get it again."
        )
