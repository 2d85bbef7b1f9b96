"""Files that commands write."""

import csv
import json
import os
from pathlib import Path

import pytest

from compgen.output import write_csv, write_files, write_json
from compgen.text import write_lines


def test_all_files_are_written_or_none(tmp_path):
    write_files((tmp_path / "a", "1"), (tmp_path / "b", "2"), (None, "3"), ("", "4"))
    (tmp_path / "folder").mkdir()
    for bad in (tmp_path / "folder", tmp_path / "none" / "c", tmp_path / "a" / "c"):
        with pytest.raises(ValueError, match=rf"^{bad}: "):
            write_files((tmp_path / "a", "3"), (bad, "4"), (tmp_path / "b", "5"))
    with pytest.raises(ValueError, match=r"a would hold two outputs"):
        write_files((tmp_path / "a", "3"), (tmp_path / "folder" / ".." / "a", "4"))
    assert [(tmp_path / name).read_text() for name in "ab"] == ["1", "2"]
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "folder"}


def test_what_is_written_can_be_read(tmp_path):
    rows = [{"word": "狗, 猫", "count": 3}, {"word": 'a "b"', "count": None}]
    path = write_csv(tmp_path / "new" / "er" / "table.csv", rows)
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == [
            {"word": "狗, 猫", "count": "3"},
            {"word": 'a "b"', "count": ""},
        ]
    assert b"\r" not in path.read_bytes()
    assert write_csv(tmp_path / "empty.csv", []).read_text() == "\n"
    path = write_json(path.with_name("table.json"), rows)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == rows and "狗" in text
    assert sorted(p.name for p in path.parent.iterdir()) == ["table.csv", "table.json"]


def test_a_full_disk_is_named():
    for write in (write_lines, write_json):
        with pytest.raises(ValueError, match=r"^/dev/full: No space left on device$"):
            write(Path("/dev/full"), ["text"])


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    path = tmp_path / "table.json"
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"loss": float("nan")})
    assert not list(tmp_path.iterdir())
    path.mkdir()
    with pytest.raises(ValueError, match=r"table\.json: Is a directory"):
        write_json(path, [])
    assert [p.name for p in tmp_path.iterdir()] == ["table.json"]


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path):
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("file")
    (tmp_path / "file").write_text("0")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_files((link, "1"), (pipe, "2"))
    assert (os.read(reader, 9), link.readlink()) == (b"2", Path("file"))
    os.close(reader)
    assert (tmp_path / "file").read_text() == "1"
    assert {path.name for path in tmp_path.iterdir()} == {"file", "link", "pipe"}
