"""``compgen-cter`` on logs and on aligned files."""

import json
import os

import pytest
from in_process import output, refusal
from logs import write_log
from written import read_table

COMPOUNDS = 5 * ["the dog"] + 5 * ["saw every car he liked"]
HYPOTHESES = [*["有 狗 。"] * 4, "有 猫 。", *["他 看 了 他喜@@ 欢的 每@@ 辆 车 。"] * 5]
LEXICON = "the\t/\ndog\t狗\nsaw\t看\nevery\t每\ncar\t车\nmod0\t他喜欢的\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The flags that name the input: a log's, and those of two aligned files."""
    monkeypatch.delenv("COMPGEN_DATA", raising=False)
    sources = [f"{compound} was here ." for compound in COMPOUNDS]
    texts = {
        "lexicon": LEXICON,
        "compound": lines(COMPOUNDS),
        "source": lines(sources),
        "hypothesis": lines(HYPOTHESES),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    write_log(tmp_path / "log", sources, None, HYPOTHESES)
    names = {name: [f"--{name}", str(tmp_path / name)] for name in (*texts, "log")}
    rules = names["compound"] + names["lexicon"]
    return tmp_path, names["log"] + rules, names["source"] + names["hypothesis"] + rules


def lines(items):
    return "".join(f"{item}\n" for item in items)


def test_a_log_aligned_files_and_a_pipe_give_the_same(files):
    folder, log, aligned = files
    reader, writer = os.pipe()
    os.write(writer, (folder / "lexicon").read_bytes())
    os.close(writer)
    printed = []
    for flags in (log, aligned, [*log, "--lexicon", f"/dev/fd/{reader}"]):
        printed.append(json.loads(output("compgen-cter", *flags, "--json")))
    os.close(reader)
    assert printed[0] == printed[1] == printed[2]
    score = printed[0]
    assert score["signature"].startswith("metric:cter|case:mixed|rules:published|lexicon:")
    assert "|n:10|version:" in score["signature"]
    assert score == score | {"metric": "cter", "instance": 10.0, "aggregate": 50.0, "n": 10}
    assert score["groups"] == {
        "type": {
            "NP": {"instance": 20.0, "aggregate": 100.0, "n": 5},
            "VP": {"instance": 0.0, "aggregate": 0.0, "n": 5},
        },
        "compound_length": {
            "2": {"instance": 20.0, "aggregate": 100.0, "n": 5},
            "5": {"instance": 0.0, "aggregate": 0.0, "n": 5},
        },
        "context_length": {"0-4": {"instance": 10.0, "aggregate": 50.0, "n": 10}},
        "modifier": {
            "with": {"instance": 0.0, "aggregate": 0.0, "n": 5},
            "without": {"instance": 20.0, "aggregate": 100.0, "n": 5},
        },
    }


def test_table_and_verdicts(files):
    folder, log, _ = files
    table = output("compgen-cter", *log, "--per-line", folder / "verdicts.tsv").splitlines()
    assert table[1].split() == ["all", "10.00", "50.00", "10"]
    assert ["NP", "20.00", "100.00", "5"] in [row.split() for row in table]
    assert table[-1].startswith("metric:cter|")
    verdicts = read_table(folder / "verdicts.tsv", delimiter="\t")
    assert [row["error"] for row in verdicts] == list("0000100000")
    assert verdicts[4] == {
        "id": "4",
        "type": "NP",
        "source": "the dog was here .",
        "compound": "the dog",
        "hypothesis": "有 猫 。",
        "error": "1",
        "failed": "atom:N:dog",
    }


def test_strict_says_so(files):
    folder, _, aligned = files
    (folder / "hypothesis").write_text(lines([*["有 热狗 。"] * 5, *HYPOTHESES[5:]]))
    score = json.loads(output("compgen-cter", *aligned, "--json"))
    assert score["instance"] == 0.0 and "options" not in score
    score = json.loads(output("compgen-cter", *aligned, "--json", "--strict"))
    assert score["instance"] == 50.0 and "|rules:strict|" in score["signature"]
    assert score["options"] == {"strict": True}  # by which a report judges again


def test_why(files):
    folder, _, aligned = files
    (folder / "hypothesis").write_text(lines([*HYPOTHESES[:5], *["车 他 看 每 。"] * 5]))
    output("compgen-cter", *aligned, "--per-line", folder / "verdicts.tsv", "--why")
    rows = (folder / "verdicts.tsv").read_text().splitlines()
    assert rows[0].endswith("\terror\tfailed\twhy")
    assert rows[1].endswith("\t0\t\t")
    assert rows[5].endswith("\tatom:N:dog\tnothing stands for 'dog' (狗)")
    assert rows[6].endswith("\tatom:MOD:mod0\tnothing stands for 'he liked' (他喜欢的)")
    (folder / "hypothesis").write_text(lines([*HYPOTHESES[:5], *["车 他喜欢的 他 看 每 。"] * 5]))
    output("compgen-cter", *aligned, "--per-line", folder / "verdicts.tsv", "--why")
    rows = (folder / "verdicts.tsv").read_text().splitlines()
    assert rows[6].endswith("\torder:DET-N\t'every' does not go with 'car': 车他喜欢的他看每")
    assert "--why is a column of --per-line FILE" in refusal("compgen-cter", *aligned, "--why")


def verdicts(hypotheses, errors):
    """A file of people's verdicts; its columns are in an order of their own."""
    rows = zip(errors, COMPOUNDS, hypotheses, strict=True)
    return "error\tcompound\tsource\tnote\thypothesis\n" + lines(
        f"{error}\t{compound}\tso {compound} was .\t\t{text}" for error, compound, text in rows
    )


def test_agreement_with_people(files):
    folder, log, _ = files
    hypotheses = ["有 狗 。", "吃 热狗 。", "有 猫 。", "有 犬 。", "有 狗 。", *HYPOTHESES[5:]]
    (folder / "people.tsv").write_text(verdicts(hypotheses, "0110000001"))
    flags = ["--against", folder / "people.tsv", *log[-2:]]
    unlike = ["--per-line", folder / "unlike.tsv"]
    score = json.loads(output("compgen-cter", *flags, "--json", *unlike))
    assert score["metric"] == "cter-agreement" and "|n:10|" in score["signature"]
    published, strict = (score["agreement"]["all"][rules] for rules in ("published", "strict"))
    assert published == {"precision": 50.0, "recall": pytest.approx(100 / 3), "f1": 40.0}
    assert strict == dict.fromkeys(("precision", "recall", "f1"), pytest.approx(200 / 3))
    assert list(score["agreement"]) == ["all", "NP", "VP"]
    assert score["agreement"]["VP"]["strict"]["recall"] == 0.0
    assert {name: rate["instance"] for name, rate in score["cter"].items()} == {
        **{"people": 30.0, "published": 20.0, "strict": 30.0}
    }
    rows = (folder / "unlike.tsv").read_text().splitlines()
    assert rows[0].split("\t")[-3:] == ["error", "published", "strict"]
    assert [row.split("\t")[0] for row in rows[1:]] == ["1", "3", "9"]
    assert rows[1].split("\t")[-3:] == ["1", "", "atom:N:dog"]
    table = output("compgen-cter", *flags).splitlines()
    assert table[1].split() == ["all", "50.00", "33.33", "40.00", *["66.67"] * 3, "10"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("error\t", "wrong\t", "people.tsv has no column 'error'"),
        ("\n1\t", "\n?\t", "people.tsv, line 3: the verdict '?' is not 0 or 1"),
        ("\t\t有", "\t有", "people.tsv, line 2 has 4 fields, but the first has 5"),
        ("0\tthe dog\t", "0\tthe car\t", "people.tsv, line 3: 'the dog' is not the compound of"),
        ("so the dog", "so the car", "people.tsv, without its first line: line 1: the compound"),
    ],
)
def test_verdicts_that_cannot_be_read(old, new, message, files):
    folder, log, _ = files
    text = verdicts(HYPOTHESES, "0100000000")
    assert old in text
    (folder / "people.tsv").write_text(text.replace(old, new, 1))
    flags = ["--against", str(folder / "people.tsv"), *log[-2:]]
    assert message in refusal("compgen-cter", *flags)
    assert "is for both rules: say only --lexicon" in refusal("compgen-cter", *flags, "--strict")


def test_strict_agrees_with_people(public):
    people = public("cognition/human/outputs.tsv")
    score = json.loads(output("compgen-cter", "--against", people, "--json"))
    found = {rules: round(s["f1"], 2) for rules, s in score["agreement"]["all"].items()}
    assert found == {"published": 91.26, "strict": 97.21}
    assert {rules: round(rate["aggregate"], 2) for rules, rate in score["cter"].items()} == {
        **{"people": 63.30, "published": 59.29, "strict": 63.01}
    }


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("log", "S-3\tthe dog was here .\n", "", "log: it is not one output"),
        ("log", "S-2\tthe dog", "S-2\tthe car", "line 3: the compound 'the dog' is not in the"),
        ("lexicon", "dog\t狗\n", "", "compound, line 1: 'dog' is not in the lexicon"),
    ],
)
def test_input_that_cannot_be_scored(name, old, new, message, files):
    folder, log, _ = files
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new, 1))
    verdicts = folder / "verdicts.tsv"
    said = refusal("compgen-cter", *log, "--per-line", str(verdicts))
    assert message in said and f" {folder}/" in said
    assert not verdicts.exists()


def test_text_of_ones_own_is_not_taken_for_cognitions(files, monkeypatch):
    folder, (flag, log, *_), _ = files
    for name, place in (("compound", "data/cg-test/cg-test.compound"), ("lexicon", "eval/lexicon")):
        (folder / "cognition" / place).parent.mkdir(parents=True)
        (folder / "cognition" / place).write_text(2 * (folder / name).read_text())
    monkeypatch.setenv("COMPGEN_DATA", str(folder))
    assert "name others with --compound and --lexicon" in refusal("compgen-cter", flag, log)


def test_cognitions_lexicon_is_checked_with_its_compounds(files):
    folder, log, _ = files
    reader, writer = os.pipe()  # the lexicon can be read once only
    os.write(writer, (folder / "lexicon").read_bytes())
    os.close(writer)
    said = output("compgen-cter", *log[2:], "--check", "--lexicon", f"/dev/fd/{reader}")
    os.close(reader)
    assert said == "6 atoms, 2 compounds in 10 lines: nothing is wrong with them\n"


def test_flags_that_do_not_fit(files):
    folder, log, aligned = files
    both = "say --log LOG, or --source FILE and --hypothesis FILE"
    assert both in refusal("compgen-cter", *log, *aligned)
    assert both in refusal("compgen-cter", *aligned[2:])
    assert both in refusal("compgen-cter", *log[2:])
    assert "say --lexicon FILE, or set COMPGEN_DATA to" in refusal("compgen-cter", *log[:2])
    assert "nowhere: No such file" in refusal("compgen-cter", *aligned, "--source", "nowhere")
    target = folder / "no" / "verdicts.tsv"
    assert f"{target}: No such file" in refusal("compgen-cter", *log, "--per-line", str(target))


def test_the_whole_test_set_by_default(public):
    test = public("cognition/data/cg-test") / "cg-test"
    files = ["--source", f"{test}.en", "--hypothesis", f"{test}.zh"]
    score = json.loads(output("compgen-cter", *files, "--json"))
    assert score["instance"] == pytest.approx(100 * 283 / 10800)
    assert score["aggregate"] == pytest.approx(100 * 212 / 2160)
