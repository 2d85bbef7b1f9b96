"""``compgen-cter`` and ``compgen-compare`` on compounds of one's own: the example that ships."""

import json
import re
from pathlib import Path

import pytest
from in_process import call, output, refusal
from logs import write_log
from written import read_table

from compgen.text import read_lines, write_lines

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


def test_references_are_right(tmp_path):
    right = log(tmp_path / "log", tokens("test.de"))
    score = json.loads(output("compgen-cter", *RULES, "--log", right, "--json"))
    assert (score["instance"], score["aggregate"], score["n"]) == (0.0, 0.0, 20)
    assert score["signature"].startswith("metric:cter|case:mixed|rules:own|lexicon:")
    assert list(score["groups"]) == ["type", "compound_length", "context_length"]


def test_what_is_wrong_is_said(worse, tmp_path):
    verdicts, compounds = tmp_path / "verdicts.tsv", tmp_path / "compounds"
    spaced = (EXAMPLE / "test.compound").read_text().replace("horse", "horse ", 2)
    compounds.write_text(spaced)  # which are no other compounds
    flags = [*RULES[:2], "--compound", compounds, "--log", worse, "--per-line", verdicts, "--why"]
    table = output("compgen-cter", *flags).splitlines()
    assert table[1].split() == ["all", "15.00", "50.00", "20"]
    wrong = {row["id"]: row for row in read_table(verdicts, delimiter="\t") if row["error"] == "1"}
    assert {i: row["failed"] for i, row in wrong.items()} == {
        "0": "order:ADJ-N",
        "6": "atom:ADJ:old",
        "7": "atom:N:doctor",
    }
    assert wrong["0"]["why"] == "'lazy' does not go with 'horse': pferd faule"
    assert wrong["7"]["why"] == "nothing stands for 'doctor' (ärztin/arzt)"


def test_two_systems(worse, tmp_path):
    right = log(tmp_path / "right.log", tokens("test.de"))
    flags = ["--metric", "cter", *RULES, "--json"]
    found = json.loads(output("compgen-compare", worse, right, *flags))
    assert "rules:own" in found["signature"]
    (tmp_path / "compound").write_text("lazy horse\n" * 5 + "old doctor\n" * 15)
    flags = ["--metric", "cter", *RULES[:2], "--compound", str(tmp_path / "compound")]
    source = Path(right).read_text(encoding="utf-8")
    source = re.sub(r"^S-(\d+)\t.*", r"S-\1\tthe old doctor . the lazy horse .", source, flags=re.M)
    Path(right).write_text(source, encoding="utf-8")
    said = call("compgen-compare", [right, right, *flags, "--json"])
    scores = json.loads(said.out)["scores"]
    assert scores.keys() == {"aggregate"} and scores["aggregate"]["n"] == 2
    assert "instance: not compared, as compounds differ in number of lines" in said.err


@pytest.mark.parametrize(
    ("lexicon", "hypothesis", "instance"),
    [
        ("match\tcharacters\nADJ\told\t老\nN\tat the mill\t磨坊\n", "老 磨 坊里", 0.0),
        ("match\twords\nADJ\told\t老\nN\tat the mill\t磨坊\n", "老 磨坊", 0.0),
        ("match\twords\nADJ\told\t老\nN\tat the mill\t磨坊\n", "老磨坊", 100.0),
        ("ADJ\told\tvieux\nN\tat the mill\tà l'usine\n", "vieux à l &apos;usine", 0.0),
        ("match\tcharacters\nADJ\told\tAlt\nN\tat the mill\tMühle\n", "altmu\u0308hle", 0.0),
        ("ADJ\told\tgrün\nN\tat the mill\tMühle\n", "gru\u0308n mu\u0308hle", 0.0),
        ("ADJ\told\t/\nN\tat the mill\tMühle\n", "Mühle", 0.0),  # needs no translation
        ("ADJ\told\tकि\nN\tat the mill\tमें\n", "का में", 100.0),  # vowels apart
    ],
)
def test_languages(lexicon, hypothesis, instance, tmp_path):
    """Without spaces parts of the text count, as in CoGnition, and with them whole words."""
    (tmp_path / "lexicon").write_text(lexicon, encoding="utf-8")
    texts = {"compound": "old at the mill", "source": "old at the mill", "hypothesis": hypothesis}
    flags = ["--lexicon", str(tmp_path / "lexicon"), "--json"]
    for name, text in texts.items():
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
        flags += [f"--{name}", str(tmp_path / name)]
    assert json.loads(output("compgen-cter", *flags))["instance"] == instance


def test_check_names_every_bad_line(tmp_path):
    said = "8 atoms, 4 compounds in 20 lines: nothing is wrong with them\n"
    assert output("compgen-cter", *RULES, "--check") == said
    bad = tmp_path / "lexicon"
    lines = ["# mine", "X\tdog\tHund", "N\tdog", "N\tdog\tHund/", "N\tcat\tKatze", "N\tcat\tKatze"]
    bad.write_text("\n".join([*lines, "order\tN\tN", "order\tADJ\tN\n"]), encoding="utf-8")
    flags = ["--lexicon", bad, *RULES[2:]]
    assert output("compgen-cter", *flags, "--check", status=1).splitlines() == [
        f"{bad}, line 2: 'X' is not a type; the types are P V DET ADJ N MOD",
        f"{bad}, line 3: not a type, an atom and its translations with tabs between them",
        f"{bad}, line 4: a translation of 'dog' is empty",
        f"{bad}, line 6: 'cat' has been listed before",
        f"{bad}, line 7: order is followed by two different types of P V DET ADJ N MOD",
    ]
    said = refusal("compgen-cter", *flags, "--log", "nowhere")
    assert f"{bad}, line 2: 'X' is not a type" in said
    assert said.endswith("; compgen-cter --check lists 4 more bad lines")
    said = refusal("compgen-cter", *flags, "--check", "--log", "nowhere")
    assert "--check looks at --lexicon and --compound alone" in said
    bad.write_text("N\thorse\tPferd\norder\tADJ\tN\n", encoding="utf-8")
    said = refusal("compgen-cter", *flags, "--log", "nowhere")
    assert said.endswith(f"{bad}, line 2: no atom is of the type ADJ of this order")
    for word in ("犬", "いぬ", "イヌ", "หมา", "ໝາ", "ခွေး", "ឆ្កែ"):
        bad.write_text(f"N\thorse\tPferd\nN\tdog\t{word}\nN\tcat\t猫\n", encoding="utf-8")
        said = refusal("compgen-cter", *flags, "--log", "nowhere")
        assert f"{bad}, line 2: written without spaces: add a line `match` TAB `cha" in said
    compounds = tmp_path / "compound"
    compounds.write_text("lazy horse\nlazy cat\nlazy cat\nold lazy dog\n\n")
    flags = [*RULES[:2], "--compound", compounds]
    assert output("compgen-cter", *flags, "--check", status=1).splitlines() == [
        f"{compounds}, line 2: 'cat' in the compound 'lazy cat' is not an atom of the lexicon",
        f"{compounds}, line 4: the compound 'old lazy dog' has two atoms of the type ADJ: 'old' "
        "and 'lazy'",
        f"{compounds}, line 5: the compound is empty",
    ]
    said = refusal("compgen-cter", *flags, "--log", "nowhere")
    assert f"{compounds}, line 2: 'cat' in the compound" in said


def test_errors_by_type_are_those_of_the_scores(worse, tmp_path):
    for name in ("lexicon", "test.compound"):
        write_lines(tmp_path / "data/cter" / name, read_lines(EXAMPLE / name))
    flags = [worse, "--data", tmp_path / "data", "--out", tmp_path / "out", "--by"]
    output("compgen-analyze errors", *flags, "type")
    rates = json.loads((tmp_path / "out/errors-type.json").read_text())["rates"]
    groups = json.loads(output("compgen-cter", *RULES, "--log", worse, "--json"))["groups"]["type"]
    for measure in ("instance", "aggregate"):
        found = {r["type"]: r["percent"] for r in rates if r["measure"] == f"{measure} CTER"}
        assert found == pytest.approx({name: group[measure] for name, group in groups.items()})
    said = refusal("compgen-analyze errors", *flags, "modifier")
    assert said.endswith("--by modifier: compounds of your own have no modifiers")


def test_strict_rules_are_cognitions():
    said = refusal("compgen-cter", *RULES, "--strict", "--log", "nowhere")
    assert said.endswith("is of own compounds: strict rules are CoGnition's")
