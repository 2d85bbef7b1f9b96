"""Results: what is kept of a run, and RESULTS.md, which is made of them."""

import json
from pathlib import Path

import pytest
from in_process import output, refusal

from compgen.reporting.flags import flags
from compgen.reporting.results import without_folders
from compgen.reporting.results_tables import headlines, tables
from compgen.reporting.runs import fingerprint
from compgen.reporting.verdicts import pack
from compgen_cli import results as command

REPOSITORY = Path(__file__).resolve().parents[2]
PAPERS = """
introduction = "Our settings."
ours = ["mine"]
headlines = [["tiny/a", "exact_match", "plain", "sal", "mine"], ["tiny/b", "bleu", "", "sal", ""]]
[tiny]
title = "Tiny"
source = "A paper, Table 1"
[tiny.exact_match]
plain = "12.5 ± 1"
sal = 99
"""


def test_results_md_is_what_the_results_say():
    said = tables(REPOSITORY / "results")
    assert (REPOSITORY / "RESULTS.md").read_text(encoding="utf-8") == said, (
        "RESULTS.md is stale: compgen-results tables results --out RESULTS.md --readme README.md"
    )
    assert headlines(REPOSITORY / "results") in (REPOSITORY / "README.md").read_text("utf-8")


def test_results_are_small():
    for file in (REPOSITORY / "results").rglob("*.json"):
        assert file.stat().st_size <= 7000, file  # half of it COGS's 21,000 verdicts


def test_settings_are_the_commands():
    for file in (REPOSITORY / "results").rglob("*.json"):
        found = json.loads(file.read_text("utf-8"))
        assert found["settings"] == fingerprint(flags(found["command"])), file


def test_what_stands_of_a_command():
    command = "fairseq-train '/my own/data/' -s de --lr=0.1 --save-dir=/home/me/x.1 -t en 'a b'"
    said = "fairseq-train data -s de --lr=0.1 --save-dir=x.1 -t en 'a b'"
    assert without_folders(command) == said
    assert flags(said) == {"-s": ["de"], "lr": ["0.1"], "-t": ["en", "a b"]}


@pytest.fixture
def make(tmp_path):
    """``make("sal", 1, 50.0)``: a result in ``tmp_path / "results"``."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "papers.toml").write_text(PAPERS)

    def make(method, seed, value, place="tiny/a", cter=None, **changes):
        scores = {"exact_match": {"score": value, "correct": 1, "total": 2}}
        verdicts = {}
        if cter:
            rates = (sum(cter), sum(wrong > 0 for wrong in cter))
            names = ("cter instance", "cter aggregate")
            scores = {name: 100 * n / len(cter) for name, n in zip(names, rates, strict=True)}
            verdicts = {"cter instance": {"n": len(cter), "of": 5, "bits": pack(cter, 5)}}
        found = {
            "method": method,
            "seed": seed,
            "scores": {"best": scores, "last": scores},
            "signatures": {name: f"metric:{name}" for name in scores},
            "verdicts": verdicts,
            "chosen": {"metric": "exact_match", "subset": "valid", "from": "test20", "value": 9.0},
            "settings": method,
            "updates": 1200,
            "epochs": 2.5,
            "minutes": 4.0,
            "parameters": 3000,
            "command": "fairseq-train",
            "machine": "2 cores of a CPU",
            "revision": "0123456789ab",
            "data": {"fingerprint": "0a"},
            **changes,
        }
        file = tmp_path / "results" / place / f"{method}.{seed}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found))
        return file

    return make


def test_a_table_of_settings_for_each_score(make, tmp_path):
    for method, seed, value in (("sal", 1, 90), ("mine", 1, 80), ("plain", 7, 5)):
        make(method, seed, value, decoding="--beam 1 --user-dir own")
    make("sal", 2, 70, decoding="--beam 1")
    for seed in (1, 2):
        make("plain", seed, 6, "tiny/b")
    said = tables(tmp_path / "results")
    assert "\n\nOur settings.\n## Tiny\n\nPaper: A paper, Table 1.\n" in said
    assert said.split("### exact match\n\n")[1].splitlines()[2:] == [
        "| a | plain | 7 | 5.00 | 5.00 | 5.00 | 5.00 | 12.5 ± 1 | 1,200 | 2 | 3,000 |",
        "| a | sal | 1, 2 | 80.00 ± 14.14 | 80.00 | 70.00 | 80.00 ± 14.14 | 99 | 1,200 | 2 "
        "| 3,000 |",
        "| a | mine (ours) | 1 | 80.00 | 80.00 | 80.00 | 80.00 |  | 1,200 | 2 | 3,000 |",
        "| b | plain | 1, 2 | 6.00 ± 0.00 | 6.00 | 6.00 | 6.00 ± 0.00 | 12.5 ± 1 | 1,200 | 2 "
        "| 3,000 |",
        "",
        "Checkpoints were chosen by exact_match on valid (test20).",
        "",
        "`metric:exact_match`",
    ]


def test_headlines_stand_in_the_readme(make, tmp_path):
    for seed, value in ((1, 90), (2, 70)):
        make("sal", seed, value)
    make("mine", 1, 80)
    readme, folder = tmp_path / "README.md", str(tmp_path / "results")
    readme.write_text("Above.\n<!-- results -->\nold\n<!-- end -->\nBelow.\n")
    assert (
        command.main(["tables", folder, "--out", str(tmp_path / "R"), "--readme", str(readme)]) == 0
    )
    assert readme.read_text() == (
        "Above.\n<!-- results -->\n"
        "| data | score | baseline | published method | ours |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| Tiny, `a` | exact match | paper 12.5 ± 1 | `sal` 80.00 ± 14.14 (n = 2); paper 99 | "
        "`mine` 80.00 (n = 1) |\n"
        "<!-- end -->\nBelow.\n"
    )
    readme.write_text("nothing\n")
    said = refusal("compgen-results", "tables", folder, "--readme", readme)
    assert "has no lines <!-- results --> and <!-- end -->" in said


@pytest.mark.parametrize("part", ["train20", "last20"])
def test_syntactic_attention_that_learned_nothing_is_listed_and_left_out(part, make, tmp_path):
    held_out = {"metric": "exact_match", "subset": "valid", "from": part}
    for seed, valid in ((1, 99.0), (2, 10.0)):
        make("syntactic", seed, 40 * seed, chosen={**held_out, "value": valid})
        make("lstm", seed, 40 * seed, chosen={**held_out, "value": valid})
    said = tables(tmp_path / "results")
    assert "| syntactic | 1, (2) | 40.00 |" in said and "| lstm | 1, 2 | 60.00 ± 28.28 |" in said
    assert "Left out: at most 10% of the pairs held out from training right (in the paper: " in said
    make("syntactic", 3, 9, "tiny/b", chosen={**held_out, "value": 1.0})
    assert "| b | syntactic | (3) | | | | | | | | |\n" in tables(tmp_path / "results")
    (tmp_path / "results" / "papers.toml").write_text(
        'headlines = [["tiny/a", "exact_match", "", "syntactic", ""]]'
    )
    assert "| `syntactic` 40.00 (n = 1, 1 left out) |" in headlines(tmp_path / "results")
    # a small loss is no small accuracy
    make("syntactic", 2, 80, chosen={**held_out, "metric": "loss", "value": 0.01})
    assert "| syntactic | 1, 2 | 60.00 ± 28.28 |" in tables(tmp_path / "results")
    # of a part of the test set nothing follows about training
    make("syntactic", 2, 80, chosen={**held_out, "from": "test20", "value": 10.0})
    assert "| syntactic | 1, 2 | 60.00 ± 28.28 |" in tables(tmp_path / "results")


def test_the_relative_change_of_cter(make, tmp_path):
    for seed in (1, 2):
        make("plain", seed, 20, "other/a", cter=[0.4, 0.8, 0.4, 0.4] * 50)
    make("srl", 1, 30, "other/a", cter=[0.2, 0.4, 0.2, 0.2] * 50)
    make("proto", 1, 30, "other/a", cter=[0.2, 0.4, 0.2, 0.0] * 50)  # there is no transformer
    said = tables(tmp_path / "results")
    assert "\n### cter instance ↓\n" in said and "| a | plain | 1, 2 | 50.00 ± 0.00 |" in said
    assert "| cter instance | a | srl | plain | -50.0% | [-50.0%, -50.0%] |" in said
    assert "| cter aggregate | a | srl | plain | +0.0% | [+0.0%, +0.0%] |" in said
    assert "| proto | transformer" not in said and "| proto | plain" not in said


def test_what_cannot_stand_in_a_table_is_one_sentence(make, tmp_path):
    folder = tmp_path / "results"

    def message():
        said = refusal("compgen-results", "tables", folder, "--out", tmp_path / "out.md")
        assert not (tmp_path / "out.md").exists()
        return said

    make("sal", 1, 50)
    score = {"exact_match": "metric:exact_match|version:0"}
    for what, change in (
        ("data", {"data": {"fingerprint": "0b"}}),
        ("settings", {"settings": "x"}),
        ("ways to score", {"signatures": {"exact_match": "metric:exact_match|strict"}}),
        ("ways to decode", {"signatures": score, "decoding": "--beam 5"}),
    ):
        if "decode" in what:
            make("sal", 1, 50, decoding="--beam 1")
        other = make("sal", 2, 50, **change)
        said = message()
        assert f"sal.1.json and {other} are of one setting but differ in their {what}" in said
    other.unlink()
    other = make("plain", 2, 50, decoding="--beam 5")  # of another method
    first = other.with_name("sal.1.json")
    assert f"{other} and {first} are of one setting but differ in their ways to d" in message()
    other.unlink()
    other = make("sal", 2, 50, decoding="--beam 1")
    other.rename(other.with_name("plain.2.json"))
    assert "plain.2.json: by its content its name is sal.2.json" in message()
    other.with_name("plain.2.json").unlink()
    wrong = make("plain", 1, 50)
    for content in ("{", '{"method": "plain"}', "[]"):
        wrong.write_text(content)
        assert message().startswith(f"compgen-results: {wrong}: ")
    wrong.unlink()
    (folder / "plain.1.json").write_text(make("plain", 1, 50, "other/a").read_text())
    assert f"plain.1.json: a result's place is {folder}/DATA/SETTING" in message()
    (folder / "plain.1.json").unlink()
    (folder / "papers.toml").write_text("[")
    assert "papers.toml: " in message()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("introduction = 1", "introduction must be a text"),
        ('ours = "own"', "ours must be a list of methods"),
        ('headlines = [["mine/mini"]]', "headlines must be rows of five texts"),
        ('mine = "title"', "mine must be a table"),
        ("[mine]\ntitle = 1", "mine.title must be a text"),
        ("[mine]\nbleu = 1", "mine.bleu must be a table of texts or numbers"),
        ("[mine.bleu]\nsal = [1]", "mine.bleu must be a table of texts or numbers"),
    ],
)
def test_what_papers_toml_must_not_say_is_one_sentence(text, message, tmp_path):
    (tmp_path / "papers.toml").write_text(text)
    for make in (tables, headlines):
        with pytest.raises(ValueError, match=f"^{tmp_path}/papers.toml: {message}$"):
            make(tmp_path)


def test_results_are_printed(make, tmp_path):
    make("sal", 1, 50)
    assert output("compgen-results", "tables", tmp_path / "results") == tables(tmp_path / "results")


def test_report_reads_results_like_runs(make, tmp_path):
    for seed in (1, 2):
        make("plain", seed, 20, "other/a", cter=[0.4, 0.8, 0.4, 0.4] * 50, minutes=None)
        make("srl", seed, 30, "other/a", cter=[0.2, 0.4, 0.2, 0.2] * 50)
    flags = ["--baseline", "plain", "--json"]
    found = json.loads(output("compgen-report", tmp_path / "results", *flags))
    minutes = {row["label"]: [run["minutes"] for run in row["runs"]] for row in found["rows"]}
    assert minutes == {"plain": [None, None], "srl": [4.0, 4.0]}
    chosen = [one for one in found["comparisons"] if one["checkpoint"] == "best"]
    assert {one["score"]: one["difference"] for one in chosen} == {
        "cter instance": pytest.approx(-25),
        "cter aggregate": 0,
    }
    assert chosen[1]["p_sentences"] < 0.001 and chosen[1]["score"] == "cter instance"
    last = [one for one in found["comparisons"] if one["checkpoint"] == "last"]
    assert [one["p_sentences"] for one in last] == [None, None]  # its verdicts are not kept
    for seed in (1, 2):
        make("srl", seed, 30, "other/a", cter=[0.2, 0.4, 0.2, 0.2] * 50, decoding=f"--beam {seed}")
    said = refusal("compgen-report", tmp_path / "results")
    assert "srl.2.json were not decoded in the same way (--beam 1 and --beam 2)" in said
    assert "allow-differences decoding" in said
    output("compgen-report", tmp_path / "results", "--allow-differences", "decoding")
    kept = make("plain", 1, 20, "other/a", cter=[0.4] * 200, minutes=None)
    content = json.loads(kept.read_text())
    content["verdicts"]["cter instance"]["bits"] = "no"
    kept.write_text(json.dumps(content))
    said = output("compgen-report", kept.parent, "--allow-differences", "decoding")
    assert "its verdicts cannot be read" in said and "| plain | 1, 2 | 1,200 | - |" in said
