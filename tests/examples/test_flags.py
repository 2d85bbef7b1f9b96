"""What the recipes have fairseq-train do: what the results were made with, and what METHOD says."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from instant import instant
from recipes import EXAMPLES, script
from rows import parse

from compgen.reporting.flags import flags
from compgen.text import write_lines

RUNS = {run.path: run for run in parse(EXAMPLES / "tables.txt")}
RESULTS = EXAMPLES.parent / "results"
ROWS = {  # a result of each row that needs no other run
    row: path
    for path in sorted(RESULTS.glob("*/*/*.json"))
    if not RUNS[f"{path.parent.relative_to(RESULTS)}/{path.stem}"].after
    for row in [f"{path.parent.relative_to(RESULTS)}/{path.stem.rpartition('.')[0]}"]
}
METHODS = {
    "scan sal-brown": "--attention sal --code-classes brown",
    "scan srl-vq": "--attention srl --quantizer vq",
    "scan srl-tokens": "--attention srl --mmi tokens",
    "cogs srl-brown": "--attention srl --code-classes brown",
    "cogs srl-substitution": "--attention srl --code-classes substitution",
    "cogs proto": "--arch proto_transformer --prototype-stage1-epochs 2",
    "cognition proto-identity": "--prototype-identity --prototype-stage1-epochs 3",
    "cognition proto-random": "--prototypes random",
    "cognition proto-target-side": "--prototypes target-side --prototype-stage1-epochs 3",
    "cognition proto-source-and-target": "--prototypes source-and-target",
    "scan syntactic-mlp": "--arch syntactic_attention_scan --semantic-mlp",
    "wmt14_en_fr srl": "--arch sq_transformer_wmt_en_fr --attention srl --dropout 0.1",
    "wmt14_en_fr proto": "--arch proto_transformer_wmt_en_de --prototype-stage1-epochs 3",
    "iwslt14_en_de plain": "--arch sq_transformer_iwslt_de_en --source-lang en --target-lang de",
    "cognition proto paper": "--optimizer fused_adam --patience 10 --prototype-min-count 50 "
    "--prototype-stage1-epochs 8",
    "wmt17_en_de proto paper": "--prototype-restart --prototype-sample-size 0 --dropout 0.1",
    "wmt17_en_de plain paper": "--optimizer fused_adam --dropout 0.3 --max-tokens 4096 "
    "--warmup-updates 4000 --lr 5e-4",
    "bitext transformer": "--arch transformer_iwslt_de_en --criterion label_smoothed_cross_entropy",
    "daxy transformer": "--arch transformer --lr 1e-3 --lr-scheduler inverse_sqrt --batch-size 32",
    "daxy lstm": "--arch lstm --dropout 0.5 --train-batches mixed --eval-tokenized-bleu",
    "cat plain": "--arch cat_tiny --composition none --best-checkpoint-metric ppl_cont",
    "cat no-nuance": "--ablation nuance --best-checkpoint-metric ppl_mix",
    "cat no-semantics-composition": "--ablation semantics-composition --ddp-backend legacy_ddp "
    "--best-checkpoint-metric ppl_cont",
    "cat cat paper": "--arch cat_base --guidance weights --reconstruction-beta 0.1 --sparsity 1 "
    "--word-average --lr 1e-4",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder that a recipe takes for prepared."""
    data = tmp_path_factory.mktemp("prepared")
    write_lines(data / "PREPARED.json", ["{}"])
    (data / "train.en-de.de.idx").touch()  # the languages of the translation recipes' results
    return data


@pytest.fixture(scope="module")
def called(data, tmp_path_factory):
    """The command that a ``train.sh`` calls: fairseq-train is one that writes it down."""
    folder = tmp_path_factory.mktemp("flags")
    commands = folder / "bin"
    for name, line in {
        "fairseq-train": 'printf "%q " fairseq-train "$@" >"$CALLED"',
        "python": "[[ $1 == -c ]] || exec cat; echo ${GPUS:-1}; [[ -n ${GPUS-} ]]",
        "scontrol": "tr , '\\n' <<<\"$3\"",
    }.items():
        write_lines(commands / name, ["#!/bin/bash", line])
        (commands / name).chmod(0o755)
    path = os.pathsep.join([str(commands), instant(), os.environ["PATH"]])

    def call(recipe: str, method: str, *more: str, **variables: str) -> str:
        said = folder / f"{recipe} {method}"
        save = folder / "save" / f"{len(list(folder.glob('save/*')))}"
        words = (f"{recipe}/train.sh", data, save, *more)
        script(*words, METHOD=method, PATH=path, CALLED=str(said), **variables)
        return said.read_text()

    return call


@pytest.mark.parametrize("row", sorted(ROWS))
def test_a_row_is_trained_as_its_result_was(row, called):
    result = json.loads(Path(ROWS[row]).read_text())
    run = RUNS[f"{row}.{result['seed']}"]
    command = called(run.recipe, run.method, *run.flags, SEED=run.seed, **dict(run.variables))
    expected, named = flags(command), flags(result["command"])
    if "code-ema-decay" in expected:  # the first results could not name it
        named = {"code-ema-decay": ["0.999"], **named}
    assert named == expected


def test_a_batch_script_of_slurm_is_no_process_of_srun(called):
    """SLURM_PROCID is set in both."""
    batch = {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"}
    assert "distributed" not in called("cogs", "srl", **batch)
    step = {**batch, "SLURM_STEP_NODELIST": "here,there", "LAUNCH": "env", "SLURM_JOB_ID": "40007"}
    command = called("cogs", "srl", **step)
    assert "--distributed-init-method tcp://here:20007 " in command
    assert "--cpu --distributed" in command  # of the process's machine, not of train.sh's
    for gpus, device in (("", 0), ("1", 0), ("4", 3)):  # that each process sees
        command = called("cogs", "srl", **{**step, "SLURM_LOCALID": "3", "GPUS": gpus})
        assert f"--device-id {device} " in command and ("--cpu " in command) == (not gpus)


def test_variables_of_a_process_group_count_with_launch_alone(called):
    """Containers of a training operator have them, too."""
    group = {"WORLD_SIZE": "2", "RANK": "1"}
    assert "distributed" not in called("cogs", "srl", **group)
    assert "--distributed-rank 1 " in called("cogs", "srl", LAUNCH="env", **group)


def test_a_training_that_begins_with_a_file_resumes(called):
    """fairseq would begin with it again."""
    for flag in (["--restore-file=x"], ["--restore-file", "x"]):
        assert flags(called("cogs", "srl", *flag))["continue-once"] == ["x"]


def test_without_a_method_it_is_sqs(called):
    assert flags(called("scan", ""))["attention"] == ["sal"]
    for recipe in ("cogs", "cognition", "bitext"):
        assert flags(called(recipe, ""))["attention"] == ["srl"]


def test_a_training_of_epochs_is_validated(called):
    """fairseq validates at the last update, not at the end of the last epoch."""
    for flag in (["--max-epoch=3"], ["--max-epoch", "3"]):
        assert flags(called("cogs", "srl", *flag))["validate-interval"] == ["1"]


@pytest.mark.parametrize(
    ("recipe", "select", "metric"),
    [
        ("cognition", "bleu", "bleu"),
        ("cognition", "loss", "loss"),
        ("cognition", "cter", "cter_instance"),
        ("bitext", "bleu", "bleu"),
        ("bitext", "loss", "loss"),
    ],
)
def test_what_chooses_the_checkpoint(recipe, select, metric, called, data):
    write_lines(data / "cter/valid.compound", ["the dog"])
    found = flags(called(recipe, "srl", SELECT=select))
    assert found["best-checkpoint-metric"] == [metric]
    assert ("maximize-best-checkpoint-metric" in found) == (select == "bleu")
    assert select == "loss" or f"eval-{select}" in found


def test_a_launcher_that_names_no_processes_is_refused():
    process = EXAMPLES / "process.sh"
    done = subprocess.run(
        ["bash", process], env={**os.environ, "LAUNCH": "env"}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "LAUNCH=env starts neither torchrun nor srun\n")


@pytest.mark.parametrize("method", METHODS)
def test_a_method_is_what_its_flags_say(method, called):
    recipe, name, *paper = method.split()
    found = flags(called(recipe, name, SIZE="paper" if paper else "tiny"))
    expected = flags(METHODS[method])
    assert {name: found.get(name) for name in expected} == expected
