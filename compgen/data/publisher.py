"""The publishers' own files: from a folder at hand, or downloaded; never without being checked."""

import contextlib
import os
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

from compgen.data.checksums import check_file, read_checksums, sha256
from compgen.data.fetch import fetch


def expected(
    official: Mapping[str, str | None], listed: Path | None, settings: MutableMapping[str, Any]
) -> dict[str, str | None]:
    """The checksums that the files must have: the publisher's, or those that the user lists.

    Args:
        official: the publisher's SHA-256 by file; None where it is not known.
        listed: the file of ``--checksums``, if one is given; its own digest goes into ``settings``.
        settings: of the folder to be prepared.

    Raises:
        ValueError: ``listed`` is missing, is no such list or names none of the files.
    """
    if listed is None:
        return dict(official)
    digests = read_checksums(listed)
    if not digests.keys() & official.keys():
        raise ValueError(f"{listed} lists none of {', '.join(official)}.")
    settings["checksums"] = sha256(listed)
    return {name: digests.get(name, digest) for name, digest in official.items()}


def own_copy(name: str, folder: Path | None) -> Path | None:
    """The user's copy of a data set: ``folder``, else ``$COMPGEN_DATA/name`` if it is there.

    Raises:
        ValueError: ``$COMPGEN_DATA`` is not a folder.
    """
    data = os.environ.get("COMPGEN_DATA")
    if folder is not None or not data:
        return folder
    if not Path(data).is_dir():
        raise ValueError(f"COMPGEN_DATA={data} is not a folder.")
    return Path(data, name) if Path(data, name).is_dir() else None


def copy_at_hand(name: str, folder: Path | None) -> Path | None:
    """As :func:`own_copy`, but none where ``$COMPGEN_DATA`` is none: nothing need be read."""
    with contextlib.suppress(ValueError):
        return own_copy(name, folder)
    return None


def collect(
    name: str,
    files: Mapping[str, str | None],
    url: str | None,
    downloads: Path,
    folder: Path | None,
) -> dict[str, Path]:
    """Find the publisher's files and check them; download what is nowhere at hand.

    Args:
        name: the data set's folder in ``$COMPGEN_DATA``.
        files: the paths in the publisher's repository with their SHA-256; None where it is not
            known, so that a download could not be checked.
        url: where the publisher's repository is served file by file; None if nowhere.
        downloads: the folder for downloads, ``Preparation.folder / "downloads"``.
        folder: the user's own copy of the repository; by default ``$COMPGEN_DATA/name``.

    Returns:
        Where each of ``files`` is.

    Raises:
        ValueError: a file is missing, is not the publisher's or cannot be downloaded.
    """
    folder = own_copy(name, folder)
    if folder is not None:
        found = {file: folder / file for file in files}
        for file, path in found.items():
            check_file(path, files[file])
        return found
    digests = {file: digest for file, digest in files.items() if digest is not None}
    for file in files:
        if url is None:
            raise ValueError(
                f"{file} is not offered for download; name the folder that has it with --from"
                " (see --help)."
            )
        if file not in digests:
            raise ValueError(
                f"{file} has no known checksum, so it is not downloaded; get it from its"
                " publisher and name the folder with --from (see --help)."
            )
    return {
        file: fetch(f"{url}/{file}", digest, downloads / file) for file, digest in digests.items()
    }
