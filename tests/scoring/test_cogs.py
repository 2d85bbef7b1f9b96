"""COGS: exact match by generalization case and its averages."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from compgen.scoring.cogs import CASES, LEXICAL, STRUCTURAL, cogs, read_cases
from compgen.scoring.exact_match import ExactMatch
from compgen.scoring.metrics import CogsMetric

# case, how many of how many are right
COUNTS = {
    "prim_to_inf_arg": (3, 4),
    "active_to_passive": (1, 1),
    "cp_recursion": (0, 3),
    "in_distribution": (1, 2),
}


@pytest.fixture
def score():
    cases = [case for case, (_, total) in COUNTS.items() for _ in range(total)]
    right = [i < correct for correct, total in COUNTS.values() for i in range(total)]
    order = sorted(range(len(cases)), key=lambda i: (i * 7) % len(cases))  # as mixed as gen.tsv is
    return cogs(
        [f"form {i}" if right[i] else "form" for i in order],
        [f"form {i}" for i in order],
        [cases[i] for i in order],
    )


def test_averages_weigh_cases_and_the_overall_score_sentences(score):
    assert score.average(["pp_recursion"]) is None
    rows = dict(line.split(maxsplit=1) for line in str(score).splitlines())
    assert rows == {
        "prim_to_inf_arg": "75.00 (3 / 4)",
        "active_to_passive": "100.00 (1 / 1)",
        "cp_recursion": "0.00 (0 / 3)",
        "lexical": "87.50",
        "structural": "0.00",
        "macro": "58.33",
        "in_distribution": "50.00 (1 / 2)",
        "overall": "50.00 (4 / 8)",
    }


def test_cases_of_ones_own_are_neither_lexical_nor_structural():
    own = cogs(["a", "b"], ["a", "c"], ["mine", "cp_recursion"])
    assert own.cases == {"cp_recursion": ExactMatch(0, 1), "mine": ExactMatch(1, 1)}
    assert (own.average(LEXICAL), own.average(STRUCTURAL), own.average()) == (None, 0, 50)


def test_a_misspelled_case_among_the_publishers_is_refused(tmp_path):
    file = tmp_path / "cases"
    file.write_text("mine\nyours\n")
    assert read_cases(file, 2) == ["mine", "yours"]
    file.write_text("cp_recursion\ncp_recursoin\n")
    with pytest.raises(ValueError, match="line 2: 'cp_recursoin' is not a generalization case"):
        read_cases(file, 2)


def test_what_has_no_case_is_refused(tmp_path):
    (tmp_path / "cases").write_text("in_distribution\n")
    system = SimpleNamespace(hypotheses=["a"], references=lambda file, alike: ["a"])
    with pytest.raises(ValueError, match="cases names no generalization case: "):
        CogsMetric(tmp_path / "cases").score(system)


def test_the_cases_are_those_of_the_publisher(public):
    folder = public("cogs/data")
    lines = (folder / "gen.tsv").read_text(encoding="utf-8").splitlines()
    forms, cases = zip(*(line.split("\t")[1:] for line in lines), strict=True)
    assert Counter(cases) == dict.fromkeys(CASES, 1000)
    assert cogs(forms, forms, cases).overall == ExactMatch(21000, 21000)
    sections = json.loads((folder / "gen_cases_to_paper_sections.json").read_text())
    assert {c for c in CASES if sections[c].startswith(("3.2.", "3.3."))} == set(STRUCTURAL)
    assert {c for c in CASES if sections[c].startswith(("3.1", "3.4", "3.5"))} == set(LEXICAL)
