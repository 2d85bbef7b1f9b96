"""Numbers as files."""

import csv
import json

import pytest

from compgen_fairseq.analysis.writing import write_csv, write_json


def test_what_is_written_can_be_read(tmp_path):
    rows = [{"word": "狗, 猫", "count": 3}, {"word": 'a "b"', "count": None}]
    path = write_csv(tmp_path / "new" / "table.csv", rows)
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == [
            {"word": "狗, 猫", "count": "3"},
            {"word": 'a "b"', "count": ""},
        ]
    path = write_json(tmp_path / "new" / "table.json", rows)
    assert json.loads(path.read_text(encoding="utf-8")) == rows
    assert sorted(p.name for p in path.parent.iterdir()) == ["table.csv", "table.json"]


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    path = tmp_path / "table.json"
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"loss": float("nan")})
    assert not list(tmp_path.iterdir())
    path.mkdir()
    with pytest.raises(ValueError, match=r"table\.json: Is a directory"):
        write_json(path, [])
    assert [p.name for p in tmp_path.iterdir()] == ["table.json"]
