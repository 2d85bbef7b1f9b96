"""The figures of what prototypes cost come out of the command."""

import json

import prototypes
import pytest
from small_models import SIZES


def test_reports_every_figure(tiny_data, tmp_path, capsys):
    flags = " ".join(map(str, SIZES))
    quick = "--pairs 200 --full-pairs 200 --max-tokens 100 --batches 1 --rounds 1 --sentences 4"
    command = [str(tiny_data), "--arch", f"proto_transformer: {flags} --prototype-min-count 5"]
    output = tmp_path / "figures.json"
    prototypes.main([*command, *quick.split(), "--length", "3", "--cpu", "--json", str(output)])
    table = capsys.readouterr().out
    figures = json.loads(output.read_text())
    assert {"extraction / epoch", "training, stage 2 / transformer"} < set(figures)
    assert all(f"| {name} |" in table for name in figures)
    assert all(value > 0 for value in figures.values()) and figures["types"] == 6


def test_what_is_no_data_folder_is_named():
    with pytest.raises(SystemExit, match="/none is not a folder"):
        prototypes.main(["/none"])
