"""``compgen-score`` on a log that fairseq-generate wrote."""

import json

import pytest

from compgen_fairseq.cli import score
from compgen_fairseq.scoring import generate_log


@pytest.fixture
def correct(tiny_log) -> int:
    generation = generate_log.read(tiny_log)
    return sum(h == t for h, t in zip(generation.hypotheses, generation.targets, strict=True))


def test_the_score_is_the_one_fairseq_generate_printed(tiny_log, correct, capsys):
    assert score.main([str(tiny_log)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert (
        len(printed) == 2
        and printed[0] == f"ExactMatch = {100 * correct / 37:.2f} ({correct} / 37)"
    )
    assert tiny_log.read_text().rstrip().endswith(printed[0])
    assert printed[1].startswith("metric:exact_match|case:mixed|n:37|version:")


def test_json(tiny_log, correct, capsys):
    assert score.main([str(tiny_log), "--json", "--expected", "37"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.pop("signature").startswith("metric:exact_match|case:mixed|n:37|")
    percent = pytest.approx(100 * correct / 37)
    assert printed == {"metric": "exact_match", "score": percent, "correct": correct, "total": 37}


def test_errors_are_one_sentence(tiny_log, tmp_path, capsys):
    lines = tiny_log.read_text().splitlines(keepends=True)
    logs = {
        "short.log": [line for line in lines if line[1:4] != "-7\t"],
        "twice.log": lines + lines,
        "interactive.log": [line for line in lines if not line.startswith("T-")],
    }
    messages = {}
    for name, content in logs.items():
        (tmp_path / name).write_text("".join(content))
        assert score.main([str(tmp_path / name)]) == 1
        out, messages[name] = capsys.readouterr()
        assert out == "" and messages[name].count("\n") == 1
        assert messages[name].startswith(f"compgen-score: {tmp_path / name}: it ")
    assert "each of 37 sentences: 1 missing (id 7)\n" in messages["short.log"]
    assert "37 repeated (ids 0, 1, 2, 3, 4, ...)\n" in messages["twice.log"]
    assert "it has no references (T- lines)\n" in messages["interactive.log"]
