"""Data sets that are published as archives: found packed or unpacked, checked, read in memory."""

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from compgen.data.publisher import collect, own_copy
from compgen.text import split_lines

LIMIT = 1 << 28  # bytes that an archive may unpack to; the largest of the publishers' has a tenth


@dataclass(frozen=True)
class Package:
    """A file at its publisher's: an archive, or a text file by itself.

    Args:
        name: the file's name, also in a folder that has it.
        members: what is read of an archive; a text file has none.
        url: the address before ``/name``; None if it is not offered for download.
        sha256: the publisher's file's; None if it is not known.
    """

    name: str
    members: Sequence[str] = ()
    url: str | None = None
    sha256: str | None = None


def official(packages: Sequence[Package]) -> dict[str, str | None]:
    """The known SHA-256 of the packages and of their members, for ``publisher.expected``."""
    names = {member: None for package in packages for member in package.members}
    return {**names, **{package.name: package.sha256 for package in packages}}


def gather(
    name: str,
    packages: Sequence[Package],
    digests: Mapping[str, str | None],
    downloads: Path,
    folder: Path | None,
) -> tuple[dict[str, list[str]], dict[str, Path]]:
    """Read the lines of a data set's files, from unpacked files or else from the archives.

    Args:
        name, downloads: as for :func:`compgen.data.publisher.collect`.
        packages: what the publisher offers.
        digests: the SHA-256 that packages and members must have, where it is known.
        folder: the user's own copy, with the archives or with what they unpack to; by default
            ``$COMPGEN_DATA/name``.

    Returns:
        The lines of each text file, and where each file is that was read.

    Raises:
        ValueError: a file is missing, damaged, not the publisher's or cannot be downloaded.
    """
    folder = own_copy(name, folder)
    lines: dict[str, list[str]] = {}
    inputs: dict[str, Path] = {}
    for package in packages:
        unpacked = folder is not None and all((folder / m).is_file() for m in package.members)
        if unpacked and folder and (folder / package.name).is_file():  # rather what can be checked
            unpacked = not digests[package.name] or all(digests[m] for m in package.members)
        wanted = package.members if package.members and unpacked else [package.name]
        files = {file: digests[file] for file in wanted}
        found = collect(name, files, package.url, downloads, folder)
        inputs |= found
        if package.members and not unpacked:
            texts = _members(found[package.name], package.members)
        else:
            texts = {file: path.read_bytes() for file, path in found.items()}
        lines |= {file: _lines(file, text) for file, text in texts.items()}
    return lines, inputs


def _members(archive: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The files in a ``.zip`` or ``.tar.gz`` archive, by name; nothing is unpacked to the disk."""
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as file:
                found = {}
                for name in set(file.namelist()) & set(names):
                    with file.open(name) as stream:
                        found[name] = _bounded(archive, stream)  # to its end: it checks the CRC
        else:
            with gzip.open(archive) as packed:
                whole = _bounded(archive, packed)  # to its end, which has the checksum
            with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
                found = {
                    name: content.read()
                    for member in tar
                    if (name := member.name.removeprefix("./")) in names
                    and (content := tar.extractfile(member))
                }
    except (
        *(tarfile.TarError, zipfile.BadZipFile, zlib.error),
        *(EOFError, OSError, KeyError, RuntimeError),
    ) as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{archive} is cut short or damaged ({reason}); get it again.") from None
    for name in names:
        if name not in found:
            raise ValueError(f"{archive} has no {name}: it is another version.")
    return found


def _bounded(archive: Path, stream: IO[bytes] | gzip.GzipFile) -> bytes:
    """What a stream of an archive holds, up to its end."""
    found = stream.read(LIMIT + 1)
    if len(found) > LIMIT:
        raise ValueError(
            f"{archive} unpacks to more than {LIMIT >> 20} MiB: it is not the publisher's."
        )
    return found


def _lines(name: str, text: bytes) -> list[str]:
    """The lines of UTF-8 text."""
    try:
        return split_lines(text.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8 text: {error}.") from None
