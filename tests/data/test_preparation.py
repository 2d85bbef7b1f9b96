"""Prepared folders: known again or refused, made whole or not at all, steps that outlive a kill."""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from prepare_scripts import contents

from compgen.data.checksums import checksums, read_checksums, sha256
from compgen.data.fetch import fetch
from compgen.data.preparation import Preparation
from compgen.text import count_lines, read_lines, write_lines

SETTINGS = {"valid": "dev", "seed": None}


def make(dest: Path, settings: Mapping[str, object] = SETTINGS) -> Preparation:
    return Preparation("prepare/some.sh", dest, settings)


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """A folder as a finished run leaves it, as far as ``done`` looks at it."""
    folder = tmp_path / "done"
    write_lines(folder / "raw" / "train.en", ["a", "b"])
    record = {
        "command": "prepare/some.sh DEST --valid dev",
        "settings": SETTINGS,
        "sha256": checksums(folder),
    }
    (folder / "PREPARED.json").write_text(json.dumps(record))
    return folder


def test_done(done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert not make(tmp_path / "empty").done()
    assert not make(tmp_path / "new" / "folder").done()
    assert capsys.readouterr().out == ""
    assert make(done).done()
    assert "is already prepared" in capsys.readouterr().out


def test_done_refuses_another_copy_of_what_was_read(done: Path, tmp_path: Path) -> None:
    record = json.loads((done / "PREPARED.json").read_text())
    for name in ("train.tsv", "kept elsewhere"):
        (tmp_path / name).write_text("a")
    record["inputs"] = {n: sha256(tmp_path / n) for n in ("train.tsv", "kept elsewhere")}
    (done / "PREPARED.json").write_text(json.dumps(record))
    (tmp_path / "kept elsewhere").unlink()
    assert make(done).done(folder=tmp_path) and make(done).done()
    (tmp_path / "train.tsv").write_text("b")
    with pytest.raises(ValueError, match="prepared before its inputs changed"):
        make(done).done(folder=tmp_path)


def test_done_refuses_other_settings(done: Path) -> None:
    for settings, told in (
        ({**SETTINGS, "max_words": 2}, "--max-words not given, now 2"),
        (dict.fromkeys(SETTINGS, "x"), '--valid "dev", now "x"'),
    ):
        with pytest.raises(ValueError, match=rf"with other settings \({told}[);]"):
            make(done, settings).done()
    assert make(done, {"valid": "dev", "new": None}).done()  # an option that came later


def test_done_refuses_another_edition_of_the_script(done: Path) -> None:
    record = json.loads((done / "PREPARED.json").read_text())
    for edition in ({"edition": 1}, {}):  # folders from before editions have none
        rest = {name: value for name, value in record.items() if name != "edition"}
        (done / "PREPARED.json").write_text(json.dumps(rest | edition))
        assert make(done).done()
    (done / "PREPARED.json").write_text(json.dumps(record | {"edition": 2}))
    with pytest.raises(ValueError, match="by another version of this script"):
        make(done).done()


@pytest.mark.parametrize("text", ["a\n", "a\nc\n", None], ids=["cut", "changed", "removed"])
def test_done_names_a_file_that_is_not_as_it_was(done: Path, text: str | None) -> None:
    path = done / "raw" / "train.en"
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=r"train\.en is missing or changed"):
        make(done).done()


def test_done_refuses_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="not prepared by this script"):
        make(tmp_path / "file").done()


@pytest.mark.parametrize(
    "record",
    [
        *(None, "{}", "[]", "not JSON", {"sha256": {}}, {"command": "prepare/other.sh DEST"}),
        *({"settings": ["dev"]}, {"inputs": ["train.tsv"]}),
    ],
)
def test_done_refuses_what_is_not_prepared(done: Path, record: str | dict | None) -> None:
    path = done / "PREPARED.json"
    if isinstance(record, dict):
        path.write_text(json.dumps({**json.loads(path.read_text()), **record}))
    elif record is not None:
        path.write_text(record)
    else:
        path.unlink()
    before = contents(done)
    with pytest.raises(ValueError, match="not prepared by this script"):
        make(done).done()
    assert contents(done) == before


def test_a_link_in_place_of_the_work_folder_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine" / "data-1"
    mine.mkdir(parents=True)
    (mine / "notes").touch()
    (tmp_path / ".dest.preparing").symlink_to(mine.parent)
    with pytest.raises(ValueError, match=r"\.dest\.preparing is a link"), make(tmp_path / "dest"):
        pass
    assert (mine / "notes").exists()


def test_nothing_is_left_of_a_download_that_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compgen.data.fetch.PAUSE", 0)
    with pytest.raises(ValueError), make(tmp_path / "new" / "folder" / "dest") as work:
        fetch("http://127.0.0.1:1/archive", 64 * "0", work.folder / "downloads" / "archive")
    assert list(tmp_path.iterdir()) == []


def test_error_leaves_nothing_but_finished_steps(tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    with pytest.raises(RuntimeError), make(dest) as work:
        write_lines(work.raw / "train.en", ["half"])
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []

    def fail(path: Path) -> None:
        path.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError), make(dest) as work:
        work.step("codes", lambda path: path.write_text("all"))
        work.step("text", fail)
    assert [path.name for path in tmp_path.iterdir()] == [".dest.preparing"]
    names = {path.name for path in (tmp_path / ".dest.preparing").iterdir()}
    assert names == {"codes", "codes.done"}


def test_step_is_used_again_only_if_it_is_the_same_and_whole(tmp_path: Path) -> None:
    made = []

    def write(path: Path) -> None:
        path.mkdir()
        (path / "a").write_text("text")
        made.append(path)

    def times(key: object = None, edition: int = 1) -> int:
        dest = tmp_path / "dest"
        with Preparation("prepare/some.sh", dest, SETTINGS, edition=edition) as work:
            assert (work.step("codes", write, key) / "a").read_text() == "text"
        return len(made)

    folder = tmp_path / ".dest.preparing"
    assert times() == 1
    assert times() == 1
    assert times(key={"merges": 2}) == 2
    (folder / "codes" / "a").write_text("tex")
    assert times(key={"merges": 2}) == 3
    (folder / "codes" / "b").write_text("more")
    assert times(key={"merges": 2}) == 4
    (folder / "codes.done").write_text('{"key": {"mer')
    assert times(key={"merges": 2}) == 5
    (folder / "codes" / "a").unlink()
    assert times(key={"merges": 2}) == 6
    assert times(key={"merges": 2}) == 6
    assert times(key={"merges": 2}, edition=2) == 7


def test_killed_run(tmp_path: Path) -> None:
    """Killed in its second step: the first is used again, the second and the data are not."""
    program = f"""
import os, signal
from collections.abc import Mapping
from pathlib import Path
from compgen.data import preparation
from compgen.text import write_lines

def half(path):
    path.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

with preparation.Preparation("prepare/some.sh", Path("dest"), {SETTINGS!r}) as work:
    work.step("first", lambda path: path.write_text("killed run"))
    write_lines(work.raw / "train.en", ["half"])
    work.step("second", half)
"""
    killed = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == [".dest.preparing"]
    names = {path.name for path in (tmp_path / ".dest.preparing").iterdir()}
    assert {"first", "first.done", "second.partial"} < names
    assert not make(tmp_path / "dest").done()
    with make(tmp_path / "dest") as work:
        assert list(work.data.rglob("*")) == [work.raw]
        assert work.step("first", lambda path: path.write_text("new")).read_text() == "killed run"
        assert work.step("second", lambda path: path.write_text("new")).read_text() == "new"


def test_two_runs_at_once(tmp_path: Path) -> None:
    with (
        make(tmp_path / "dest"),
        pytest.raises(ValueError, match="another run"),
        make(tmp_path / "dest"),
    ):
        pass
    with make(tmp_path / "dest"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_checksum_list(tmp_path: Path) -> None:
    (tmp_path / "a b").write_text("a")
    digest = sha256(tmp_path / "a b")
    (tmp_path / "sums").write_text(f"{digest}  ./a b\n{digest} *c\n")
    assert read_checksums(tmp_path / "sums") == {"a b": digest, "c": digest}
    for line in ("", digest, f"{digest[1:]}  a", f"{'x' * 64}  a"):
        (tmp_path / "sums").write_text(f"{digest}  a\n{line}\n")
        with pytest.raises(ValueError, match="sums, line 2 is not of the form"):
            read_checksums(tmp_path / "sums")


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "text"
    lines = ["a\u2028b", "c\x85d\x0c", "", "e\u3000f"]
    write_lines(path, lines)
    assert read_lines(path) == lines
    assert path.read_bytes().decode() == "".join(f"{line}\n" for line in lines)
    assert count_lines(path) == len(lines)
    path.write_bytes(b"a\rb\r\nc")
    assert read_lines(path) == ["a\rb", "c"]
    with pytest.raises(ValueError, match="it has 2 lines, for 1 sentences"):
        read_lines(path, 1)
    path.write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="text: not UTF-8"):
        read_lines(path)
