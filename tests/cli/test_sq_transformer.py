"""SQ-Transformer through the real fairseq commands."""

import re
import shutil
from math import isfinite

import pytest
import small_models
import torch
from fairseq_commands import different, fits, load, status, with_autocast
from logs import logged

from compgen.scoring import generate_log
from compgen_fairseq.models.sq_transformer import SQTransformerModel

SIZES = [*small_models.SIZES, *small_models.PREDICTORS]
STRUCTURAL = "--task compgen_translation --criterion structural_cross_entropy".split()
WARNING = "this criterion trains none of the structural terms of sq_transformer"


@pytest.fixture(scope="module")
def trained(tiny_data, plugin, tiny_training, tmp_path_factory, run):
    """The folder of a model trained with everything on, and what training printed."""
    folder = tmp_path_factory.mktemp("sal")
    log = run(
        *("fairseq_cli.train", tiny_data, *plugin, *STRUCTURAL, *SIZES, *tiny_training),
        *("--arch", "sq_transformer_scan", "--train-batches", "mixed", "--dropout", 0.1),
        *("--max-epoch", 12, "--validate-interval", 4, "--eval-exact-match"),
        *("--save-dir", folder, "--no-epoch-checkpoints", "--log-format", "json"),
    )
    return folder, log


@pytest.fixture(scope="module")
def generated(trained, tiny_data, plugin, run):
    """What fairseq-generate, with its default task, says about the test set."""
    flags = ("--path", trained[0] / "checkpoint_last.pt", "--scoring", "exact_match")
    log = run("fairseq_cli.generate", tiny_data, *plugin, *flags)
    return generate_log.parse(log.splitlines(keepends=True))


def test_training_logs_every_term_and_learns(trained):
    _, log = trained
    assert WARNING not in log
    for side in ("source", "target"):
        mmi = ("mmi_cross_entropy", "mmi_entropy")
        for name in (*mmi, "commitment", "code_prediction", "code_attraction"):
            for of, times in (("train", 12), ("valid", 3)):
                values = logged(log, f"{of}_{name}_{side}")
                assert len(values) == times and all(map(isfinite, values))
    losses = logged(log, "train_nll_loss")
    assert losses[-1] < losses[0] - 0.5


def test_interactive_and_from_pretrained_answer_like_generate(
    trained, generated, tiny_data, plugin, run, monkeypatch
):
    assert len(generated.hypotheses) == 37
    path = trained[0] / "checkpoint_last.pt"
    log = run(
        *("fairseq_cli.interactive", tiny_data, *plugin, "--task", "compgen_translation"),
        *("--path", path),
        *("--buffer-size", 64, "--max-tokens", 200),
        input=(tiny_data.parent / "test.src").read_text(),
    )
    answers = generate_log.parse(log.splitlines(keepends=True))
    assert answers.hypotheses == generated.hypotheses
    monkeypatch.chdir(tiny_data.parent)
    hub = SQTransformerModel.from_pretrained(path.parent, path.name, f"./{tiny_data.name}")
    known = [i for i, source in enumerate(generated.sources) if "<unk>" not in source][:8]
    translations = hub.translate([generated.sources[i] for i in known], beam=5)
    assert translations == [generated.hypotheses[i] for i in known]
    for places in ((f"{path.parent}/none", str(tiny_data)), (str(path.parent), f"{tiny_data}/no")):
        with pytest.raises(ValueError, match=r"there is no .*/no"):
            SQTransformerModel.from_pretrained(places[0], path.name, places[1])
    with pytest.raises(ValueError, match="is a file: name its folder"):
        SQTransformerModel.from_pretrained(path, data_name_or_path=tiny_data)


def test_validate_reports_what_training_did(trained, tiny_data, plugin, run):
    folder, train_log = trained
    log = run(
        *("fairseq_cli.validate", tiny_data, *plugin, "--task", "compgen_translation"),
        *("--path", folder / "checkpoint_last.pt", "--batch-size", 37, "--log-format", "json"),
    )
    assert '"valid_bsz": "37"' in log  # the sum; fairseq alone drops the last 5
    for name in ("nll_loss", "commitment_source", "code_prediction_target"):  # of any batches
        (value,) = re.findall(rf'"valid_{name}": "([\d.]+)"', log)
        assert float(value) == pytest.approx(logged(train_log, f"valid_{name}")[-1], abs=2e-3)


@pytest.fixture(scope="module")
def averaged(tiny_data, plugin, tmp_path_factory, run):
    """The folder of a model of which averages are stored; its training was resumed."""
    folder = tmp_path_factory.mktemp("averaged")
    flags = ["--optimizer", "adam", "--batch-size", 30, "--store-ema", "--ema-fp32"]
    flags += ["--arch", "sq_transformer_scan", "--num-workers", 0]
    flags += ["--code-classes", "substitution", "--class-meanings", "own"]
    flags += ["--ema-decay", 0.5, "--disable-validation"]
    for save, updates in ((folder, 3), (folder, 5), (folder / "at once", 5)):
        more = [*flags, "--max-update", updates, "--save-dir", save]
        run("fairseq_cli.train", tiny_data, *plugin, *STRUCTURAL, *SIZES, *more)
    return folder


def test_averages_of_the_model_are_stored(averaged):
    """What has no average, as the codes of types, is copied; a training that resumes goes on."""
    state = load(averaged / "checkpoint_last.pt")
    whole = load(averaged / "at once" / "checkpoint_last.pt")
    assert different(state["extra_state"]["ema"], whole["extra_state"]["ema"]) == []
    model, average = state["model"], state["extra_state"]["ema"]
    assert model.keys() == average.keys()
    whole = [name for name, value in model.items() if not value.is_floating_point()]
    assert sum(name.endswith("type_codes") for name in whole) == 2
    assert all(torch.equal(model[name], average[name]) for name in whole)
    assert not all(torch.equal(model[name], average[name]) for name in model)


def test_classes_are_found_and_kept(averaged, tiny_data, plugin, run):
    """Which they are: tests/tasks/test_word_classes.py."""
    path = averaged / "checkpoint_last.pt"
    state = load(path)["model"]
    codes, owners = state["encoder.stack.quantizer.type_codes"], state["decoder.meanings.owners"]
    assert codes.min() == 0 and 1 < len(codes.unique()) < len(codes)
    assert owners.min() == -1 and len(owners.unique()) > 1
    beam = ["--path", path, "--beam", 2, "--max-len-b", 8]
    assert run("fairseq_cli.generate", tiny_data, *plugin, *beam).count("\nH-") == 37


def test_another_dictionary_of_the_same_size_is_refused(averaged, tiny_data, plugin, tmp_path, run):
    data, path = tmp_path / "data", averaged / "checkpoint_last.pt"
    shutil.copytree(tiny_data, data)
    words = (data / "dict.tgt.txt").read_text().splitlines(keepends=True)
    (data / "dict.tgt.txt").write_text("".join(words[::-1]))
    reason = "the checkpoint's decoder was trained with a dictionary of other words, or in another"
    said = run("fairseq_cli.generate", data, *plugin, "--path", path, status=1)
    assert reason in said.splitlines()[-1] and "Traceback" not in said
    said = run("compgen_cli.analyze", "codes", path, data, status=1)
    assert said.splitlines()[-1].startswith(f"compgen-analyze codes: {path} cannot be loaded with ")
    assert reason in said.splitlines()[-1] and "Traceback" not in said


@pytest.mark.parametrize(
    ("arch", "precision"), [("scan", "--amp"), ("cogs", "--amp"), ("cogs", "--fp16")]
)
def test_mixed_precision(arch, precision, tiny_data, plugin, tmp_path):
    """A few updates; the codebooks stay in float32, and they move.

    On a CPU fairseq's flat gradients fail without CUDA.
    """
    flags = [
        *(tiny_data, *plugin, *STRUCTURAL, *SIZES, "--arch", f"sq_transformer_{arch}", precision),
        *("--optimizer", "adam", "--lr", 0.001, "--max-tokens", 200, "--max-update", 6),
        *("--save-interval-updates", 1, "--disable-validation", "--save-dir", tmp_path),
        *("--log-file", tmp_path / "log", "--num-workers", 0, "--source-codes", 6),
        *("--fp16-init-scale", 4, "--fp16-no-flatten-grads"),
        *(["--user-dir", with_autocast(tmp_path)] if precision == "--amp" else []),
    ]
    assert status("train", *flags) == 0
    values = dict(re.findall(r" (\w+) ([\w.]+) \|", (tmp_path / "log").read_text()))
    assert "commitment_source" in values and not {"nan", "inf"} & set(values.values())
    first, last = (
        load(tmp_path / name)["model"] for name in ("checkpoint_1_1.pt", "checkpoint_last.pt")
    )
    embeddings = last["encoder.stack.embedding.weight"]
    assert fits(embeddings, torch.float16) == ("fp16" in precision)
    for side in ("encoder", "decoder"):
        codes = [state[f"{side}.stack.quantizer.weight"] for state in (first, last)]
        assert not torch.equal(*codes) and not fits(codes[1], torch.float16)
        # the moving average moves the codebook itself, but in half precision, and SRL has none
        assert not last[f"{side}.stack.quantizer.ema_offset"].any()
