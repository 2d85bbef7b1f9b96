"""The recipes: train, resume, evaluate and report through the real scripts, on tiny data."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TINY = [
    *("--encoder-layers=1", "--decoder-layers=1", "--encoder-embed-dim=16"),
    *("--encoder-ffn-embed-dim=16", "--decoder-ffn-embed-dim=16", "--max-tokens=200"),
    *("--encoder-attention-heads=2", "--decoder-attention-heads=2"),
    *("--encoder-predictor-layers=1", "--decoder-predictor-layers=1", "--log-interval=5"),
]
COMPOUNDS = ["the dog", "the small dog", "on the farm", "took the dog"]
LEXICON = {"the": "", "dog": "狗", "small": "小", "on": "", "farm": "农场", "took": "带/拿"}


def script(name: str, *args: object, status: int = 0, **variables: str) -> str:
    """Run a script of ``examples/``; what it printed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", str(EXAMPLES / name), *map(str, args)],
        env={**os.environ, "PATH": path, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def prepared(folder: Path, languages: tuple[str, str], run: Callable[..., str]) -> Path:
    """A folder as the prepare scripts make it: the compounds and a translation of each."""
    source, target = languages
    (folder / "raw").mkdir(parents=True)
    lines = [compound for compound in COMPOUNDS for _ in range(5)]
    for part in ("train", "valid", "test"):
        for language, words in ((source, lines), (target, [line.upper() for line in lines])):
            (folder / "raw" / f"{part}.{language}").write_text("\n".join(words) + "\n")
    prefixes = [f"--{part}pref={folder / 'raw' / part}" for part in ("train", "valid", "test")]
    run("fairseq_cli.preprocess", "-s", source, "-t", target, *prefixes, "--destdir", folder)
    extra = {
        "cases/test.case": 20 * ["prim_to_subj_common"],
        "cter/test.compound": lines,
        "cter/lexicon": [
            f"{atom}\t{word}/" if word else f"{atom}\t/" for atom, word in LEXICON.items()
        ],
        "PREPARED.json": [json.dumps({"sha256": {"raw": source}, "settings": {}})],
    }
    for name, text in extra.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("\n".join(text) + "\n")
    return folder


@pytest.mark.parametrize(
    ("recipe", "languages", "method", "scores"),
    [
        ("scan", ("src", "tgt"), "sal-brown", {"test", "codes"}),
        ("cogs", ("en", "lf"), "plain", {"test", "cogs"}),
        ("cognition", ("en", "zh"), "srl", {"cter", "bleu", "codes"}),
    ],
)
def test_train_resume_evaluate(recipe, languages, method, scores, tmp_path, run):
    data, save = prepared(tmp_path / "data", languages, run), tmp_path / "runs" / f"{method}.3"
    first = script(f"{recipe}/train.sh", data, save, *TINY, METHOD=method, SEED="3", UPDATES="10")
    assert ", time left 0 min" in first
    again = script(f"{recipe}/train.sh", data, save, *TINY, METHOD=method, SEED="3", UPDATES="20")
    assert "Loaded checkpoint" in again and "num_updates=20" in again
    script(f"{recipe}/evaluate.sh", data, save, "--max-len-b=4", BEAM="1")
    assert {path.name for path in save.glob("*.json")} == {"PREPARED.json"} | {
        f"{score}.{name}.json" for score in scores for name in ("best", "last")
    }
    report = run(
        "compgen_fairseq.cli.report", save, "--allow-differences", "max_update,total_num_update"
    )
    assert f"| {method} | 3 | 20 |" in report


@pytest.mark.parametrize(
    ("recipe", "languages", "method"),
    [
        *(("scan", ("src", "tgt"), method) for method in ("cat", "transformer")),
        ("cogs", ("en", "lf"), "cat"),
        *(("cognition", ("en", "zh"), method) for method in ("cat", "proto")),
        ("wmt14_en_fr", ("en", "fr"), "proto-random"),
    ],
)
def test_other_models(recipe, languages, method, tmp_path, run):
    data, save = prepared(tmp_path / "data", languages, run), tmp_path / f"{method}.1"
    tiny = [flag for flag in TINY if "predictor" not in flag]
    log = script(f"{recipe}/train.sh", data, save, *tiny, METHOD=method, UPDATES="10")
    assert ", time left 0 min" in log and "num_updates 10" in log
    assert ("| sparsity " in log) == (method == "cat")
    if recipe == "scan":
        script("scan/evaluate.sh", data, save, "--max-len-b=4", BEAM="1")
        assert {path.name for path in save.glob("test.*.json")} == {
            "test.best.json",
            "test.last.json",
        }


@pytest.mark.parametrize(
    ("recipe", "method", "size", "single"),
    [
        ("scan", "syntactic", "paper", True),
        ("scan", "syntactic-classes", "tiny", False),
        ("daxy", "lstm", "tiny", False),
    ],
)
def test_recurrent_models(recipe, method, size, single, tmp_path, run):
    data = prepared(tmp_path / "data", ("src", "tgt"), run)
    words = (f"{recipe}/train.sh", data, tmp_path / "save", "--log-interval=1")
    log = script(*words, METHOD=method, SIZE=size, UPDATES="3")
    assert "num_updates=3" in log and ("bsz=1," in log) == single
    assert (tmp_path / "save" / "checkpoint_best.pt").exists()


def test_rows(tmp_path, run):
    """Several methods at once; one that fails does not keep the others from going on."""
    data, out = prepared(tmp_path / "data", ("src", "tgt"), run), tmp_path / "runs"
    words = ("rows.sh", "scan", data, out, "plane,plain", *TINY)
    said = script(*words, SEEDS="3", JOBS="2", UPDATES="5", status=123)
    assert f"{out}/plane.3 failed: its train.out and evaluate.out say why" in said
    assert "METHOD=plane is none of" in (out / "plane.3" / "train.out").read_text()
    assert f"{out}/plain.3 is done" in said
    assert "| plain | 3 | 5 |" in run("compgen_fairseq.cli.report", out / "plain.3")
    assert "is no recipe" in script("rows.sh", "scam", data, out, "plain", status=2)


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


def test_fifty_updates_of_the_wmt_recipe_on_multi30k(compgen_data, tmp_path):
    if not (compgen_data / "multi30k").exists():
        pytest.skip("there is no multi30k in COMPGEN_DATA")
    data, save = tmp_path / "data", tmp_path / "srl.1"
    script("../prepare/multi30k_en_de.sh", data, "--bpe-merges", 2000)
    quick = ("--max-tokens=500", "--max-valid-steps=1", "--max-tokens-valid=1000")
    log = script("wmt17_en_de/train.sh", data, save, *quick, METHOD="srl", UPDATES="50")
    assert "srl_mse_source" in log and "num_updates 50" in log
    assert (save / "checkpoint_best.pt").exists()


def test_errors_are_sentences(tmp_path):
    assert "has no PREPARED.json" in script("cogs/train.sh", tmp_path, tmp_path / "x", status=2)
    (tmp_path / "PREPARED.json").write_text("{}")
    for variables, message in (({"METHOD": "sqq"}, "METHOD=sqq"), ({"SIZE": "big"}, "SIZE=big")):
        out = script("cogs/train.sh", tmp_path, tmp_path / "x", status=2, **variables)
        assert message in out and out.count("\n") == 1
    assert "train.sh comes first" in script("cogs/evaluate.sh", tmp_path, tmp_path, status=1)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "PREPARED.json").write_text("{other}")
    assert "other data" in script("cogs/train.sh", tmp_path, tmp_path / "x", status=2)
