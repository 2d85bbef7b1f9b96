"""compgen-analyze seeds on runs that differ in their seed and their score."""

import json

import pytest
from in_process import output, refusal
from written import analyzed, read_table


@pytest.fixture
def runs(tiny_model, tmp_path) -> list[str]:
    """The tiny run as if with four seeds, two of which clipped gradients otherwise."""
    record = (tiny_model / "RUN.json").read_text()
    folders = []
    for seed, (label, score) in enumerate(
        [("plain", 20.0), ("plain", 90.0), ("noisy", 99.0), ("noisy", 100.0)], start=1
    ):
        folder = tmp_path / f"{label}.{seed}"
        folder.mkdir()
        changed = record.replace('"seed": 1,', f'"seed": {seed},')
        if label == "noisy":
            changed = changed.replace('"clip_norm": ', '"clip_norm": 1')
        (folder / "RUN.json").write_text(changed)
        prepared = {"command": "prepare/tiny.sh DEST", "pairs": {"test": 37}, "sha256": {"a": "0a"}}
        (folder / "PREPARED.json").write_text(json.dumps(prepared))
        signature = {"metric": "exact_match", "score": score, "signature": "metric:exact_match"}
        for name in ("best", "last"):
            shifted = signature | {"score": score - (name == "last")}
            (folder / f"test.{name}.json").write_text(json.dumps(shifted))
        folders.append(str(folder))
    return folders


def test_the_numbers_and_a_histogram_for_each_method(runs, tmp_path):
    out = tmp_path / "seeds"
    files = analyzed("seeds", *runs, "--title", "Tiny", out=out)
    assert files == [out / f"seeds.{form}" for form in ("png", "pdf", "csv", "json")]
    plain, noisy = json.loads((out / "seeds.json").read_text())
    assert plain == plain | {"method": "plain", "n": 2, "mean": 55.0, "values": "20.00 90.00"}
    assert noisy == noisy | {"method": "noisy", "median": 99.5, "best": 100.0, "worst": 99.0}
    assert [row["method"] for row in read_table(out / "seeds.csv")] == ["plain", "noisy"]
    output("compgen-analyze seeds", *runs, "--checkpoint", "last", "--out", out)
    assert json.loads((out / "seeds.json").read_text())[1]["best"] == 99.0


def test_what_cannot_be_drawn_ends_in_a_sentence(runs, tmp_path):
    words = [*runs, "--score", "bleu", "--out", tmp_path / "seeds"]
    reason = "--score bleu: the runs' scores are exact_match"
    assert reason in refusal("compgen-analyze seeds", *words)
    assert not (tmp_path / "seeds").exists()
