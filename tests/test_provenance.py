"""RUN.json: written when a training starts, and added to when it resumes."""

import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compgen import provenance
from compgen.provenance import Record, cpu_seconds, machine, revision, this_machine, versions

SETTINGS = {"common": {"seed": 1}}


def test_sessions_add_up_and_a_fresh_start_begins_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/bin/fairseq-train", "my data", "--betas", "(0.9,0.98)"])
    Record(tmp_path, SETTINGS, 0).save(0, 7)
    monkeypatch.setattr(provenance, "cpu_seconds", lambda: 90)
    resumed = Record(tmp_path, SETTINGS, 40)
    resumed.began -= 120
    resumed.save(90, 8)
    found = json.loads((tmp_path / "RUN.json").read_text())
    assert (found["updates"], found["parameters"]) == (90, 8)
    first, second = found["sessions"]
    assert (first["from_update"], second["from_update"]) == (0, 40)
    assert (second["minutes"], second["cpu_minutes"]) == (2, 1.5)
    assert first["command"] == "fairseq-train 'my data' --betas '(0.9,0.98)'"
    assert first["settings"] == SETTINGS and first["versions"]["torch"]
    Record(tmp_path, SETTINGS, 0).save(1, 8)
    assert len(json.loads((tmp_path / "RUN.json").read_text())["sessions"]) == 1
    for text in ("{", "{}", "[]"):
        (tmp_path / "RUN.json").write_text(text)
        with pytest.raises(
            ValueError, match=r"RUN\.json: it is not a record of a training; remove it"
        ):
            Record(tmp_path, SETTINGS, 1)
    with pytest.raises(ValueError, match=r"none/RUN\.json: No such file"):
        Record(tmp_path / "none", SETTINGS, 0).save(0, 0)


def test_the_time_of_a_worker_that_still_runs_counts():
    before = cpu_seconds()
    worker = multiprocessing.get_context("spawn").Process(target=sum, args=(range(10**12),))
    worker.start()
    try:
        end = time.monotonic() + 60
        while cpu_seconds() < before + 0.2:  # this process waits
            assert time.monotonic() < end
            time.sleep(0.1)
        counted, then = cpu_seconds(), time.monotonic()
    finally:
        worker.kill()
        worker.join()
    most = counted + 2 * (time.monotonic() - then)
    assert counted - 0.05 < cpu_seconds() < most + 0.05  # as one that has ended


def test_the_machine_in_words(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(5))
    said = machine(this_machine(["NVIDIA H100"], 2))
    assert said.startswith("NVIDIA H100, 5 cores of ")
    assert said.endswith(", OMP_NUM_THREADS 3, 2 processes") and "model name" not in said


def test_what_is_not_installed_has_no_version(monkeypatch):
    monkeypatch.setattr(provenance, "PACKAGES", ("numpy", "no-such-package"))
    assert list(versions()) == ["python", "numpy"]


def test_the_revision_is_this_repository_s(monkeypatch):
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("this is not a clone")
    assert str(revision()).removesuffix("-dirty") == done.stdout[:12]
    monkeypatch.setattr(provenance, "__file__", str(Path(__file__).with_name("installed.py")))
    assert revision() is None  # in a repository of something else


@pytest.mark.parametrize("name", ["own", "compgen_fairseq"])
def test_a_plugin_of_ones_own_has_a_revision(name, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    settings = {"common": {"user_dir": str(tmp_path / name)}}
    session = Record(tmp_path, settings, 0).session
    if name == "own":
        assert session["plugin"] == {"name": "own", "revision": done.stdout[:12]}
    else:
        assert "plugin" not in session
