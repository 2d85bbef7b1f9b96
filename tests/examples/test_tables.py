"""The queue of runs: through the real recipes, on tiny data, killed and called again."""

import argparse
import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib

import folders
import pytest
from folders import Folder
from instant import instant
from recipes import EXAMPLES, TINY, prepared
from rows import TablesError, parse
from tables import Queue

FLAGS = " ".join((*TINY, "--validate-interval-updates=5", "--save-interval-updates=5"))
QUICK = "UPDATES=10"


def begin(python, out, *args):
    """Call tables.py with this Python, by default also that of the runs."""
    words = [python, str(EXAMPLES / "tables.py"), str(out), *map(str, args)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def tables(out, *args, status=0):
    """What tables.py prints, in a Python that starts at once."""
    called = begin(f"{instant()}/python", out, *args)
    said, _ = called.communicate()
    assert called.returncode == status, said
    return said


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


def wait_for(path, seconds=600):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"no {path}"
        time.sleep(0.05)


def test_a_queue_is_worked_off_and_recorded(out, tmp_path):
    runs = file(
        tmp_path,
        f"run 2 tiny/a mine:sal-brown 3 {QUICK} {FLAGS}",
        f"run 1 tiny/a plane 3 {QUICK} {FLAGS}",
        f"run 0 tiny/other plain 1 {QUICK} {FLAGS}",
    )
    results = tmp_path / "results"
    python = f"{instant()}/python"
    queue = begin(python, out, "tiny/a", "--file", runs, "--results", results, "--jobs", 2)
    wait_for(out / "tiny/a/mine.3/train.log")
    with runs.open("a") as more:
        more.write(f"run 3 tiny/a plain 1 {QUICK} {FLAGS}\n")
    said, _ = queue.communicate()
    assert queue.returncode == 1
    begun = [line.split()[2] for line in said.splitlines() if line.endswith("starts")]
    assert begun == ["tiny/a/plane.3", "tiny/a/mine.3", "tiny/a/plain.1"]
    assert "plane.3 failed: train exited with 2; " in said and "tiny/a/plane.3 is not done" in said
    assert "METHOD=plane is none of" in (out / "tiny/a/plane.3/train.out").read_text()
    result = json.loads((results / "tiny/a/mine.3.json").read_text())
    assert (result["method"], result["seed"], result["updates"]) == ("mine", 3, 10)
    assert not (results / "tiny/other").exists()

    status = tables(out, "--status", "", "--file", runs)
    assert "waiting  tiny/other/plain.1" in status and "2 done, 0 running, 1 failed" in status
    assert "plane.3 starts" in tables(out, "plane", "--file", runs, status=1)  # tried again
    again = tables(out, "tiny/a/(mine|plain)", "--file", runs)
    assert again == ""  # nothing is left
    runs.write_text(runs.read_text().replace(f"sal-brown 3 {QUICK}", "sal-brown 3 UPDATES=11"))
    again = tables(out, "tiny/a/mine", "--file", runs, "--results", tmp_path / "others", status=1)
    assert "ROW.json says that it was begun in another way" in again
    assert not (tmp_path / "others").exists()


def test_a_queue_that_is_ended_or_killed_is_called_again(out, tmp_path):
    """The queue is a Python of its own; the commands of its run start at once."""
    path = shlex.quote(os.pathsep.join([instant(), os.environ["PATH"]]))
    line = f"run 1 tiny/killed plain 1 UPDATES=50 PATH={path} {FLAGS}"
    args = ("killed", "--file", file(tmp_path, line))
    save = out / "tiny/killed/plain.1"

    queue = begin(sys.executable, out, *args)
    wait_for(save / "checkpoint_last.pt")
    queue.send_signal(signal.SIGTERM)
    assert queue.wait(60) == 128 + signal.SIGTERM
    assert "1 waiting" in tables(out, "--status", *args)  # its training has ended with it
    (save / "train.out").unlink()
    queue = begin(sys.executable, out, *args)
    wait_for(save / "train.out")
    queue.kill()
    queue.wait(60)
    assert "1 running" in tables(out, "--status", *args)  # its training goes on

    assert "starts" not in tables(out, *args)  # but is waited for
    result = json.loads((save / "RESULT.json").read_text())
    assert (result["updates"], result["sessions"]) == (50, 2)
    assert "Loaded checkpoint" in (save / "train.out").read_text()


def test_a_run_whose_line_has_left_the_file_goes_on(out, tmp_path):
    runs = file(tmp_path, f"run 1 tiny/left plain 1 {QUICK} {FLAGS}")
    results = tmp_path / "results"
    queue = begin(f"{instant()}/python", out, "tiny/left", "--file", runs, "--results", results)
    wait_for(out / "tiny/left/plain.1/train.log")
    file(tmp_path, f"run 1 tiny/left plain 2 {QUICK} {FLAGS}")
    said, _ = queue.communicate()
    assert queue.returncode == 0, said
    assert said.index("plain.1 is done") < said.index("plain.2 starts")
    for seed in (1, 2):
        assert (results / f"tiny/left/plain.{seed}.json").exists()


def test_every_figure_of_the_papers_has_a_row(tmp_path):
    status = tables(tmp_path, "--status", "")
    rows = {line.split()[1].rpartition(".")[0] for line in status.splitlines()[:-1]}
    methods = {(row.split("/")[0], row.split("/")[2]) for row in rows}
    papers = tomllib.loads((EXAMPLES.parent / "results" / "papers.toml").read_text())
    ours = set(papers.pop("ours"))
    assert ours <= {method for _, method in methods}
    for place, score, *names in papers.pop("headlines"):  # a row, or a published figure alone
        assert score in ("exact_match", "cter instance")
        measured = {f"{place}/{name}" for name in names if name} & rows
        figures = {f"{place}/{name}" for name in papers[place.split("/")[0]].get(score, ())}
        assert measured and {f"{place}/{name}" for name in names if name} <= rows | figures
    del papers["introduction"]
    for data, paper in papers.items():
        figures = [name for found in paper.values() if isinstance(found, dict) for name in found]
        assert {(data, method) for method in figures} <= methods


def test_a_plugin_of_ones_own_also_evaluates(tmp_path):
    for plugin in (["--user-dir", "own"], ["--user-dir=own"]):
        words = " ".join(["--cpu", *plugin, "--lr", "1"])
        (run,) = parse(file(tmp_path, f"run 1 tiny/a plain 1 {words}"))
        folder = Folder(run, tmp_path)
        assert folder.steps(tmp_path)["evaluate"][3:] == [str(folder.path), *plugin]


def test_what_a_run_is_given(tmp_path, monkeypatch):
    names = "METHOD SEED SIZE UPDATES STAGE1_EPOCHS SELECT BEAM PLAIN LAUNCH".split()
    theirs = {"OMP_NUM_THREADS": "2", "PYTHONPATH": "/own", **dict.fromkeys(names, "theirs")}
    for name, text in theirs.items():
        monkeypatch.setenv(name, text)
    lines = ("run 1 tiny/a b 1", "run 1 tiny/a mine:c 1 TABLE=@b/last.pt PLAIN=@b KIND=x")
    first, run = parse(file(tmp_path, *lines))
    given = Folder(first, tmp_path)._environment()
    assert {name: given[name] for name in names if name in given} == {"METHOD": "b", "SEED": "1"}
    given, before = Folder(run, tmp_path)._environment(), tmp_path / "tiny/a/b.1"
    wanted = {"TABLE": f"{before}/last.pt", "PLAIN": str(before), "KIND": "x", "METHOD": "c"}
    wanted |= {"SEED": "1", "OMP_NUM_THREADS": "2", "PYTHONPATH": f"{EXAMPLES.parent}:/own"}
    assert wanted.items() <= given.items() and "UPDATES" not in given
    assert "priority" not in run.row()  # it may change
    (run,) = parse(file(tmp_path, "data own scan scan.sh addjump", "run 1 own/a b 1"))
    prepare = Folder(run, tmp_path).steps(tmp_path)["prepare"]
    assert prepare[1:] == [f"{EXAMPLES.parent}/prepare/scan.sh", "addjump", f"{tmp_path}/own"]


def queue_of(tmp_path, *lines):
    """A queue of two jobs, and the folders of its runs."""
    args = argparse.Namespace(file=file(tmp_path, *lines), patterns=[""], out=tmp_path, jobs=2)
    queue = Queue(args)
    folders = queue.folders()
    for folder in folders:
        folder.path.mkdir(parents=True)
    return queue, folders


def test_what_is_begun_and_what_waits(tmp_path):
    lines = ("run 1 tiny/a b 1 PLAIN=@c", "run 2 tiny/a c 1", "run 2 tiny/a d 1")
    queue, (b, c, d) = queue_of(tmp_path, *lines)
    (d.path / "ROW.json").touch()
    assert queue._ready(dict.fromkeys((b, c, d), "waiting")) == [d, c]
    queue.tried.add(d.run.path)
    assert queue._ready({b: "waiting", c: "done", d: "waiting"}) == [b]


def test_when_the_last_one_is_trained(tmp_path, monkeypatch):
    monkeypatch.setattr("tables._until", str)
    queue, (b, c, d, again) = queue_of(tmp_path, "run 1 tiny/a b,c,d 1", "run 2 tiny/a b 2")
    report = "num_updates={}, wall={}, time left {} min\n"
    for folder, wall, left in ((b, 600, 30), (c, 2400, 10)):
        earlier, last = report.format(5, 6, 70), report.format("1e+03", wall, left)
        (folder.path / "train.out").write_text(f"{earlier:20000}{earlier}{last}")
    assert b.progress() == (1000, 30, 40)
    states = {b: "running", c: "running", d: "waiting", again: "waiting"}
    told = "0 done, 2 running, 0 failed, 2 waiting; trained 70.0, 2 at a time"
    assert queue.summary(states) == told  # d from 10 to 55, as b and c in the mean; b.2 from 30


def test_what_is_needed_first_may_need_another(tmp_path):
    lines = ("run 1 tiny/a c 1", "run 2 tiny/a b 1 PLAIN=@c", "run 3 tiny/a a 1 PLAIN=@b")
    status = tables(tmp_path, "/a.1", "--status", "--file", file(tmp_path, *lines))
    assert [line.split()[1] for line in status.splitlines()[:-1]] == [
        f"tiny/a/{name}.1" for name in "cba"
    ]


def test_a_file_that_is_wrong_for_a_while_does_not_end_the_queue(tmp_path, capsys):
    """As while an editor writes it."""
    runs = file(tmp_path, "run 1 tiny/a plain 1")
    queue = Queue(argparse.Namespace(file=runs, patterns=["plain"], out=tmp_path))
    before = [folder.run for folder in queue.folders()]
    text = runs.read_text()
    for wrong in ("", text + "run 2 tiny/a"):
        runs.write_text(wrong)
        assert [folder.run for _ in "ab" for folder in queue.folders()] == 2 * before
        assert capsys.readouterr().err.count("going on with what it said before") == 1
    runs.write_text(text + "run 2 tiny/a plain 2\n")
    assert len(queue.folders()) == 2


def test_errors_are_sentences(tmp_path):
    wrong = {
        "run 1 other/a plain 1": "no line above says what the data other are",
        "run one tiny/a plain 1": "the priority one is not a whole number",
        "run 1 tiny plain 1": "tiny is not DATA/SETTING",
        "run 1 tiny/a plain one": "'one' is not a seed",
        "run 1 tiny/a plain 5-1": "the seeds '5-1' end before they begin",
        "run 1 tiny/a plain,plain 1": "tiny/a/plain.1 is named twice",
        "data tiny scan": "the data tiny are named twice",
        "data other scam": "there is no ",
        "row 1": "a line is 'data NAME",
        "data other": "a line is 'data NAME",
        "run 1 tiny/a plain": "a line is 'data NAME",
        "run 1 tiny/a pl/ain 1": "'pl/ain' is not the name of a method",
    }
    for line, message in wrong.items():
        runs = file(tmp_path, line)
        with pytest.raises(TablesError, match=f"^{re.escape(f'{runs}:2: {message}')}"):
            parse(runs)
    runs = file(tmp_path, "row 1")
    said = tables(tmp_path, "", "--file", runs, status=2)
    assert said.startswith(f"tables.py: {runs}:2: a line is 'data NAME") and said.count("\n") == 1
    runs = file(tmp_path, "run 1 tiny/a proto-two-pass 1 PLAIN=@transformer")
    said = tables(tmp_path, "", "--file", runs, status=2)
    assert "tiny/a/proto-two-pass.1 needs tiny/a/transformer.1, which is not there" in said
    assert "say which runs" in tables(tmp_path, "--file", runs, status=2)
    runs = file(tmp_path, "run 1 tiny/a plain 1")
    assert "unterminated" in tables(tmp_path, "(", "--file", runs, status=2)
    assert "no run matches cogs" in tables(tmp_path, "cogs", "--file", runs, status=2)
    no_jobs = ("--status", "--jobs", 0, "--file", runs)
    assert "--jobs is at least 1, not 0" in tables(tmp_path, "", *no_jobs, status=2)
    assert "[Errno 2]" in tables(tmp_path, "cogs", "--file", tmp_path / "none", status=2)


def test_two_runs_prepare_one_data_folder_in_turn(tmp_path):
    """The second waits for the lock that the first holds beside the folder."""
    with folders._alone(str(tmp_path / "data")) as held:
        assert len(held) == 1
        with (tmp_path / "data.lock").open() as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (tmp_path / "data.lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_no_more_run_at_a_time_than_jobs(tmp_path, monkeypatch):
    """Of two jobs another call does one."""
    queue, (b, *_) = queue_of(tmp_path, "run 1 tiny/a b,c,d,e 1")
    held, sizes = (b.path / "lock").open("a"), []
    fcntl.flock(held, fcntl.LOCK_EX)

    def start(self, folder):
        self.tried.add(folder.run.path)
        self.children[folder.run.path] = argparse.Namespace(poll=lambda: None)
        sizes.append(len(self.children))

    monkeypatch.setattr(Queue, "_start", start)
    monkeypatch.setattr(
        Queue, "_wait", lambda q: q.children.popitem() if q.children else held.close()
    )
    assert queue.work() == 1 and sizes == [1, 1, 1, 1]


def test_a_range_of_seeds_has_both_ends(tmp_path):
    runs = parse(file(tmp_path, "run 1 tiny/a b 1-3,7"))
    assert [run.seed for run in runs] == ["1", "2", "3", "7"]


def test_a_folder_that_is_worked_on_is_left_alone(tmp_path, monkeypatch):
    (run,) = parse(file(tmp_path, "run 1 tiny/a b 1"))
    folder = Folder(run, tmp_path)
    folder.path.mkdir(parents=True)
    monkeypatch.setattr(Folder, "_step", lambda *_: pytest.fail("a step was done"))
    with (folder.path / "lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(TablesError, match="is being worked on already"):
            folder.do(tmp_path)


def test_the_data_folder_is_locked_while_it_is_prepared(tmp_path, monkeypatch):
    (run,) = parse(file(tmp_path, "data own scan scan.sh addjump", "run 1 own/a b 1"))
    held = {}
    monkeypatch.setattr(Folder, "_step", lambda _, name, __, locks: held.update({name: len(locks)}))
    assert Folder(run, tmp_path).do(tmp_path / "data-bin") == 0
    assert held == {"prepare": 2, "train": 1, "evaluate": 1, "result": 1}
