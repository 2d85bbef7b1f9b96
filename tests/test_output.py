"""Files that commands write."""

import pytest

from compgen.output import write_files


def test_all_files_are_written_or_none(tmp_path):
    write_files({tmp_path / "a": "1", tmp_path / "b": "2"})
    (tmp_path / "folder").mkdir()
    for bad in (tmp_path / "folder", tmp_path / "none" / "c", tmp_path / "a" / "c"):
        with pytest.raises(ValueError, match=rf"^{bad}: "):
            write_files({tmp_path / "a": "3", bad: "4", tmp_path / "b": "5"})
    assert [(tmp_path / name).read_text() for name in "ab"] == ["1", "2"]
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "folder"}
