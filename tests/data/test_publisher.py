"""The publishers' files: found, checked, downloaded."""

import functools
import http.server
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from serving import serving

from compgen.data import cognition, cogs
from compgen.data.checksums import sha256
from compgen.data.publisher import collect, expected
from compgen.text import write_lines


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A publisher's repository with one file, ``data/a``, and where it is served."""
    folder = tmp_path / "repository"
    write_lines(folder / "data" / "a", ["text"])
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        yield folder, f"http://127.0.0.1:{server.server_port}"


def test_order_of_places(
    repository: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = repository
    files = {"data/a": sha256(folder / "data" / "a")}
    downloads = tmp_path / "downloads"
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path))
    # the user's folder, then COMPGEN_DATA, then the publisher
    assert collect("set", files, url, downloads, folder) == {"data/a": folder / "data" / "a"}
    assert collect("repository", files, url, downloads, None) == {"data/a": folder / "data" / "a"}
    assert not downloads.exists()
    assert collect("set", files, url, downloads, None) == {"data/a": downloads / "data" / "a"}
    assert (downloads / "data" / "a").read_text() == "text\n"
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path / "none"))  # mistyped: nothing is downloaded
    assert collect("set", files, url, downloads, folder) == {"data/a": folder / "data" / "a"}
    with pytest.raises(ValueError, match=r"COMPGEN_DATA=.*none is not a folder"):
        collect("set", files, url, downloads, None)


def test_a_list_of_checksums_counts_for_the_files_that_it_names(tmp_path: Path) -> None:
    listed, settings = tmp_path / "sums", {"valid": "dev"}
    listed.write_text(f"{64 * 'a'}  ./data/train.en\n")
    official = {"data/train.en": None, "data/valid.en": 64 * "0"}
    found = expected(official, listed, settings)
    assert found == official | {"data/train.en": 64 * "a"}
    assert settings == {"valid": "dev", "checksums": sha256(listed)}
    assert expected(official, None, settings) == official
    with pytest.raises(ValueError, match="sums lists none of data/test"):
        expected({"data/test": None}, listed, settings)


def test_official_files(public: Callable[[str], Path], tmp_path: Path) -> None:
    for name, module in (("cogs", cogs), ("cognition", cognition)):
        public(name)
        collect(name, module.OFFICIAL, "no address", tmp_path, None)
