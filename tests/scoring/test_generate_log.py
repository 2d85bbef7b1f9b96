"""A log is read in id order, or refused with the ids that are wrong."""

import pytest

from compgen.scoring.generate_log import Generation, parse

DONE = "INFO:fairseq_cli.generate:Translated {} sentences (10 tokens) in 1.0s (1.0 sentences/s)\n"
RESULT = "Generate test with beam=5: BLEU4 = 100.00, 100.0/100.0/100.0/100.0\n"
SKIPPED = (
    "WARNING:fairseq.tasks.fairseq_task:1 samples have invalid sizes and will be skipped, "
    "max_positions=(9, 9), first few sample ids=[2]\n"
)


def block(number, hypotheses=("{0}c@@ {0}d",), target=True):
    """The lines about one sentence, as fairseq-generate prints them with subwords."""
    lines = [f"S-{number}\t{number}a"]
    lines += [f"T-{number}\t{number}b"] * target
    for hypothesis in (text.format(number) for text in hypotheses):
        lines += [
            f"H-{number}\t-0.5\t{hypothesis}",
            f"D-{number}\t-0.5\t{hypothesis.replace('@@ ', '')}",
            f"P-{number}\t-0.5 -0.5",
        ]
    return [line + "\n" for line in lines]


def log(*numbers, end=None):
    lines = ["2026-01-01 00:00:00 | INFO | fairseq.tasks | S-9 is no sentence\n"]
    lines += [line for number in numbers for line in block(number)]
    return lines + ([DONE.format(len(numbers)), RESULT] if end is None else end)


def test_sentences_come_in_the_order_of_their_ids():
    expected = Generation(["0a", "1a", "2a"], ["0b", "1b", "2b"], ["0c0d", "1c1d", "2c2d"])
    assert parse(log(2, 0, 1)) == expected
    assert parse(log(2, 0, 1), expected=3) == expected


def test_the_first_of_several_hypotheses_counts():
    lines = block(1, ("best", "second", "third")) + block(0, ("best", "second"))
    assert parse([*lines, RESULT]).hypotheses == ["best", "best"]


def test_texts_may_be_empty_or_hold_odd_spaces():
    lines = ["S-0\t\n", "T-0\ta\u2028b\x85c \n", "H-0\t-1.0\t\n", "D-0\t-1.0\t\n", RESULT]
    assert parse(lines) == Generation([""], ["a\u2028b\x85c "], [""])


def test_a_sentence_that_reads_like_a_message_is_none():
    lines = [line.replace("0a", f"0a {SKIPPED.strip()} {DONE.strip()}") for line in log(0, 1)]
    assert parse(lines).hypotheses == parse(log(0, 1)).hypotheses
    with pytest.raises(ValueError, match="no closing line"):
        parse(lines[:-2])


def test_without_detokenized_lines_the_hypotheses_are_read():
    lines = [line for line in log(1, 0) if not line.startswith("D-")]
    assert parse(lines).hypotheses == ["0c@@ 0d", "1c@@ 1d"]


def test_a_log_of_interactive_has_no_targets():
    closing = "INFO:fairseq_cli.interactive:Total time: 1.0 seconds; translation time: 0.9\n"
    lines = block(0, target=False) + block(1, target=False)
    assert parse([*lines, closing]) == Generation(["0a", "1a"], [], ["0c0d", "1c1d"])


def test_references_of_a_file_are_as_in_a_log(tmp_path):
    file = tmp_path / "references"
    file.write_bytes("\ufeffd\u00a0  e\r\nf \r\n".encode())
    assert parse(log(0, 1)).references(file) == ["d e", "f"]
    file.write_text("d@@ e\nf\n")
    assert parse(log(0, 1)).references(file) == ["d@@ e", "f"]
    with pytest.raises(ValueError, match="is in subwords, the other is not"):
        parse(log(0, 1)).references(file, alike=True)


def test_references_of_other_sentences_are_warned_of(tmp_path, caplog):
    found = Generation(["s"] * 4, ["A@@ b &amp; c !", "d é", "e <<unk>>", "f"], ["h"] * 4)
    for lines, warned in (("ab&c\nD e\u0301.\nx\nf", ""), ("ab&c\nx\ny\nz", "2 of 3 lines of ")):
        (tmp_path / "references").write_text(lines)
        found.references(tmp_path / "references")
        assert warned in caplog.text and bool(warned) == bool(caplog.text)


@pytest.mark.parametrize(
    "message",
    [
        "INFO:fairseq.logging.progress_bar::    101 / 210 wps=1065\n",
        "2026-11-21 00:44:41 | INFO | fairseq.logging.progress_bar | :    101 / 210 wps=1065\n",
    ],
)
def test_a_message_that_follows_a_sentence_without_a_line_feed_is_no_part_of_it(message):
    lines = log(0, 1)
    place = next(i for i, line in enumerate(lines) if line.startswith("D-0"))
    lines[place : place + 1] = [lines[place].rstrip("\n") + message, "\n"]
    assert parse(lines) == parse(log(0, 1))


def test_shards_can_be_read_one_after_the_other():
    assert len(parse(log(0, 2) + log(1, 3)).sources) == 4
    with pytest.raises(ValueError, match=r"each of 4 sentences: 1 missing \(id 3\)"):
        parse(log(0, 2) + log(1, end=[DONE.format(2)]))


@pytest.mark.parametrize(
    ("lines", "expected", "message"),
    [
        (log(0, 3), None, r"each of 4 sentences: 2 missing \(ids 1, 2\)$"),
        (
            log(0, 1, end=[DONE.format("1,203")]),
            None,
            r"1201 missing \(ids 2, 3, 4, 5, 6, \.\.\.\)$",
        ),
        (log(0, 1), 4, r"each of 4 sentences: 2 missing \(ids 2, 3\)$"),
        (log(0, 1, 2), 2, r"1 unexpected \(id 2\)$"),
        (log(0, 1) + log(0, 1), None, r"each of 2 sentences: 2 repeated \(ids 0, 1\)$"),
        (log(0, 2, 0, 4), 5, r"2 missing \(ids 1, 3\), 1 repeated \(id 0\)$"),
        ([*log(0, 1)[:-4], RESULT], None, r"1 incomplete \(id 1\)$"),
        (log(0, 1, end=[]), None, "no closing line, so its end may be missing; say --expected N$"),
        (log(0, 1, end=["D-1\t-0.5\tcu"]), 2, "the last line is cut short$"),
        ([], 0, "no sentences with hypotheses"),
        (["S-0\ta\n", RESULT], None, "no sentences with hypotheses"),
        ([line for line in log(0) if line[0] != "S"], None, "no sentences with hypotheses"),
        ([SKIPPED, *log(0, 1)], 2, "left out 1 sentences as too long"),
    ],
)
def test_what_is_not_complete_is_refused(lines, expected, message):
    with pytest.raises(ValueError, match=message):
        parse(lines, expected)
