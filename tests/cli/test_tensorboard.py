"""What ``fairseq-train --tensorboard-logdir`` shows of the structural loss."""

import re

import pytest
from small_models import MODELS

from compgen_fairseq.criterions.structural_terms import RECIPES

CODES = {"source": 6, "target": 4}


@pytest.fixture(scope="module")
def training(tmp_path_factory, tiny_data, plugin, run):
    """A short training: the folder of its event files, and what it printed."""
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    folder = tmp_path_factory.mktemp("tensorboard")
    log = run(
        "fairseq_cli.train",
        *(tiny_data, *plugin, "--task", "compgen_translation", *MODELS["srl"]),
        *(f"--{side}-codes={n}" for side, n in CODES.items()),
        *("--optimizer", "adam", "--lr", 0.01, "--max-tokens", 200, "--max-update", 20),
        *("--log-interval", 5, "--log-format", "simple", "--no-save"),
        *("--tensorboard-logdir", folder),
    )
    return folder, log


def scalars(folder) -> dict[str, list]:
    """The events of each tag."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}


@pytest.mark.parametrize("stage", ["train_inner", "train", "valid"])
def test_every_term_and_the_usage_of_codes_are_there(stage, training):
    found = scalars(training[0] / stage)
    names = {
        name.removeprefix("encoder_").removeprefix("decoder_") for name in vars(RECIPES["scan"])
    }
    names |= {"codes_used", "code_entropy"}
    assert {f"{name}_{side}" for name in names for side in CODES} <= found.keys()
    assert {"loss", "nll_loss"} <= found.keys()
    for side, codes in CODES.items():
        assert all(1 <= event.value <= codes for event in found[f"codes_used_{side}"])
        assert all(event.value >= 0 for event in found[f"code_entropy_{side}"])


def test_the_events_are_the_numbers_of_the_log(training):
    folder, log = training
    found = scalars(folder / "train_inner")
    for name in ("loss", "commitment_source", "codes_used_target", "code_entropy_source"):
        printed = re.findall(rf"[ ,]{name}=([\d.]+).*num_updates=(\d+)", log)
        assert [step for _, step in printed] == ["5", "10", "15", "20"]
        shown = [(event.value, event.step) for event in found[name]]
        assert shown == [(pytest.approx(float(v), abs=1e-3), int(step)) for v, step in printed]
