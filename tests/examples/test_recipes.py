"""The recipes: train, resume, evaluate and report through the real scripts, on tiny data."""

import fcntl
import json
import os
import shutil

import pytest
from instant import instant
from logs import write_log
from prepare_scripts import publish, read_back
from recipes import EXAMPLES, TINY, prepared, script

from compgen.data.corpora import CORPORA
from compgen.reporting.verdicts import unpack
from compgen.scoring import generate_log
from compgen.text import read_lines, write_lines
from compgen_fairseq import CATTransformerModel


@pytest.mark.parametrize(
    ("recipe", "languages", "method", "scores"),
    [
        ("scan", ("src", "tgt"), "sal-brown", {"test", "codes"}),
        ("cognition", ("en", "zh"), "srl", {"cter", "bleu", "codes"}),
        ("bitext", ("en", "zh"), "plain", {"cter", "bleu", "chrf", "cogs", "exact_match"}),
    ],
)
def test_train_resume_evaluate(recipe, languages, method, scores, tmp_path, run):
    """What resumes and what is refused the recipes share: SCAN's shows it."""
    data, save = prepared(tmp_path / "data", languages, run), tmp_path / "runs" / f"{method}.3"
    train, chosen = (f"{recipe}/train.sh", data, save, *TINY), {"METHOD": method, "SEED": "3"}
    if recipe == "bitext":
        chosen["SELECT"] = "exact_match"
    assert ", time left 0 min" in script(*train, **chosen, UPDATES="10")
    resumed, updates, allowed = recipe == "scan", 10, ()
    if resumed:
        again = script(*train, **chosen, UPDATES="20")
        assert "Loaded checkpoint" in again and "num_updates=20" in again
        for other in ({"METHOD": "none"}, {"SEED": "4"}):
            out = script(*train, status=2, **chosen | other)
            assert f"holds a training with METHOD={method} SEED=3 SIZE=tiny, not METHOD=" in out
        updates, allowed = 20, ("--allow-differences", "max_update,total_num_update")
    told = script(f"{recipe}/evaluate.sh", data, save, "--max-len-b=4", BEAM="1")
    assert "checkpoint_best.pt, test:\ndecoding 20 sentences\n" in told
    assert {path.name for path in save.glob("*.json")} == {"PREPARED.json", "RUN.json"} | {
        f"{score}.{name}.json" for score in scores for name in ("best", "last")
    }
    assert f"| {method} | 3 | {updates} |" in run("compgen_cli.report", save, *allowed)
    if recipe == "bitext":  # Chinese is scored without spaces
        assert "|detok:chinese|" in (save / "bleu.best.json").read_text()
    kept = tmp_path / "made" / f"{method}.3.json"
    if resumed:
        said = run("compgen_cli.results", "write", save, kept, status=1)
        assert "was resumed with another max_update (10, then 20)" in said and not kept.exists()
    run("compgen_cli.results", "write", save, kept, *allowed)
    result = json.loads(kept.read_text())
    assert (result["method"], result["seed"], result["updates"]) == (method, 3, updates)
    assert (result["sessions"], result["epochs"]) == (1 + resumed, updates / 2)
    assert f" --save-dir {save.name} " in result["command"] and "/" not in result["command"]
    assert ("optimization.max_update" in result["changed"]) == resumed
    assert ("cases" in result) == ("cogs" in scores)
    assert result["chosen"]["metric"] == ("bleu" if recipe == "cognition" else "exact_match")
    verdicts = result["verdicts"]["cter instance" if "cter" in scores else "exact_match"]
    file, number = ("cter", "instance") if "cter" in scores else ("test", "score")
    scored = json.loads((save / f"{file}.best.json").read_text())
    wrong = 100 * sum(unpack(verdicts["bits"], verdicts["of"])) / verdicts["n"]
    assert wrong == pytest.approx(scored[number])


@pytest.mark.parametrize("method", ["cat", "transformer"])
def test_other_models(method, tmp_path, run):
    data, save = prepared(tmp_path / "data", ("src", "tgt"), run), tmp_path / f"{method}.1"
    tiny = [flag for flag in TINY if "predictor" not in flag]
    log = script("scan/train.sh", data, save, *tiny, METHOD=method, UPDATES="10")
    assert ", time left 0 min" in log and "num_updates 10" in log
    for term in ("reconstruction", "sparsity"):
        assert (f"| {term} " in log) == (method == "cat")
    if method == "transformer":
        one = ["--prototypes-per-token", "1"]  # the extraction has to hear of it, too
        words = ("scan/train.sh", data, tmp_path / "second", *tiny, *one)
        two_pass = {"METHOD": "proto-two-pass", "UPDATES": "10"}
        assert "num_updates 10" in script(*words, **two_pass, PLAIN=str(save))
        other = shutil.copytree(save, tmp_path / "other")
        (other / "checkpoint_best.pt").write_text("of another seed")
        said = script(*words, **two_pass, PLAIN=str(other), status=2)
        assert "second holds a training with METHOD=proto-two-pass of " in said
        (tmp_path / "second/checkpoint_last.pt").unlink()
        said = script(*words, **two_pass, PLAIN=str(save), status=2)
        assert "second has a checkpoint_best.pt, but no checkpoint_last.pt to go on from" in said
        (tmp_path / "second/checkpoint_best.pt").unlink()  # as if it had been stopped before
        assert "num_updates 10" in script(*words, **two_pass, PLAIN=str(save))
        assert "nothing is left to train" in script(*words, **two_pass)  # PLAIN is gone
    else:
        script("scan/evaluate.sh", data, save, "--max-len-b=4", BEAM="1")
        hub = CATTransformerModel.from_pretrained(str(save), "checkpoint_best.pt", str(data))
        sentence, said = (data / "raw/test.src").read_text().splitlines()[0], save / "test.best.log"
        first = generate_log.read(said).hypotheses[0]
        assert hub.translate(sentence, beam=1, max_len_a=0, max_len_b=4) == first
        scored = {path.name for path in save.glob("test.*.json")}
        assert scored == {"test.best.json", "test.last.json"}


def test_two_processes(tmp_path, run):
    data, save = prepared(tmp_path / "data", ("en", "lf"), run), tmp_path / "save"
    log = script(
        *("cogs/train.sh", data, save, *TINY, "--distributed-backend=gloo"),
        *("--ddp-backend=legacy_ddp", "--disable-validation"),
        LAUNCH="torchrun --nproc_per_node 2 --no-python",
        METHOD="srl",
        UPDATES="5",
    )
    assert "training on 2 devices" in log and "num_updates 5" in log
    assert (save / "checkpoint_last.pt").exists()


def test_multi30k_is_prepared(public, tmp_path):
    """On the first 400 pairs of its training, validation and test set."""
    folder = public("multi30k")
    texts = {
        name: "".join(f"{line}\n" for line in read_lines(folder / name)[:400])
        for name in CORPORA["multi30k_en_de"].files
    }
    part = publish(tmp_path / "multi30k", texts)
    flags = ["--from", part, "--checksums", part / "sums", "--bpe-merges", 200]
    script("../prepare/multi30k_en_de.sh", tmp_path / "data", *flags)
    read_back(tmp_path / "data", "en", "de")


def test_a_second_start_is_refused(tmp_path):
    (tmp_path / "PREPARED.json").write_text("{}")
    save = tmp_path / "save"
    save.mkdir()
    with (save / "training.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        out = script("cogs/train.sh", tmp_path, save, status=2)
    assert out.endswith(f"{save} is being trained already\n") and out.count("\n") == 1


SCRIPTS = [
    str(path.relative_to(EXAMPLES))
    for path in sorted(EXAMPLES.glob("*/*.sh"))
    if path.name != "quickstart.sh"
]


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_number_of_the_environment_is_executed_or_out_of_range(name, tmp_path):
    (tmp_path / "PREPARED.json").write_text("{}")
    mark = tmp_path / "executed"
    variables = ("UPDATES", "SEED", "EPOCHS", "BATCH", "STAGE1_EPOCHS", "BEAM")
    values = (f"a[$(touch {mark})]", "-5", "abc", "1.5", "010", 30 * "9")
    pairs = [("UPDATES", values[0])]
    if name == "cogs/train.sh":  # they share what looks at them
        pairs = [*zip(variables, values, strict=True), *(("UPDATES", v) for v in values[1:])]
        pairs.append(("BEAM", "0"))
    for variable, bad in pairs:
        out = script(name, tmp_path, tmp_path / "x", status=2, **{variable: bad})
        assert f"{variable}='{bad}' is not a whole number from" in out and out.count("\n") == 1
    assert not mark.exists() and not (tmp_path / "x").exists()


def test_the_quickstart_checks_its_arguments(tmp_path):
    assert "[SEED=1] [UPDATES=2200]" in script("scan/quickstart.sh", "--help", status=2)
    for variable in ("UPDATES", "SEED"):
        value = f"a[$(touch {tmp_path / 'executed'})]"
        out = script("scan/quickstart.sh", status=2, **{variable: value})
        assert f"{variable}='{value}' is not a whole number from" in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ["a[$(touch executed)]", -1, True])
def test_a_data_folder_runs_no_code(number, tmp_path):
    """What PREPARED.json says reaches neither bash's arithmetic nor compgen-score unchecked."""
    for name in ("checkpoint_best.pt", "pretrained.pt"):
        (tmp_path / name).touch()
    record = {"pairs": {"train": number, "test": number}}
    (tmp_path / "PREPARED.json").write_text(json.dumps(record))
    for recipe, subset in (("cat/finetune.sh", "train"), ("cogs/evaluate.sh", "test")):
        variables = {"PRETRAINED": str(tmp_path / "pretrained.pt")}
        out = script(recipe, tmp_path, tmp_path, status=1, cwd=tmp_path, **variables)
        assert f"does not say how many sentences {subset} has" in out and out.count("\n") == 1
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "name", ["cogs/train.sh", "scan/evaluate.sh", "scan/quickstart.sh", "../prepare/scan.sh"]
)
def test_without_the_installation(name, tmp_path):
    """It is said how to reach it, and nothing is begun."""
    for tool in ("bash", "basename", "dirname"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    (tmp_path / "python").symlink_to("/bin/false")  # a Python without fairseq
    arguments = [] if "quickstart" in name else [tmp_path / "data", tmp_path / "x"]
    out = script(name, *arguments, status=1, PATH=str(tmp_path), RUNS_DIR=str(tmp_path / "x"))
    root = EXAMPLES.parent
    assert f"export PATH={root}/.venv/bin:$PATH" in out and out.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_errors_are_sentences(tmp_path):
    assert "has no PREPARED.json" in script("cogs/train.sh", tmp_path, tmp_path / "x", status=2)
    (tmp_path / "PREPARED.json").write_text("{}")
    for variables, message in (({"METHOD": "sqq"}, "METHOD=sqq"), ({"SIZE": "big"}, "SIZE=big")):
        out = script("cogs/train.sh", tmp_path, tmp_path / "x", status=2, **variables)
        assert message in out and out.count("\n") == 1
    out = script("cognition/train.sh", tmp_path, tmp_path / "x", status=2, SELECT="cter")
    assert "SELECT=cter needs compounds" in out and out.count("\n") == 1
    for select, told in (("f1", " is none of bleu, exact_match, loss"), ("exact_match", ": pre")):
        out = script("bitext/train.sh", tmp_path, tmp_path / "x", status=2, SELECT=select)
        assert f"SELECT={select}{told}" in out and out.count("\n") == 1
    assert "train.sh comes first" in script("cogs/evaluate.sh", tmp_path, tmp_path, status=1)
    (tmp_path / "checkpoint_last.pt").touch()
    out = script("cogs/train.sh", tmp_path, tmp_path, status=2)
    assert "holds a training with no recipe, not METHOD=srl SEED=1 SIZE=tiny" in out
    assert "was not validated" in script("cogs/evaluate.sh", tmp_path, tmp_path, status=1)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "PREPARED.json").write_text('{"sha256": {"a": "b"}}')
    for word in ("train", "evaluate"):
        assert "other data" in script(f"cogs/{word}.sh", tmp_path, tmp_path / "x", status=2)


def generated(save, **log):
    """A run with checkpoints, and a PATH on which fairseq-generate prints this log."""
    write_log(save / "said", **log)
    for name, *lines in (
        (
            "fairseq-generate",
            'echo "$@" >>"$SAVE/calls"',
            'cp "$SAVE/next" "$SAVE/checkpoint_best.pt" 2>"$SAVE/none" && rm "$SAVE/next"',
            'cat "$SAVE/said"',
        ),
        ("compgen-analyze", "echo has no codes >&2; exit 1"),
    ):
        write_lines(save / "bin" / name, ["#!/bin/sh", *lines])
        (save / "bin" / name).chmod(0o755)
    for name in ("best", "last"):
        (save / f"checkpoint_{name}.pt").write_text(name)
    return os.pathsep.join([str(save / "bin"), instant(), os.environ["PATH"]])


def test_a_decoding_that_fails_says_why_and_leaves_no_log(tmp_path):
    data, save = tmp_path / "data", tmp_path / "save"
    write_lines(data / "PREPARED.json", ['{"pairs": {"test": 1}}'])
    path = generated(save, sources=["x"], targets=["y"], hypotheses=["y"])
    end = ["echo '1 | INFO | x' >&2", "echo 'CUDA out of memory' >&2", "exit 1"]
    write_lines(save / "bin/fairseq-generate", ["#!/bin/sh", 'head -n 2 "$SAVE/said"', *end])
    said = script("cogs/evaluate.sh", data, save, PATH=path, SAVE=str(save), status=1)
    assert "CUDA out of memory\n" in said and "INFO" not in said
    assert not list(save.glob("test.*"))


def test_codes_that_cannot_be_read_end_the_evaluation_with_the_reason(tmp_path):
    data, save = tmp_path / "data", tmp_path / "save"
    write_lines(data / "PREPARED.json", ['{"pairs": {"test": 1}}'])
    path = generated(save, sources=["x"], targets=["y"], hypotheses=["y"])
    write_lines(save / "bin/compgen-analyze", ["#!/bin/sh", "echo no such plugin >&2; exit 1"])
    said = script("scan/evaluate.sh", data, save, PATH=path, SAVE=str(save), status=1)
    assert said.endswith("no such plugin\n") and not list(save.glob("codes.*"))


def test_the_references_are_of_the_target_language(tmp_path):
    data, save = tmp_path / "data", tmp_path / "save"
    write_lines(data / "PREPARED.json", ['{"pairs": {"test": 1}}'])
    write_lines(data / "train.en-de.de.idx", [])
    for language, text in (("en", "a red dog runs home"), ("de", "ein roter Hund rennt heim")):
        write_lines(data / "raw" / f"test.{language}", [text])
        path = generated(save, sources=["x"], targets=["y"], hypotheses=[text])
        flags = [] if language == "de" else ["--source-lang", "de", "--target-lang", "en"]
        told = script("bitext/evaluate.sh", data, save, *flags, PATH=path, SAVE=str(save))
        assert f"--lang {language} " in told
        assert json.loads((save / "bleu.best.json").read_text())["score"] == pytest.approx(100)


def test_with_other_flags_or_data_it_is_decoded_again(tmp_path):
    data, save = tmp_path / "data", tmp_path / "save"
    path = generated(save, sources=["daxy"], targets=["daxiste"], hypotheses=["daxiste"])
    write_lines(data / "raw" / "test1.fr", ["daxiste"])
    for python, beam, of, calls, replaced in (
        (1, "2", "a", 4, False),
        (2, "2", "a", 4, False),
        (2, "3", "a", 8, False),
        (2, "3", "b", 12, True),
        (2, "3", "b", 13, False),  # what was decoded while the checkpoint was replaced
        (2, "3", "b", 13, False),
    ):
        if replaced:  # with the time of the copy, as fairseq's
            (save / "next").write_text("a later one")
        record = {"versions": python, "pairs": {"test": 1, "test1": 1}, "sha256": {"dict": of}}
        write_lines(data / "PREPARED.json", [json.dumps(record, indent=1)])
        script("daxy/evaluate.sh", data, save, "--lenpen", 1, BEAM=beam, PATH=path, SAVE=str(save))
        called = (save / "calls").read_text().splitlines()
        assert len(called) == calls and all(f"--beam {beam} " in line for line in called[-4:])
        assert not list(save.glob("*.partial"))


@pytest.mark.parametrize(
    ("recipe", "search", "signature"),
    [
        ("scan", "--beam 1 --max-tokens 8192", "test: metric:exact_match|case:mixed|n:5|"),
        ("cogs", "--beam 1 --max-len-a 0 --max-len-b 500", "test: metric:exact_match|"),
        ("cogs", "--beam 1", "cogs: metric:cogs|"),
        (
            "cognition",
            "--beam 5 --max-len-a 1.2 --max-len-b 10 --max-tokens 4096 --remove-bpe",
            "bleu: |detok:chinese|n:5|nrefs:1|case:mixed|eff:no|tok:zh|",
        ),
        ("bitext", "--max-len-b 10 --max-tokens 4096 --remove-bpe @@", "bleu: |tok:13a|"),
        ("bitext ja", "--remove-bpe", "bleu: |tok:char|"),
        ("bitext zh_cn", "--remove-bpe", "bleu: |tok:zh|"),
        ("bitext", "--beam 1 --max-len-a 0 --max-len-b 500", "exact_match: metric:exact_match|"),
        ("bitext de a@@ ", "--beam 5 --max-len-a 1.2", "bleu: |tok:13a|"),
        ("bitext de ▁", "--remove-bpe sentencepiece", "bleu: |tok:13a|"),
        ("bitext de x ▁", "--remove-bpe @@", "exact_match: metric:exact_match|"),
        ("bitext de @@ ", "--beam 1", "exact_match: metric:exact_match|"),
    ],
)
def test_what_evaluation_asks_for(recipe, search, signature, tmp_path):
    data, save = tmp_path / "data", tmp_path / "save"
    recipe, target, mark = (*recipe.split(" ", 2), "", "")[:3]
    write_lines(data / "PREPARED.json", ['{"tokenized": true, "pairs": {"test": 5}}'])
    if "exact" not in signature and not mark:  # else it would be a semantic parser's
        (data / "code").touch()
        mark = "▁"  # stands in its text, too
    write_lines(data / f"train.en-{target or 'de'}.de.idx", [])
    for name, line in {
        f"raw/test.{target or 'de'}": f"{mark}狗",
        "raw/test.zh": "狗",
        "cases/test.case": "prim_to_subj_common",
        "cter/test.compound": "the dog",
    }.items():
        write_lines(data / name, 5 * [line])
    write_lines(data / "cter/lexicon", ["the\t/", "dog\t狗/"])
    path = generated(save, sources=5 * ["the dog"], targets=5 * ["狗"], hypotheses=5 * ["狗"])
    script(f"{recipe}/evaluate.sh", data, save, PATH=path, SAVE=str(save))
    calls = (save / "calls").read_text().splitlines()
    assert len(calls) == 2 and all(search in call for call in calls)
    file, _, part = signature.partition(": ")
    assert part in json.loads((save / f"{file}.last.json").read_text())["signature"]
    if not target:  # once or twice for each recipe
        write_lines(data / "PREPARED.json", ['{"pairs": {"test": 6}}'])
        said = script(f"{recipe}/evaluate.sh", data, save, PATH=path, SAVE=str(save), status=1)
        assert "1 missing (id 5)" in said
