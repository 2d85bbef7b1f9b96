"""The estimate that the recipes add to fairseq's log."""

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "time_left.py"


def annotate(*args):
    spec = importlib.util.spec_from_file_location("time_left", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.annotate(*args)


def line(updates: int) -> str:
    return f"2026 | INFO | train_inner | epoch 001: 1 / 9 loss=1, num_updates={updates}, wall=0\n"


def test_the_pace_counts_from_the_first_update_seen():
    clock = iter([100.0, 160.0, 400.0]).__next__
    log = ["starts\n", line(200), line(300), "2026 | INFO | valid | num_updates 300\n", line(500)]
    assert list(annotate(log, 1000, clock)) == [
        log[0],
        log[1],
        # 100 updates in 60 s: 700 more take 420 s
        log[2].rstrip() + ", time left 7 min\n",
        log[3],
        # 300 updates in 300 s: 500 more take 500 s
        log[4].rstrip() + ", time left 9 min\n",
    ]


def test_a_resumed_training_has_an_estimate_at_once_and_says_what_its_end_waits_for():
    clock = iter([0.0, 30.0, 300.0]).__next__
    log = [
        "2026 | INFO | fairseq.tasks.text_to_speech | Please install tensorboardX: pip install\n",
        "2026 | INFO | fairseq.trainer | Loaded checkpoint x.pt (epoch 2 @ 500 updates)\n",
        "2026 | INFO | fairseq.trainer | begin training epoch 2\n",
        line(550),
        line(1000),
    ]
    assert list(annotate(log, 1000, clock)) == [
        *log[1:3],
        log[3].rstrip() + ", time left 5 min\n",
        log[4].rstrip() + ", time left 0 min, the last validation is going on\n",
    ]
