"""Trainings, resumes, generation and prototypes on a GPU, through the real commands.

``make gpu-check`` runs them. Without CUDA all but one are skipped; ``COMPGEN_GPU_TESTS=cpu`` runs
what of them a CPU can, to try the tests themselves.
"""

import os
import re
import sys

import pytest
import torch
from fairseq_commands import load
from small_models import MODELS

CUDA, TRIAL = torch.cuda.is_available(), os.environ.get("COMPGEN_GPU_TESTS") == "cpu"


def on_a_gpu(test):
    """What the suite leaves to ``make gpu-check``."""
    without = pytest.mark.skipif(not (CUDA or TRIAL), reason="needs a GPU with CUDA")
    return pytest.mark.gpu(without(test))


@pytest.fixture
def on_gpu(plugin):
    """The plugin's flags without ``--cpu``."""
    return [flag for flag in plugin if flag != "--cpu" or not CUDA]


@pytest.fixture
def train(run, on_gpu, tiny_data):
    """``train(name, folder, updates, *flags)`` trains a model on the GPU; what it printed."""

    def train(name, folder, updates, *flags):
        return run(
            "fairseq_cli.train",
            *(tiny_data, *on_gpu, "--task", "compgen_translation", *MODELS[name]),
            *("--optimizer", "fused_adam", "--lr", 0.001, "--max-tokens", 200, "--seed", 1),
            *("--max-update", updates, "--save-dir", folder, "--log-interval", 1, *flags),
            *("--distributed-world-size", 1),
            python=sys.executable if CUDA else None,
        )

    return train


def losses(log):
    """The losses that a training printed, one for each update."""
    return [float(value) for value in re.findall(r"train_inner .*?\bloss=([\d.naif]+)", log)]


def model_of(folder):
    return load(folder / "checkpoint_last.pt")["model"]


@on_a_gpu
@pytest.mark.parametrize("precision", ["", "--amp", "--fp16", "--bf16"])
@pytest.mark.parametrize("name", MODELS)
def test_every_precision_trains(name, precision, train, tmp_path):
    if not CUDA and precision == "--fp16":
        pytest.skip("half precision of fairseq's trainer needs CUDA")
    if name == "syntactic" and precision in ("--fp16", "--bf16"):
        pytest.skip("a recurrent model that is trained in single precision")
    scale = ["--fp16-init-scale", 4] if precision in ("--fp16", "--amp") else []
    log = train(name, tmp_path, 30, *precision.split(), *scale)
    found = losses(log)
    assert len(found) >= 28 and not {"nan", "inf"} & set(map(str, found))
    assert sum(found[-5:]) < sum(found[:5])
    if name in ("sal", "srl"):  # half precision leaves the codebook alone
        for side in ("encoder", "decoder"):
            codes = model_of(tmp_path)[f"{side}.stack.quantizer.weight"]
            assert codes.dtype == torch.float32 and not torch.equal(codes, codes.half().float())


@on_a_gpu
@pytest.mark.parametrize("name", MODELS)
def test_resuming_goes_on(name, train, tmp_path):
    """20 updates at once, and 10 and 10; on a GPU the last bits of sums vary."""
    once, twice = tmp_path / "once", tmp_path / "twice"
    train(name, once, 20, "--save-interval-updates", 10)
    train(name, twice, 10, "--save-interval-updates", 10)
    train(name, twice, 20, "--save-interval-updates", 10)
    torch.testing.assert_close(model_of(twice), model_of(once), rtol=1e-3, atol=1e-4)


@on_a_gpu
@pytest.mark.parametrize("name", MODELS)
def test_generation_equals_the_cpus(name, train, run, plugin, on_gpu, tiny_data, tmp_path):
    train(name, tmp_path, 60)
    flags = [tiny_data, "--path", tmp_path / "checkpoint_last.pt", "--beam", 5]
    ours, theirs = (
        re.findall(
            r"^H-(\d+)\t([-\d.]+)\t(.*)$",
            run("fairseq_cli.generate", *flags, *device, python=sys.executable),
            re.M,
        )
        for device in (on_gpu, plugin)
    )
    assert len(ours) == len(theirs) == 37
    same = sum(a[2] == b[2] for a, b in zip(ours, theirs, strict=True))
    assert same >= 36  # a tie may break the other way
    for a, b in zip(ours, theirs, strict=True):
        if a[2] == b[2]:
            assert float(a[1]) == pytest.approx(float(b[1]), abs=1e-3)


@(on_a_gpu if CUDA or TRIAL else lambda test: test)  # without one, too: it reads a checkpoint
def test_prototypes_are_extracted(train, tmp_path):
    """After stage 1, by faiss, which says where it computes: faiss may be built for CPUs alone."""
    log = train("proto", tmp_path, 40)
    assert re.search(r"s for k-means on the (CPU|GPU \d)", log)
    assert len(model_of(tmp_path)["encoder.prototypes.counts"])
