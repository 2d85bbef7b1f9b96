"""``compgen-report`` on runs of fairseq-train that compgen-score has scored."""

import json
import re
from pathlib import Path

import pytest

from compgen_fairseq.cli import report, score


@pytest.fixture
def runs(tiny_model, tiny_log, tmp_path, capsys) -> list[str]:
    """The tiny run as if with the seeds 1 and 3: its log, its data's checksums and its scores."""
    log = (tiny_model / "train.log").read_text()
    assert score.main([str(tiny_log), "--json"]) == 0
    scores = capsys.readouterr().out
    folders = [tmp_path / f"plain.{seed}" for seed in (1, 3)]
    for folder in folders:
        folder.mkdir()
        (folder / "train.log").write_text(
            log.replace("'seed': 1,", f"'seed': {folder.suffix[1:]},")
        )
        (folder / "PREPARED.json").write_text('{"sha256": {"dict.src.txt": "0a"}}')
        for name in ("best", "last"):
            (folder / f"test.{name}.json").write_text(scores)
    return [str(folder) for folder in folders]


def test_markdown(runs, tiny_log, capsys):
    percent = re.findall(r"ExactMatch = ([\d.]+)", tiny_log.read_text())[-1]
    assert report.main(runs) == 0
    printed = capsys.readouterr().out
    assert re.search(r"\| plain \| 1, 3 \| \d+ \| \d+\.\d \|\n", printed)
    assert (
        f"| plain | chosen | 2 | {percent} ± 0.00 | {percent} | {percent} | {percent} "
        f"| {percent}, {percent} |\n" in printed
    )
    assert "| plain | last | 2 |" in printed
    assert "`metric:exact_match|case:mixed|n:37|version:" in printed


def test_json_into_a_file(runs, tmp_path, capsys):
    out = tmp_path / "report.json"
    assert report.main([*runs, "--json", "--out", str(out)]) == 0
    assert capsys.readouterr().out == ""
    (row,) = json.loads(out.read_text())["rows"]
    assert [run["seed"] for run in row["runs"]] == [1, 3]
    assert {(s["score"], s["checkpoint"], s["n"], s["std"]) for s in row["scores"]} == {
        ("exact_match", "best", 2, 0),
        ("exact_match", "last", 2, 0),
    }
    assert not list(tmp_path.glob(".report*"))


def test_errors_are_one_sentence_and_leave_nothing(runs, tmp_path, capsys):
    def message(*options: str) -> str:
        assert report.main(list(options)) == 1
        out, message = capsys.readouterr()
        assert out == "" and message.count("\n") == 1 and message.startswith("compgen-report: ")
        return message

    out = tmp_path / "report.md"
    assert "the same settings and the same seed, 1\n" in message(*runs, runs[0], "--out", str(out))
    assert f"{tmp_path / 'no'}/train.log: No such file" in message(str(tmp_path / "no"))
    assert not out.exists()
    out.mkdir()
    assert f"{out}: Is a directory" in message(*runs, "--out", str(out))
    assert not list(tmp_path.glob(".report*"))

    log = Path(runs[1], "train.log")
    log.write_text(re.sub(r"'max_tokens': 200\b", "'max_tokens': 300", log.read_text()))
    assert "both are 'plain' but differ in max_tokens (200 and 300); " in message(*runs)
    assert report.main([*runs, "--allow-differences", "max_tokens,max_update"]) == 0
    printed = capsys.readouterr().out
    assert "| plain (max_tokens=200) | 1 |" in printed and "max_tokens=300 |" in printed
