"""The queue of runs: through the real recipes, on tiny data, killed and called again."""

import json
import subprocess
import sys

import pytest
from recipes import EXAMPLES, TINY, prepared

FLAGS = " ".join((*TINY, "--validate-interval-updates=5", "--save-interval-updates=5"))
QUICK = "UPDATES=10"


def tables(out, *args, status=0, **kwargs):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "tables.py"), str(out), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        **kwargs,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def out(tmp_path_factory, run):
    """A folder for runs, with prepared data ``tiny``."""
    folder = tmp_path_factory.mktemp("out")
    prepared(folder / "data-bin" / "tiny", ("src", "tgt"), run)
    return folder


def file(tmp_path, *lines):
    path = tmp_path / "runs.txt"
    path.write_text("data tiny scan\n" + "".join(f"{line}\n" for line in lines))
    return path


def test_a_queue_is_worked_off_and_recorded(out, tmp_path):
    runs = file(
        tmp_path,
        f"run 2 tiny/a plain 1 {QUICK} {FLAGS}",
        f"run 1 tiny/a mine:sal-brown,plane 3 {QUICK} {FLAGS}",
        f"run 0 tiny/other plain 1 {QUICK} {FLAGS}",
    )
    results = tmp_path / "results"
    said = tables(out, "tiny/a", "--file", runs, "--results", results, status=1)
    begun = [line.split()[2] for line in said.splitlines() if line.endswith("starts")]
    assert begun == ["tiny/a/mine.3", "tiny/a/plane.3", "tiny/a/plain.1"]
    assert "plane.3 failed: train exited with 2; " in said and "tiny/a/plane.3 is not done" in said
    assert "METHOD=plane is none of" in (out / "tiny/a/plane.3/train.out").read_text()
    result = json.loads((results / "tiny/a/mine.3.json").read_text())
    assert (result["method"], result["seed"], result["updates"]) == ("mine", 3, 10)
    assert not (results / "tiny/other").exists()

    status = tables(out, "--status", "", "--file", runs)
    assert "waiting  tiny/other/plain.1" in status and "2 done, 0 running, 1 failed" in status
    again = tables(out, "tiny/a/(mine|plain)", "--file", runs)
    assert again == ""  # nothing is left


def test_errors_are_sentences(tmp_path):
    wrong = {
        "run 1 other/a plain 1": "no line above says what the data other are",
        "run one tiny/a plain 1": "the priority one is no whole number",
        "run 1 tiny plain 1": "tiny is not DATA/SETTING",
        "run 1 tiny/a plain one": "'one' is no seed",
        "run 1 tiny/a plain,plain 1": "tiny/a/plain.1 is named twice",
        "data tiny scan": "the data tiny are named twice",
        "data other scam": "there is no ",
        "row 1": "a line is 'data NAME",
    }
    for line, message in wrong.items():
        runs = file(tmp_path, line)
        said = tables(tmp_path, "", "--file", runs, status=2)
        assert said.startswith(f"tables.py: {runs}:2: ") and message in said
        assert said.count("\n") == 1
    runs = file(tmp_path, "run 1 tiny/a proto-two-pass 1 PLAIN=@transformer")
    said = tables(tmp_path, "", "--file", runs, status=2)
    assert "tiny/a/proto-two-pass.1 needs tiny/a/transformer.1, which is not there" in said
    assert "say which runs" in tables(tmp_path, "--file", runs, status=2)
    runs = file(tmp_path, "run 1 tiny/a plain 1")
    assert "no run matches cogs" in tables(tmp_path, "cogs", "--file", runs, status=2)
    assert "[Errno 2]" in tables(tmp_path, "cogs", "--file", tmp_path / "none", status=2)
