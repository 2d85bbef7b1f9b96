"""``compgen-cter`` and ``compgen-compare`` on compounds of one's own: the example that ships."""

import csv
import json
import re
from pathlib import Path

import pytest
from logs import write_log

from compgen_cli import compare, cter

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "bitext"
RULES = ["--lexicon", str(EXAMPLE / "lexicon"), "--compound", str(EXAMPLE / "test.compound")]


def tokens(name):
    """A side of the test set, its full stops apart."""
    text = (EXAMPLE / name).read_text(encoding="utf-8")
    return re.sub(r"(?=\.$)", " ", text, flags=re.MULTILINE).splitlines()


def log(path, hypotheses):
    """What fairseq-generate prints of the test set, translated in this way."""
    return str(write_log(path, tokens("test.en"), tokens("test.de"), hypotheses))


@pytest.fixture
def worse(tmp_path):
    """A log with an adjective behind its noun, a missing adjective and half a word."""
    hypotheses = tokens("test.de")
    hypotheses[0] = hypotheses[0].replace("faule Pferd", "Pferd faule")
    hypotheses[6] = hypotheses[6].replace("alte Ärztin", "neue Ärztin")
    hypotheses[7] = hypotheses[7].replace("Ärztin", "Tierärztin")
    return log(tmp_path / "worse.log", hypotheses)


def test_references_are_right(tmp_path, capsys):
    assert cter.main([*RULES, "--log", log(tmp_path / "log", tokens("test.de")), "--json"]) == 0
    score = json.loads(capsys.readouterr().out)
    assert (score["instance"], score["aggregate"], score["n"]) == (0.0, 0.0, 20)
    assert score["signature"].startswith("metric:cter|case:mixed|rules:own|lexicon:")
    assert list(score["groups"]) == ["type", "compound_length", "context_length"]


def test_what_is_wrong_is_said(worse, tmp_path, capsys):
    verdicts, compounds = tmp_path / "verdicts.tsv", tmp_path / "compounds"
    spaced = (EXAMPLE / "test.compound").read_text().replace("horse", "horse ", 2)
    compounds.write_text(spaced)  # which are no other compounds
    rules = [*RULES[:2], "--compound", str(compounds)]
    assert cter.main([*rules, "--log", worse, "--per-line", str(verdicts), "--why"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["all", "15.00", "50.00", "20"]
    with open(verdicts, newline="", encoding="utf-8") as file:
        rows = {r["id"]: r for r in csv.DictReader(file, delimiter="\t") if r["error"] == "1"}
    assert {i: row["failed"] for i, row in rows.items()} == {
        "0": "order:ADJ-N",
        "6": "atom:ADJ:old",
        "7": "atom:N:doctor",
    }
    assert rows["0"]["why"] == "'lazy' does not go with 'horse': pferd faule"
    assert rows["7"]["why"] == "nothing stands for 'doctor' (ärztin/arzt)"


def test_two_systems(worse, tmp_path, capsys):
    right = log(tmp_path / "right.log", tokens("test.de"))
    assert compare.main([worse, right, "--metric", "cter", *RULES, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "rules:own" in found["signature"]
    (tmp_path / "compound").write_text("lazy horse\n" * 5 + "old doctor\n" * 15)
    flags = ["--metric", "cter", *RULES[:2], "--compound", str(tmp_path / "compound")]
    source = Path(right).read_text(encoding="utf-8")
    source = re.sub(r"^S-(\d+)\t.*", r"S-\1\tthe old doctor . the lazy horse .", source, flags=re.M)
    Path(right).write_text(source, encoding="utf-8")
    assert compare.main([right, right, *flags, "--json"]) == 0
    out, err = capsys.readouterr()
    scores = json.loads(out)["scores"]
    assert scores.keys() == {"aggregate"} and scores["aggregate"]["n"] == 2
    assert "instance: not compared, as compounds differ in number of lines" in err


@pytest.mark.parametrize(
    ("lexicon", "hypothesis", "instance"),
    [
        ("match\tcharacters\nADJ\told\t老\nN\tat the mill\t磨坊\n", "老 磨 坊里", 0.0),
        ("ADJ\told\tvieux\nN\tat the mill\tà l'usine\n", "vieux à l &apos;usine", 0.0),
        ("match\tcharacters\nADJ\told\tAlt\nN\tat the mill\tMühle\n", "altmu\u0308hle", 0.0),
        ("ADJ\told\tgrün\nN\tat the mill\tMühle\n", "gru\u0308n mu\u0308hle", 0.0),
        ("ADJ\told\tकि\nN\tat the mill\tमें\n", "का में", 100.0),  # vowels apart
    ],
)
def test_languages(lexicon, hypothesis, instance, tmp_path, capsys):
    """Without spaces parts of the text count, as in CoGnition, and with them whole words."""
    (tmp_path / "lexicon").write_text(lexicon, encoding="utf-8")
    texts = {"compound": "old at the mill", "source": "old at the mill", "hypothesis": hypothesis}
    flags = ["--lexicon", str(tmp_path / "lexicon"), "--json"]
    for name, text in texts.items():
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
        flags += [f"--{name}", str(tmp_path / name)]
    assert cter.main(flags) == 0
    assert json.loads(capsys.readouterr().out)["instance"] == instance


def test_check_names_every_bad_line(tmp_path, capsys):
    assert cter.main([*RULES, "--check"]) == 0
    said = "8 atoms, 4 compounds in 20 lines: nothing is wrong with them\n"
    assert capsys.readouterr().out == said
    bad = tmp_path / "lexicon"
    lines = ["# mine", "X\tdog\tHund", "N\tdog", "N\tdog\tHund/", "N\tcat\tKatze", "N\tcat\tKatze"]
    bad.write_text("\n".join([*lines, "order\tN\tN", "order\tADJ\tN\n"]), encoding="utf-8")
    flags = ["--lexicon", str(bad), *RULES[2:]]
    assert cter.main([*flags, "--check"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{bad}, line 2: 'X' is not a type; the types are P V DET ADJ N MOD",
        f"{bad}, line 3: not a type, an atom and its translations with tabs between them",
        f"{bad}, line 4: a translation of 'dog' is empty",
        f"{bad}, line 6: 'cat' has been listed before",
        f"{bad}, line 7: order is followed by two different types of P V DET ADJ N MOD",
    ]
    assert cter.main([*flags, "--log", "nowhere"]) == 1
    assert f"{bad}, line 2: 'X' is not a type" in (said := capsys.readouterr().err)
    assert said.endswith("; compgen-cter --check lists 4 more bad lines\n")
    assert cter.main([*flags, "--check", "--log", "nowhere"]) == 1
    assert "--check looks at --lexicon and --compound alone" in capsys.readouterr().err
    compounds = tmp_path / "compound"
    compounds.write_text("lazy horse\nlazy cat\nlazy cat\nold lazy dog\n")
    assert cter.main([*RULES[:2], "--compound", str(compounds), "--check"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{compounds}, line 2: 'cat' in the compound 'lazy cat' is not an atom of the lexicon",
        f"{compounds}, line 4: the compound 'old lazy dog' has two atoms of the type ADJ: 'old' "
        "and 'lazy'",
    ]


def test_strict_rules_are_cognitions(capsys):
    assert cter.main([*RULES, "--strict", "--log", "nowhere"]) == 1
    assert "is of own compounds: strict rules are CoGnition's\n" in capsys.readouterr().err
