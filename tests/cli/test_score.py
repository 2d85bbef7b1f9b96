"""``compgen-score`` on a log that fairseq-generate wrote."""

import json

import pytest
from in_process import output, refusal
from logs import write_log
from sacrebleu import corpus_bleu

from compgen.scoring import generate_log
from compgen.text import write_lines


@pytest.fixture
def correct(tiny_log) -> int:
    generation = generate_log.read(tiny_log)
    return sum(h == t for h, t in zip(generation.hypotheses, generation.targets, strict=True))


def test_the_score_is_the_one_fairseq_generate_printed(tiny_log, correct):
    printed = output("compgen-score", tiny_log).splitlines()
    assert (
        len(printed) == 2
        and printed[0] == f"ExactMatch = {100 * correct / 37:.2f} ({correct} / 37)"
    )
    assert tiny_log.read_text().rstrip().endswith(printed[0])
    assert printed[1].startswith("metric:exact_match|case:mixed|n:37|version:")


def test_json(tiny_log, correct):
    printed = json.loads(output("compgen-score", tiny_log, "--json", "--expected", "37"))
    assert printed.pop("signature").startswith("metric:exact_match|case:mixed|n:37|")
    percent = pytest.approx(100 * correct / 37)
    assert printed == {"metric": "exact_match", "score": percent, "correct": correct, "total": 37}


def test_bleu_with_sacrebleus_signature(tiny_log):
    generation = generate_log.read(tiny_log)
    targets = [target.replace("<<unk>>", "unknown") for target in generation.targets]
    expected = corpus_bleu(generation.hypotheses, [targets], force=True)
    assert 0 < expected.score < 100
    printed = output("compgen-score", tiny_log, "--metric", "bleu").splitlines()
    assert printed[0] == str(expected) and len(printed) == 2
    assert printed[1].startswith(
        "metric:bleu|ref:log|detok:none|n:37|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"
    )


@pytest.mark.parametrize("language", ["EN", "sw"])
def test_moses_has_general_rules_for_languages_without_own(language, tmp_path):
    log = write_log(tmp_path / "log", ["a"], ["it 's a dog of mine !"], ["it's a dog of mine!"])
    options = ["--metric", "bleu", "--detokenize", "moses", "--lang", language, "--json"]
    found = json.loads(output("compgen-score", log, *options))
    assert (found["score"] == pytest.approx(100)) == (language != "sw")
    assert f"|detok:moses.{language.lower()}|" in found["signature"]


def test_the_references_can_come_from_a_file(tiny_log, tiny_data):
    raw = tiny_data.parent / "test.tgt"
    assert "FEP" in raw.read_text()  # an unknown word, lost in the log
    options = ["--reference", str(raw), "--json"]
    chinese = ["--metric", "bleu", "--detokenize", "chinese", "--tokenize", "zh", "--lowercase"]
    found = json.loads(output("compgen-score", tiny_log, *options, *chinese))
    hypotheses = [h.replace(" ", "") for h in generate_log.read(tiny_log).hypotheses]
    references = [line.replace(" ", "") for line in raw.read_text().splitlines()]
    expected = corpus_bleu(hypotheses, [references], tokenize="zh", lowercase=True)
    assert found["score"] == expected.score and found["total"] == 37
    assert "|ref:test.tgt|detok:chinese|n:37|" in found["signature"]
    assert "|case:lc|eff:no|tok:zh|" in found["signature"]

    found = json.loads(output("compgen-score", tiny_log, *options))
    assert found["metric"] == "exact_match" and "|ref:test.tgt|n:37|" in found["signature"]


def test_plain_text_is_scored_and_compared_like_a_log(tiny_log, tmp_path):
    system = generate_log.read(tiny_log)
    text, options = tmp_path / "text", ["--reference", tmp_path / "raw"]
    write_lines(text, system.hypotheses)
    write_lines(tmp_path / "raw", system.targets)
    for metric in ("exact_match", "bleu"):
        words = (*options, "--metric", metric)
        assert output("compgen-score", text, *words) == output("compgen-score", tiny_log, *words)
    assert "B - A    +0.00" in output("compgen-compare", tiny_log, text, *options)
    assert "it has no sentences with hypotheses" in refusal("compgen-score", text)
    said = refusal("compgen-score", text, *options, "--expected", "36")
    assert said == f"compgen-score: {text}: it has 37 lines, not --expected 36"
    write_lines(text, ["2026-01-01 | INFO | fairseq_cli.generate | loading"] * 37)
    assert "it has no sentences with hypotheses" in refusal("compgen-score", text, *options)


def test_cogs_by_case(tiny_log, correct, tmp_path):
    generation = generate_log.read(tiny_log)
    right = [h == t for h, t in zip(generation.hypotheses, generation.targets, strict=True)]
    names = ["pp_recursion", "prim_to_inf_arg", "in_distribution"]
    cases = [names[i % 3] for i in range(37)]
    write_lines(tmp_path / "test.case", cases)
    options = [str(tiny_log), "--metric", "cogs", "--cases", str(tmp_path / "test.case")]
    found = json.loads(output("compgen-score", *options, "--json"))
    by_case = [[r for r, c in zip(right, cases, strict=True) if c == name] for name in names]
    structural, lexical = (100 * sum(r) / len(r) for r in by_case[:2])
    assert found["structural"] == pytest.approx(structural)
    assert found["lexical"] == pytest.approx(lexical)
    assert found["macro"] == pytest.approx((structural + lexical) / 2)
    assert (found["correct"], found["total"]) == (sum(by_case[0] + by_case[1]), 25)
    assert found["in_distribution"]["correct"] == sum(by_case[2])
    assert list(found["cases"]) == ["prim_to_inf_arg", "pp_recursion"]
    assert found["signature"].startswith("metric:cogs|case:mixed|cases:2|n:25|")
    printed = output("compgen-score", *options).splitlines()
    assert printed[-2].split()[:2] == ["overall", f"{found['score']:.2f}"]
    assert printed[-1] == found["signature"]

    (tmp_path / "test.case").write_text(36 * "pp_recursion\n")
    said = "test.case: it has 36 lines, for 37 sentences"
    assert refusal("compgen-score", *options).endswith(said)
