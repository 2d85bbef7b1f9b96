"""Rows against a baseline: the tests on hand-made logs, and what is said where there is no test."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
from logs import write_log
from scipy import stats

from compgen.reporting import results
from compgen.reporting.comparison import Comparison, compare, is_plain, over_seeds
from compgen.reporting.outcomes import BrokenLog
from compgen.reporting.report import Report, Row
from compgen.reporting.runs import Run, Score, ScoreName
from compgen.reporting.verdicts import unpack
from compgen.scoring.bleu import BleuOptions, bleu
from compgen.scoring.metrics import BleuMetric
from compgen.scoring.significance import compare_bleu
from compgen.text import write_lines

EXACT, BLEU = ScoreName("exact_match", "best"), ScoreName("bleu", "best")
CTER = [ScoreName(f"cter {number}", "best") for number in ("instance", "aggregate")]
COGS = ScoreName("cogs", "best")
SOURCES = [f"s {i}" for i in range(20)]
TARGETS = [f"the target of sentence number {i}" for i in range(20)]


@pytest.fixture
def make(tmp_path):
    """``make("sal", 1, right=15)``: a run with its log of 20 sentences, the first of them right."""

    def make(label: str, seed: int, right: int, attention: str = "sal") -> Run:
        folder = tmp_path / f"{label}.{seed}"
        said = TARGETS[:right] + 5 * ["?"] + (15 - right) * ["wrong"]
        write_log(folder / "test.best.log", SOURCES, TARGETS, said)
        scores = {EXACT: Score(5.0 * right, "m:e|n:20", folder / "test.best.json")}
        settings = {"model.attention": attention, "model.quantizer": None}
        return Run(folder, label, seed, settings, 9, 1.0, scores, data=tmp_path / "data")

    return make


def reported(*rows: Sequence[Run]) -> Report:
    return Report(tuple(Row(runs[0].label, tuple(runs)) for runs in rows), ())


def test_one_seed_each_is_mcnemars_test(make):
    found = compare(reported([make("plain", 1, 5)], [make("sal", 1, 15)]))
    (one,) = found.found
    assert (found.baseline, one.label, one.score, one.difference) == ("plain", "sal", EXACT, 50)
    assert one.p_sentences == stats.binomtest(10, 10).pvalue  # 10 of 20 differ, all for sal
    assert one.interval[0] < 50 < one.interval[1]
    assert one.p_seeds is None and one.marks == "*" and one.untested == ""
    assert found.of("sal", EXACT) is one and found.of("plain", EXACT) is None


def test_seeds_are_pooled_by_sentence(make):
    # means over seeds: 1 for 4, 1/2 for 2 more; against 1 for 4, 1/2 for 4 more: 2 sentences differ
    first = [make("plain", 1, 4), make("plain", 2, 6)]
    found = compare(reported(first, [make("sal", 1, 4), make("sal", 2, 8)]))
    (one,) = found.found
    assert one.difference == pytest.approx(5)
    assert one.p_sentences == stats.binomtest(2, 2).pvalue == 0.5
    assert one.marks == ""


def test_seeds_against_seeds(make):
    # of the 70 ways to divide eight runs in two rows of four, two are as far apart
    assert over_seeds([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]) == pytest.approx(2 / 70)
    assert over_seeds([1.0, 2.0], [3.0, 4.0]) == pytest.approx(2 / 6)
    assert over_seeds([3.0, 3.0], [3.0, 3.0]) == 1
    # means of thirds, some as far apart but for rounding
    assert over_seeds([90.8, 90.8, 90.2], [90.1, 90.9, 90.3, 90.0]) == pytest.approx(18 / 35)
    seeds = [make("sal", 1, 15), make("sal", 2, 9)]
    assert compare(reported([make("plain", 1, 5)], seeds)).found[0].p_seeds is None


def test_marks():
    assert Comparison("a", EXACT, 1.0, None, 0.049, 0.05).marks == "*"
    assert Comparison("a", EXACT, 1.0, None, None, 0.01).marks == "†"
    assert Comparison("a", EXACT, 1.0, None, 0.01, 0.01).marks == "*†"


def test_the_baseline(make):
    rows = [make("sal", 1, 15)], [make("usual", 1, 5, "plain")], [make("srl", 1, 9)]
    assert compare(reported(*rows)).baseline == "usual"
    chosen = compare(reported(*rows), "srl")
    assert [(one.label, one.difference) for one in chosen.found] == [("sal", 30), ("usual", -20)]
    assert compare(reported(rows[0], rows[2])).baseline == "sal"  # none is plain: the first
    assert compare(reported(rows[0])).found == ()
    with pytest.raises(ValueError, match=r"--baseline x: no row .*; they are sal, usual, srl$"):
        compare(reported(*rows), "x")


@pytest.mark.parametrize(
    ("settings", "plain"),
    [
        ({"model._name": "transformer_iwslt_de_en"}, True),
        ({"model._name": "proto_transformer"}, False),
        ({"model.attention": "plain", "model.quantizer": "none"}, True),
        ({"model.attention": "plain", "model.quantizer": "sovq"}, False),
        ({"model._name": "transformer", "model.attention": "sal"}, False),
        ({"settings": "ab12"}, False),
        ({"settings": "ab12", "label": "transformer-3e-3"}, True),
    ],
)
def test_what_is_plain(settings, plain):
    label = settings.get("label", "a")
    run = Run(Path("a"), label, 1, settings, 1, 1.0, {})
    assert is_plain(Row(f"{label} (settings=64-wide)", (run,))) == plain


def test_the_reason_is_given_where_there_is_no_test(make):
    def reason(*rows: Sequence[Run]) -> str:
        (one,) = compare(reported(*rows)).found
        assert one.p_sentences is None and one.interval is None and one.marks == ""
        return one.untested

    first, other = make("plain", 1, 5), make("sal", 1, 15)
    other.scores[EXACT] = other.scores[EXACT]._replace(value=50.0)
    said = reason([first], [other])
    assert "sal.1/test.best.json says 50.00 but the log beside it gives 75.00" in said
    write_log(other.path / "test.best.log", 20 * ["other"], TARGETS, TARGETS[:10] + 10 * ["?"])
    assert "plain.1 and" in (said := reason([first], [other])) and "the same sentences" in said
    (other.path / "test.best.log").unlink()
    assert "sal.1/test.best.log: No such file" in reason([first], [other])


@pytest.mark.parametrize("checkpoint", ["best", "last"])
def test_no_result_is_written_of_a_broken_log(make, checkpoint):
    run = make("sal", 1, 15)
    log = run.path / f"test.{checkpoint}.log"
    write_log(run.path / "test.last.log", SOURCES, TARGETS, 5 * ["wrong"] + TARGETS[5:])
    run.scores[ScoreName("exact_match", "last")] = Score(75.0, "m", run.path / "test.last.json")
    (kept,) = results._verdicts(run).values()
    assert unpack(kept["bits"], kept["of"]) == 15 * [1] + 5 * [0], "those of the chosen checkpoint"
    log.write_text(log.read_text()[:400])
    with pytest.raises(BrokenLog):
        results._verdicts(run)
    log.unlink()
    assert len(results._verdicts(run)) == (checkpoint == "last")


def test_scores_that_only_one_row_has_are_left_out(make):
    other = make("sal", 1, 15)
    other.scores[BLEU] = Score(1.0, "b", other.path / "bleu.best.json")
    assert [one.score for one in compare(reported([make("plain", 1, 5)], [other])).found] == [EXACT]


def test_bleu_compares_the_median_runs(make, tmp_path):
    raw = tmp_path / "data" / "raw" / "test.zh"
    write_lines(raw, TARGETS)
    options = BleuOptions("none", "none")
    texts = {}

    def scored(run: Run, right: int) -> Run:
        texts[run.label, run.seed] = TARGETS[:right] + [line[:12] for line in TARGETS[right:]]
        said = texts[run.label, run.seed]
        write_log(run.path / "test.best.log", SOURCES, 20 * ["cut <unk>"], said)
        value, stamp = bleu(texts[run.label, run.seed], TARGETS, options)
        stamp = f"metric:bleu|ref:test.zh|{stamp}"
        run.scores.clear()
        written = BleuMetric(options, raw).options
        run.scores[BLEU] = Score(value.score, stamp, run.path / "bleu.best.json", written)
        return run

    first = [scored(make("plain", seed, 5), right) for seed, right in ((1, 9), (2, 5), (3, 7))]
    other = [scored(make("sal", seed, 5), right) for seed, right in ((1, 15), (2, 11))]
    (one,) = compare(reported(first, other)).found
    medians = texts["plain", 3], texts["sal", 2]
    assert one.p_sentences == compare_bleu(*medians, TARGETS, options).p_value
    assert one.interval is None and one.untested == "" and one.p_seeds == pytest.approx(2 / 10)
    # by a reference in which nothing else is found, so that the score is the same
    references = [*TARGETS[:-1], TARGETS[-1].replace("of", "for")]
    write_lines(tmp_path / "other" / "raw" / "test.zh", references)
    moved = dataclasses.replace(other[1], data=tmp_path / "other")
    (one,) = compare(reported(first, [moved])).found
    assert one.p_sentences is None and one.untested == "plain and sal have other references"


def test_cter_is_tested_by_groups_of_five(make, tmp_path):
    cter = tmp_path / "data" / "cter"
    write_lines(cter / "lexicon", ["dog\t狗", "the\t/", "small\t小"])
    compounds = 5 * ["the dog"] + 5 * ["the small dog"] + 10 * ["the dog"]
    write_lines(cter / "test.compound", compounds)

    def scored(run: Run, wrong: Sequence[int]) -> Run:
        lines = ["猫" if i in wrong else "小狗" for i in range(20)]
        write_log(run.path / "test.best.log", [f"{c} ran" for c in compounds], TARGETS, lines)
        instance, aggregate = 5.0 * len(wrong), 25.0 * len({i // 5 for i in wrong})
        run.scores.clear()
        for name, value in zip(CTER, (instance, aggregate), strict=True):
            run.scores[name] = Score(value, "rules:published", run.path / "cter.best.json")
        return run

    first = scored(make("plain", 1, 5), [0, 5, 6, 10, 15])
    other = scored(make("sal", 1, 5), [0])
    aggregate, instance = compare(reported([first], [other])).found
    assert [aggregate.untested, instance.untested] == ["", ""]
    assert (instance.difference, aggregate.difference) == (-20, -75)
    assert instance.p_sentences == aggregate.p_sentences == stats.binomtest(0, 3).pvalue


def test_cogs_counts_the_generalization_cases(make, tmp_path):
    cases = tmp_path / "data" / "cases" / "test.case"
    write_lines(cases, 4 * ["in_distribution"] + 16 * ["pp_recursion"])
    runs = [make("plain", 1, 5), make("sal", 1, 12)]
    for run, right in zip(runs, (1, 8), strict=True):
        run.scores.clear()
        run.scores[COGS] = Score(100 * right / 16, "c", run.path / "cogs.best.json")
        macro = ScoreName("cogs macro", "best")
        run.scores[macro] = Score(1.0, "c", run.path / "cogs.best.json")
    whole, macro = compare(reported(*([run] for run in runs))).found
    assert whole.p_sentences == stats.binomtest(7, 7).pvalue
    assert macro.untested == "cogs macro has no value for a sentence"


def test_five_seeds_against_five_are_divided_in_every_way():
    assert over_seeds([1.0, 2, 3, 4, 5], [6.0, 7, 8, 9, 10]) == pytest.approx(2 / 252, rel=1e-9)
