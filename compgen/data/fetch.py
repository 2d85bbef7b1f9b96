"""Downloads that show their progress, resume, and are used only once their checksum matched.

pooch checks checksums, but begins a broken download anew.
"""

import errno
import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path

from tqdm import tqdm

from compgen.data.checksums import sha256 as digest

CHUNK = 1 << 18  # bytes read at once
TIMEOUT = 60  # seconds without a byte
ATTEMPTS = 5  # in a row that bring no byte
PAUSE = 0.5  # seconds before the second attempt; doubled each time
DISK = (errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EROFS)


def fetch(url: str, sha256: str, path: Path) -> Path:
    """Download a file, or take it as it is if it is there already.

    What has arrived is kept beside ``path`` with the suffix ``.part``, and the next call asks the
    server for the rest only (RFC 9110, section 14).  ``path`` itself appears when it is complete
    and its checksum matched.

    Args:
        url: an ``http`` or ``https`` address.
        sha256: the SHA-256 checksum of the file, 64 hexadecimal digits.
        path: where it shall be; missing folders are made.

    Raises:
        ValueError: if the server does not give the file, the connection breaks again and again,
            or the file, downloaded or already there, has another checksum.
        OSError: if the disk cannot take it, with the name of the ``.part``.
    """
    if path.exists():
        _check(path, sha256, f"{path} is there but is not {url}", "remove it and run again")
        return path
    if not url.startswith(("http://", "https://")):  # urllib would open file: addresses too
        raise ValueError(f"{url} is not an http or https address.")
    part = path.with_name(path.name + ".part")
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = 0
    while True:
        before = _size(part)
        try:
            _download(url, part)
            break
        except urllib.error.HTTPError as error:
            if error.code == 416 and before:  # nothing is left to send; the checksum decides
                break
            if error.code < 500 and error.code not in (408, 429):
                raise ValueError(f"{url} cannot be downloaded: {error.reason}.") from None
            reason = f"HTTP {error.code} {error.reason}"
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.errno in DISK:
                raise OSError(error.errno, error.strerror, str(part)) from None
            reason = str(getattr(error, "reason", error)) or type(error).__name__
        except ValueError:
            raise ValueError(f"{url} is not an http or https address.") from None
        failures = 1 if _size(part) > before else failures + 1
        if failures == ATTEMPTS:
            raise ValueError(
                f"{url} cannot be downloaded: {reason}; run again to resume, or name"
                " a copy of your own with --from."
            )
        time.sleep(PAUSE * 2 ** (failures - 1))
    try:
        _check(part, sha256, f"{url} is not what it should be", "it was removed")
    except ValueError:
        part.unlink()
        raise
    part.replace(path)
    return path


def _download(url: str, part: Path) -> None:
    """Append to ``part`` what it lacks, or write it anew if the server sends the whole file."""
    have = _size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        if response.status != 206:
            have = 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        name = part.name.removesuffix(".part")
        with (
            open(part, "ab" if have else "wb") as file,
            tqdm(
                desc=name, total=total, initial=have, unit="B", unit_scale=True, disable=None
            ) as bar,
        ):
            while chunk := response.read(CHUNK):
                file.write(chunk)
                bar.update(len(chunk))
    if total is not None and _size(part) < total:
        raise ConnectionError("the connection broke")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _check(path: Path, sha256: str, problem: str, remedy: str) -> None:
    found = digest(path)
    if found != sha256.lower():
        raise ValueError(f"{problem}: its SHA-256 is {found}, not {sha256}; {remedy}.")
