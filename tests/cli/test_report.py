"""``compgen-report`` on runs of fairseq-train that compgen-score has scored."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from in_process import output, refusal
from small_models import MODELS


def evaluated(folder: Path, trained: Path, generated: Path, seed: int = 1) -> Path:
    """A run's folder as the recipes leave it."""
    folder.mkdir(parents=True)
    shutil.copy(trained / "train.log", folder)
    record = (trained / "RUN.json").read_text()
    (folder / "RUN.json").write_text(record.replace('"seed": 1,', f'"seed": {seed},'))
    prepared = {"command": "prepare/tiny.sh DEST", "pairs": {"test": 37}, "sha256": {"a": "0a"}}
    (folder / "PREPARED.json").write_text(json.dumps(prepared))
    scores = output("compgen-score", generated, "--json")
    for name in ("best", "last"):
        (folder / f"test.{name}.json").write_text(scores)
        shutil.copy(generated, folder / f"test.{name}.log")
    return folder


@pytest.fixture
def runs(tiny_model, tiny_log, tmp_path) -> list[str]:
    """The tiny run as if with the seeds 1 and 3: its log, its data's checksums and its scores."""
    return [
        str(evaluated(tmp_path / f"plain.{seed}", tiny_model, tiny_log, seed)) for seed in (1, 3)
    ]


@pytest.fixture(scope="module")
def other_model(tmp_path_factory, tiny_data, plugin, tiny_training, run) -> tuple[Path, Path]:
    """SQ-Transformer on the tiny data: the folder of its training, and the log of its test set."""
    folder = tmp_path_factory.mktemp("other")
    log = run(
        "fairseq_cli.train",
        *(tiny_data, *plugin, *tiny_training, "--task", "compgen_translation"),
        *("--train-batches", "mixed", "--eval-bleu", "--eval-exact-match"),
        *("--eval-exact-match-args", '{"beam": 5}', "--best-checkpoint-metric", "exact_match"),
        *("--maximize-best-checkpoint-metric", *MODELS["sal"], "--dropout", 0.1),
        *("--label-smoothing", 0, "--max-epoch", 2, "--save-dir", folder, "--log-interval", 5),
    )
    checkpoint = folder / "checkpoint_last.pt"
    generated = folder / "generate.log"
    generated.write_text(run("fairseq_cli.generate", tiny_data, *plugin, "--path", checkpoint))
    (folder / "train.log").write_text(log)
    return folder, generated


def test_markdown(runs, tiny_log):
    percent = re.findall(r"ExactMatch = ([\d.]+)", tiny_log.read_text())[-1]
    printed = output("compgen-report", *runs)
    assert re.search(r"\| plain \| 1, 3 \| \d+ \| \d+\.\d \| [\d.]+ ± 0 \|\n", printed)
    assert "\nCheckpoints were chosen by exact_match on valid.\n" in printed
    assert (
        f"| plain | chosen | 2 | {percent} ± 0.00 | {percent} | {percent} | {percent} "
        f"| {percent}, {percent} |\n" in printed
    )
    assert "| plain | last | 2 |" in printed
    assert "`metric:exact_match|case:mixed|n:37|version:" in printed


def test_errors_are_one_sentence_and_leave_nothing(runs, tmp_path):
    out, page = tmp_path / "report.md", tmp_path / "report.html"
    out.mkdir()
    said = refusal("compgen-report", *runs, "--html", page, "--out", out)
    assert f"{out}: Is a directory" in said
    assert not page.exists() and not list(tmp_path.glob(".report*"))


def test_a_page_and_its_markdown(runs, other_model, tiny_log, tmp_path):
    trained, generated = other_model
    runs.append(str(evaluated(tmp_path / "sal.1", trained, generated)))
    page, text = tmp_path / "pages" / "report.html", tmp_path / "report.md"
    page.parent.mkdir()
    runs += ["--allow-differences", "max_epoch,updates"]
    assert output("compgen-report", *runs, "--html", page, "--out", text) == ""
    said = text.read_text()
    assert "### Against plain\n" in said and "| sal | 1 |" in said
    assert "Learning curves: [report.html](pages/report.html)\n" in said
    drawn = page.read_text()
    assert drawn.startswith("<!DOCTYPE html>") and "<h1>Results on tiny</h1>" in drawn
    metrics = re.findall(r"<figcaption>(\w+)", drawn)
    assert "exact_match" in metrics[:2]  # what only validation has comes first
    assert {"commitment_source", "codes_used_target", "nll_loss"} <= set(metrics)
    compared = json.loads(output("compgen-compare", tiny_log, generated, "--json"))
    p = compared["scores"]["exact_match"]["p_value"]
    shown = f"{p:.4f}" if p >= 0.0001 else "< 0.0001"
    assert re.search(
        rf"\| exact_match \| last \| sal \| \S+ \| \[\S+ \S+\] \| {shown} \| - \|", said
    )

    assert output("compgen-report", *runs, "--html", page) == ""  # the page alone
    out = tmp_path / "report.json"
    assert output("compgen-report", *runs, "--baseline", "sal", "--json", "--out", out) == ""
    found = json.loads(out.read_text())
    assert found["baseline"] == "sal"
    assert {(one["label"], one["p_sentences"]) for one in found["comparisons"]} == {("plain", p)}


def test_nothing_is_written_when_a_figure_cannot_be_shown(runs, tmp_path):
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    Path(runs[0], "broken.png").write_text("GIF")
    said = refusal("compgen-report", *runs, "--html", page, "--out", text)
    assert said == f"compgen-report: {runs[0]}/broken.png: it is not a PNG picture"
    said = refusal("compgen-report", *runs, "--figures", tmp_path / "no")
    assert said.endswith("no: there is no PNG picture in it")
    assert not page.exists() and not text.exists()


def test_it_starts_without_torch(runs, tmp_path):
    program = Path(sys.executable).with_name("compgen-report")
    page = tmp_path / "report.html"
    done = subprocess.run(
        [program, *runs, "--html", page],
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and page.exists()
    modules = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.MULTILINE))
    assert "jinja2" in modules and not modules & {"torch", "fairseq", "scipy.stats"}
