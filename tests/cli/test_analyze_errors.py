"""compgen-analyze errors on real references with known faults, and on a real log."""

import json
import random
import shutil

import pytest
from in_process import output, refusal
from logs import write_log
from written import analyzed, read_table

from compgen.scoring.generate_log import read
from compgen.text import write_lines

GROUPS = 40  # of five lines, of each type of compound


@pytest.fixture(scope="module")
def cognition(public, tmp_path_factory):
    """600 lines of CG-test as a prepared folder, and two logs: references, some cut short."""
    data, folder = public("cognition"), tmp_path_factory.mktemp("cognition")
    (folder / "cter").mkdir()
    shutil.copyfile(data / "eval/lexicon", folder / "cter/lexicon")
    texts = {
        part: (data / f"data/cg-test/cg-test.{part}").read_text(encoding="utf-8").splitlines()
        for part in ("en", "zh", "compound")
    }
    chosen = [kind * 3600 + 85 * group + i for kind in range(3) for group in range(GROUPS)
              for i in range(5)]  # fmt: skip
    english, chinese, compounds = ([lines[i] for i in chosen] for lines in texts.values())
    write_lines(folder / "cter/test.compound", compounds)
    logs = []
    for name, share in (("weak", 0.5), ("strong", 0.1)):
        draw = random.Random(1)
        cut = [text[: len(text) // 3] if draw.random() < share else text for text in chinese]
        logs.append(str(write_log(folder / f"{name}.log", english, chinese, cut)))
    return folder, logs


@pytest.fixture
def analyze(tmp_path):
    """``analyze(LOGS, BY, "--flag", ...)``: the rows of the table that it writes."""

    def analyze(logs, by, *flags):
        out = tmp_path / "out"
        written = analyzed("errors", *logs, "--by", by, *flags, out=out)
        files = {f"errors-{by}.{form}" for form in ("json", "csv", "png", "pdf")}
        assert {file.name for file in written} == files
        rows = json.loads((out / f"errors-{by}.json").read_text())["rates"]
        percents = [float(row["percent"]) for row in read_table(out / f"errors-{by}.csv")]
        assert percents == [row["percent"] for row in rows]
        return rows

    return analyze


@pytest.mark.parametrize("by", ["context-length", "type"])
def test_cter_by_group_is_that_of_compgen_cter(cognition, analyze, by):
    folder, logs = cognition
    rows = analyze(logs, by, "--data", folder, "--label", "weak", "strong")
    for log, label in zip(logs, ("weak", "strong"), strict=True):
        flags = [f"--{name}={folder}/cter/{file}" for name, file in (
            ("lexicon", "lexicon"), ("compound", "test.compound"))]  # fmt: skip
        found = json.loads(output("compgen-cter", "--log", log, *flags, "--json"))
        expected = found["groups"][by.replace("-", "_")]
        for measure in ("instance", "aggregate"):
            mine = [r for r in rows if (r["measure"], r["system"]) == (f"{measure} CTER", label)]
            assert [row[by] for row in mine] == list(expected)
            for row in mine:
                assert row["percent"] == pytest.approx(expected[row[by]][measure])
                assert row["low"] <= row["percent"] <= row["high"]
                if measure == "instance":
                    assert row["lines"] == expected[row[by]]["n"]


def test_cogs_cases(public, tmp_path, analyze):
    seen: dict[str, list[list[str]]] = {}
    for line in public("cogs/data/gen.tsv").read_text().splitlines():
        seen.setdefault(line.split("\t")[2], []).append(line.split("\t"))
    chosen = [row for rows in seen.values() for row in rows[:4]]
    write_lines(tmp_path / "cases/test.case", (row[2] for row in chosen))
    sources, targets, cases = zip(*chosen, strict=True)
    right = [i % 4 < 3 and cases[i] != "cp_recursion" for i in range(len(chosen))]
    hypotheses = [t if ok else "x" for t, ok in zip(targets, right, strict=True)]
    log = str(write_log(tmp_path / "test.log", sources, targets, hypotheses))
    rows = analyze([log], "case", "--data", tmp_path)
    assert len(rows) == 21 and {row["lines"] for row in rows} == {4}
    percents = {row["case"]: row["percent"] for row in rows}
    assert percents.pop("cp_recursion") == 0.0 and set(percents.values()) == {75.0}


@pytest.mark.parametrize("by", ["output-length", "input-length"])
def test_exact_match_by_length_of_a_real_log(tiny_log, analyze, by):
    generation = read(tiny_log)
    rows = analyze([str(tiny_log)], by)
    texts = generation.targets if by == "output-length" else generation.sources
    for row in rows:
        members = [i for i, text in enumerate(texts) if len(text.split()) == int(row[by])]
        right = sum(generation.hypotheses[i] == generation.targets[i] for i in members)
        assert row["lines"] == row["units"] == len(members)
        assert row["percent"] == pytest.approx(100 * right / len(members))
    assert sum(row["lines"] for row in rows) == 37


def test_what_cannot_be_done_is_one_sentence(cognition, tiny_log, tmp_path):
    folder, logs = cognition
    empty = tmp_path / "empty"
    (empty / "cases").mkdir(parents=True)
    (empty / "cases/test.case").write_text("active_to_passive\n")
    (empty / "cases/test1.case").write_text("active_to_passive\n" * 36 + "other\n")
    bare = write_log(tmp_path / "bare.log", ["the dog"], None, ["x"])
    tiny = tiny_log
    for flags, reason in (
        ([tmp_path / "none.log", "--by", "input-length"], "none.log: No such file"),
        ([bare, "--by", "input-length"], "bare.log: it has no references"),
        ([logs[0], tiny, "--by", "input-length"], "are not about the same sentences"),
        ([tiny, "--by", "modifier"], "--by modifier needs --data DATA, a folder of prepare/cog"),
        ([tiny, "--by", "modifier", "--data", empty], "test.compound is not there"),
        ([tiny, "--by", "modifier", "--data", folder], "37 sources, 600 compounds"),
        ([tiny, "--by", "case", "--data", folder], "test.case is not there"),
        ([tiny, "--by", "case", "--data", empty], "has 1 lines, for"),
        ([tiny, "--by", "case", "--data", empty, "--subset", "test1"], "'other' is not a general"),
        (
            [tiny, "--by", "input-length", "--data", folder],
            "reads the logs alone: leave out --data",
        ),
        ([tiny, "--by", "input-length", "--label", "a", "b"], "--label: name each of the 1 logs"),
    ):
        assert reason in refusal("compgen-analyze errors", *flags, "--out", tmp_path / "out")
        assert not (tmp_path / "out").exists(), "something half-done is left"
