"""The speed comparison runs from its command line and reports every model."""

import json
import logging

import pytest
import throughput
from small_models import PREDICTORS, SIZES

QUICK = "--max-tokens 100 --sentences 4 --batches 2 --rounds 2 --beam 2 --threads 1 --cpu".split()
SMALL = " ".join(map(str, SIZES))
PREDICTED = " ".join(map(str, SIZES + PREDICTORS))


def test_reports_every_model_and_its_ratios_to_the_baseline(
    tiny_data, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(logging, "disable", lambda level: None)  # for good
    arguments = [
        str(tiny_data),
        *("--arch", f"theirs=transformer: {SMALL} --decoder-embed-dim 16"),
        *("--arch", f"plain = sq_transformer: {SMALL} --attention plain"),
        *("--arch", f"sal=sq_transformer_scan: {PREDICTED}"),
        *("--arch", f"again=sq_transformer_scan: {PREDICTED}"),
        *("--baseline", "plain", "--json", str(tmp_path / "out.json"), *QUICK),
    ]
    assert not throughput.main(arguments)
    lines = capsys.readouterr().out.splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if "|" in line]
    assert [row[0] for row in rows] == ["model", "---", "theirs", "plain", "sal", "again"]
    assert [rows[0][i] for i in (3, 5, 7)] == 3 * ["x plain"]
    assert [rows[3][i] for i in (3, 5, 7)] == 3 * ["1.00"]

    report = json.loads((tmp_path / "out.json").read_text())
    assert "1 threads" in report["setting"]
    models = {model.pop("label"): model for model in report["models"]}
    assert list(models) == ["theirs", "plain", "sal", "again"]
    for model in models.values():
        assert all(value > 0 for value in model.values())
        # parameters and Adam's two moments are the least that an update holds, in single precision
        assert model["memory"] > 3 * 4 * model["parameters"]
    assert models["sal"]["memory"] == models["again"]["memory"]
    assert models["sal"]["operations"] == models["again"]["operations"]
    assert models["sal"]["memory_ratio"] > 1.2
    assert models["sal"]["parameters"] > models["plain"]["parameters"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--arch", "x=no_such_arch"], "no architecture is called 'no_such_arch'"),
        (["--arch", "sq_transformer: --no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["--arch", "sq_transformer", "--baseline", "lstm"], "--baseline 'lstm' is none of"),
        (["--arch", "transformer", "--arch", "transformer"], "two models have one label"),
        ([], "give --suite or --arch"),
    ],
)
def test_bad_arguments_end_in_one_sentence(tiny_data, args, message):
    with pytest.raises(SystemExit, match=f"^throughput: .*{message}.*$"):
        throughput.main([str(tiny_data), *args, *QUICK])


def test_a_folder_without_data_is_named(tmp_path):
    with pytest.raises(
        SystemExit, match=f"{tmp_path} is not a folder that fairseq-preprocess wrote"
    ):
        throughput.main([str(tmp_path), "--arch", "transformer", *QUICK])
