"""What the recipes say while they train and decode."""

import subprocess
import sys
import threading

import time_left


def line(updates: int) -> str:
    return f"2026 | INFO | train_inner | epoch 001: 1 / 9 loss=1, num_updates={updates}, wall=0\n"


CONFIG = "2026 | INFO | fairseq_cli.train | {'optimization': {'lr': [1.0], 'max_update': 1000}}\n"


class Log:
    """Lines that come at given seconds, and the clock that shows them."""

    def __init__(self, *timed):
        self.timed, self.now = timed, 0.0

    def __iter__(self):
        for now, text in self.timed:
            self.now = now
            yield text

    def clock(self):
        return self.now


def test_the_pace_counts_from_the_first_update_seen():
    second = "2026 | INFO | fairseq.trainer | begin training epoch 2\n"
    log = Log((5, CONFIG), (100, line(200)), (160, line(300)), (170, second), (400, line(500)))
    assert list(time_left.training(log, log.clock)) == [
        CONFIG,
        line(200),
        # 100 updates in 60 s: 700 more take 420 s
        line(300).rstrip() + ", time left 7 min\n",
        second,
        # 300 updates in 300 s: 500 more take 500 s
        line(500).rstrip() + ", time left 9 min\n",
    ]


def test_a_million_updates():
    many = CONFIG.replace("1000", "2000000")
    log = Log((0, many), (0, line(999_900)), (60, line("1e+06")))
    *_, last = time_left.training(log, log.clock)
    assert last.endswith("wall=0, time left 10000 min\n")


def test_a_resumed_training_has_an_estimate_at_once_and_says_what_its_end_waits_for():
    loaded = "2026 | INFO | fairseq.trainer | Loaded checkpoint x.pt (epoch 2 @ 500 updates)\n"
    begin = "2026 | INFO | fairseq.trainer | begin training epoch 2\n"
    notice = (
        "2026 | INFO | fairseq.tasks.text_to_speech | Please install tensorboardX: pip install\n"
    )
    log = Log((0, CONFIG), (0, notice), (0, loaded), (0, begin), (30, line(550)), (300, line(1000)))
    assert list(time_left.training(log, log.clock)) == [
        CONFIG,
        loaded,
        begin,
        line(550).rstrip() + ", time left 5 min\n",
        line(1000).rstrip() + ", time left 0 min, the last validation is going on\n",
    ]


def test_silence_is_filled_with_what_is_going_on():
    begin = "2026 | INFO | fairseq.trainer | begin training epoch 1\n"
    valid = '2026 | INFO | fairseq_cli.train | begin validation on "valid" subset\n'
    saved = "2026 | INFO | fairseq.checkpoint_utils | Saved checkpoint x.pt\n"
    log = Log(
        *((30, None), (40, begin), (70, None), (80, valid), (110, None), (140, None)),
        *((150, saved), (180, None), (190, valid), (200, line(5)), (210, line(6)), (230, None)),
    )
    passed = (begin, valid, saved, line(5), line(6))
    said = [text for text in time_left.training(log, log.clock) if text not in passed]
    assert said == [
        "preparation is going on, 30 s so far\n",
        "training is going on, 30 s so far\n",
        "validation is going on, 30 s so far\n",
        "validation is going on, 60 s so far\n",
        "training is going on, 30 s so far\n",
        "training is going on, 20 s so far\n",
    ]


def test_decoding_says_how_far_it_is():
    log = Log((5, None), (15, None), (20, "S-3\ta\n"), (21, "H-3\t-1\ta\n"), (30, "S-1\tb\n"))
    said = []
    passed = list(time_left.decoding(log, 8, said.append, log.clock))
    assert passed == ["S-3\ta\n", "H-3\t-1\ta\n", "S-1\tb\n"]
    assert said == [
        "decoding 8 sentences",
        "0 of 8 sentences decoded, 15 s so far",
        "2 of 8 sentences decoded, 2 min left",
    ]


def test_as_a_pipe():
    """Bytes pass unchanged, also those that are not UTF-8."""
    text = b"S-0\tna\xefve \xe2\x80\xa8x\nH-0\t-1\tx\n"
    command = [sys.executable, time_left.__file__, "decoding", "1"]
    done = subprocess.run(command, input=text, capture_output=True, check=True)
    assert done.stdout == text and done.stderr == b"decoding 1 sentences\n"


def test_silence_is_noticed():
    noticed = threading.Event()

    def lines():
        yield "a\n"
        noticed.wait(60)
        yield "b\n"

    heard = time_left.heard(lines(), 0.01)
    assert next(heard) == "a\n" and next(heard) is None
    noticed.set()
    assert [line for line in heard if line] == ["b\n"]
