"""Archives of the publishers: found, checked, read, never unpacked."""

from pathlib import Path

import pytest
from sentence_files import pack

from compgen.data import archives
from compgen.data.archives import Package, gather, official
from compgen.data.checksums import sha256

TEXTS = {"set/train.tsv": "\ufeffa\tb\r\nc\td\u2028e\n", "set/dev.tsv": "f\n\ng", "set/other": "x"}
LINES = {"set/train.tsv": ["a\tb", "c\td\u2028e"], "set/dev.tsv": ["f", "", "g"]}


def package(name: str, url: str | None = None) -> Package:
    return Package(name, ("set/train.tsv", "set/dev.tsv"), url)


def read(one: Package, folder: Path | None, **digests: str) -> tuple:
    known = {**official([one]), **digests}
    return gather("set", [one], known, Path("/nowhere"), folder)


@pytest.mark.parametrize("name", ["set.zip", "set.tar.gz"])
def test_packed_and_unpacked_are_the_same(name: str, tmp_path: Path) -> None:
    archive = pack(tmp_path / name, TEXTS)
    lines, inputs = read(package(name), tmp_path)
    assert lines == LINES
    assert inputs == {name: archive}
    assert [path.name for path in tmp_path.iterdir()] == [name]
    (tmp_path / "set").mkdir()
    for member, text in TEXTS.items():
        (tmp_path / member).write_bytes(text.encode())
    checked = {name: sha256(archive)}
    for known in (checked, checked | {"set/dev.tsv": sha256(tmp_path / "set" / "dev.tsv")}):
        assert read(package(name), tmp_path, **known)[1] == {name: archive}
    archive.unlink()
    lines, inputs = read(package(name), tmp_path)
    assert lines == LINES
    assert set(inputs) == set(LINES)


@pytest.mark.parametrize("name", ["set.zip", "set.tar.gz"])
def test_cut_archive(name: str, tmp_path: Path) -> None:
    archive = pack(tmp_path / name, TEXTS)
    archive.write_bytes(archive.read_bytes()[:-3])
    with pytest.raises(ValueError, match=rf"{name} is cut short or damaged \(.*\); get it again"):
        read(package(name), tmp_path)


def test_changed_byte_in_a_zip(tmp_path: Path) -> None:
    archive = pack(tmp_path / "set.zip", TEXTS)
    archive.write_bytes(archive.read_bytes().replace(b"f\n\ng", b"f\n\nh"))
    with pytest.raises(ValueError, match=r"set\.zip is cut short or damaged"):
        read(package("set.zip"), tmp_path)


@pytest.mark.parametrize("name", ["set.zip", "set.tar.gz"])
def test_what_unpacks_to_too_much_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(tmp_path / name, {**TEXTS, "set/dev.tsv": 10_000_000 * "0"})
    monkeypatch.setattr(archives, "LIMIT", 1 << 20)
    with pytest.raises(ValueError, match=rf"{name} unpacks to more than 1 MiB"):
        read(package(name), tmp_path)


def test_wrong_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMPGEN_DATA", raising=False)
    pack(tmp_path / "set.zip", {"set/dev.tsv": "x"})
    with pytest.raises(ValueError, match=r"set\.zip has no set/train\.tsv"):
        read(package("set.zip"), tmp_path)
    with pytest.raises(ValueError, match=r"set\.zip is not the publisher's file"):
        read(package("set.zip"), tmp_path, **{"set.zip": 64 * "0"})
    with pytest.raises(ValueError, match=r"set\.zip is not offered for download.*--from"):
        read(package("set.zip"), None)
    (tmp_path / "text").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="text is not UTF-8 text"):
        read(Package("text"), tmp_path)
