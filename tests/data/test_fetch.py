"""Downloads from a server that behaves badly."""

import hashlib
import os
import sys
import termios
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from serving import serving

from compgen.data import fetch as fetching
from compgen.data.fetch import fetch

CONTENT = bytes(range(256)) * 4000  # about 1 MB
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Publisher(ThreadingHTTPServer):
    """Serves ``CONTENT``; ``breaks`` are how many bytes it sends before it hangs up, by request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.ranges, self.status = CONTENT, True, 0
        self.breaks: list[int] = []
        self.asked: list[str | None] = []
        self.url = f"http://127.0.0.1:{self.server_port}/archive.tgz"


class Handler(BaseHTTPRequestHandler):
    server: Publisher

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers["Range"]
        server.asked.append(wanted)
        if server.status:
            return self.send_error(server.status)
        start = int(wanted[len("bytes=") : -1]) if wanted and server.ranges else 0
        if start >= len(server.content):
            return self.send_error(416)
        rest = server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: server.breaks.pop(0)] if server.breaks else rest)
        return None


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Publisher]:
    monkeypatch.setattr(fetching, "PAUSE", 0)
    monkeypatch.setenv("no_proxy", "*")
    with serving(Publisher()) as server:
        yield server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "archive.tgz"


def test_whole_file(publisher: Publisher, path: Path) -> None:
    assert fetch(publisher.url, SHA256.upper(), path) == path
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]


def test_present_file_is_not_asked_for_again(publisher: Publisher, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    fetch(publisher.url, SHA256, path)
    assert publisher.asked == []


def test_present_file_must_be_the_right_one(publisher: Publisher, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"mine")
    with pytest.raises(ValueError, match=r"archive\.tgz is there but is not http.*remove it"):
        fetch(publisher.url, SHA256, path)
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("ranges", [True, False])
def test_broken_connection(publisher: Publisher, path: Path, ranges: bool) -> None:
    publisher.ranges, publisher.breaks = ranges, [400_000, 300_000]
    fetch(publisher.url, SHA256, path)
    assert path.read_bytes() == CONTENT
    assert publisher.asked[:2] == [None, "bytes=400000-"]
    # a server that knows no ranges sends all again
    assert publisher.asked[2:] == ["bytes=700000-" if ranges else "bytes=300000-"]


@pytest.mark.parametrize("size", [999_999, len(CONTENT)], ids=["part", "killed before the rename"])
def test_part_of_an_earlier_run(publisher: Publisher, path: Path, size: int) -> None:
    path.parent.mkdir()
    part = path.with_name("archive.tgz.part")
    part.write_bytes(CONTENT[:size])
    fetch(publisher.url, SHA256, path)
    assert path.read_bytes() == CONTENT
    assert publisher.asked == [f"bytes={size}-"]
    assert not part.exists()


def test_part_of_something_else(publisher: Publisher, path: Path) -> None:
    path.parent.mkdir()
    path.with_name("archive.tgz.part").write_bytes(b"!" * 1000)
    with pytest.raises(ValueError, match=f"^{publisher.url} .* not {SHA256}; it was removed"):
        fetch(publisher.url, SHA256, path)
    assert list(path.parent.iterdir()) == []
    fetch(publisher.url, SHA256, path)
    assert path.read_bytes() == CONTENT


def test_hopeless_connection_keeps_what_came(publisher: Publisher, path: Path) -> None:
    publisher.breaks = [1000] + [0] * 50
    with pytest.raises(ValueError, match="the connection broke; run again to resume"):
        fetch(publisher.url, SHA256, path)
    assert len(publisher.asked) == fetching.ATTEMPTS
    assert path.with_name("archive.tgz.part").read_bytes() == CONTENT[:1000]


def test_full_disk_is_no_broken_connection(publisher: Publisher, path: Path) -> None:
    path.parent.mkdir()
    part = path.with_name("archive.tgz.part")
    part.symlink_to("/dev/full")
    with pytest.raises(OSError, match=f"No space left on device: '{part}'"):
        fetch(publisher.url, SHA256, path)
    assert len(publisher.asked) == 1


@pytest.mark.parametrize(("status", "asked"), [(404, 1), (503, fetching.ATTEMPTS)])
def test_refusals(publisher: Publisher, path: Path, status: int, asked: int) -> None:
    publisher.status = status
    with pytest.raises(ValueError, match="Not Found" if status == 404 else "HTTP 503"):
        fetch(publisher.url, SHA256, path)
    assert len(publisher.asked) == asked


def test_no_server(publisher: Publisher, path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be downloaded: .*refused"):
        fetch("http://127.0.0.1:1/archive.tgz", SHA256, path)


def test_other_addresses(path: Path) -> None:
    with pytest.raises(ValueError, match="not an http or https address"):
        fetch("file:///etc/hosts", SHA256, path)


def test_progress_bar(publisher: Publisher, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    with open(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        fetch(publisher.url, SHA256, path)
        shown = ""
        while not shown.endswith("\n"):
            shown += os.read(ours, 10_000).decode()
    os.close(ours)
    assert "archive.tgz: 100%" in shown
    assert "1.02M/1.02M" in shown
