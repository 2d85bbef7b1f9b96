"""A small CAT model is pre-trained, fine-tuned and evaluated through the real commands."""

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import sentence_files
import torch
from fairseq_commands import load, status, user_dir
from in_process import output, refusal
from omegaconf import OmegaConf
from prepare_scripts import runner
from recipes import EXAMPLES, script
from small_models import CAT

from compgen.data import bird, paws, sst2, sts_b
from compgen_cli import predict, similarity
from compgen_fairseq.analysis.similarity import correlations
from compgen_fairseq.analysis.similarity import load as load_cat

MODEL = ["--arch", "cat", *CAT]
TRAINING = ["--optimizer", "adam", "--lr", 0.01, "--no-epoch-checkpoints", "--num-workers", 0]
REGRESSION = ["--num-classes", 1, "--regression-target", "--init-token", 0]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared folders: ``text`` for pre-training, and the four labelled sets."""
    folder = tmp_path_factory.mktemp("data")
    runner("pretraining")(folder / "text", *sentence_files.pretraining(folder))
    for module, more in ((paws, []), (bird, []), (sts_b, ["--ood", "MSRvid"]), (sst2, ["10"])):
        name = module.__name__.rpartition(".")[2]
        files = getattr(sentence_files, name)(folder / "files" / name)
        more = ["--valid-size", *more] if module is sst2 else more
        common = ["--pretrained", folder / "text", "--from", files]
        module.main([*map(str, [folder / name, *common]), *more])
    return folder


def pretrain(data: Path, plugin: list[str], *flags: object) -> Path:
    """A checkpoint after a few updates."""
    task = ["--task", "cat_pretraining", "--criterion", "cat_pretraining"]
    save = ["--tokens-per-sample", 96, "--max-tokens", 800, "--disable-validation", *flags]
    assert status("train", data / "text", *plugin, *task, *MODEL, *TRAINING, *save) == 0
    return Path(str(flags[-1])) / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def pretrained(data: Path, plugin: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    save = tmp_path_factory.mktemp("pretrained")
    return pretrain(data, plugin, "--max-update", 12, "--save-dir", save)


@pytest.fixture(scope="module")
def finetune(data: Path, pretrained: Path, plugin: list[str]) -> Callable[..., Path]:
    """``finetune(NAME, FOLDER, flags...)``: the checkpoint of two epochs on the set NAME."""
    state = load(pretrained)["model"]
    sememes = len(state["encoder.layers.1.composition.codebook"])
    task = ["--task", "sentence_prediction", "--criterion", "sentence_prediction"]
    flags = [*plugin, *task, *MODEL, "--sememe-codes", sememes, *TRAINING, "--batch-size", 8]

    def finetune(name: str, save: Path, *more: object) -> Path:
        more = ("--max-epoch", 2, *more, "--save-dir", save)
        assert status("train", data / name, *flags, *more) == 0
        return save / "checkpoint_last.pt"

    return finetune


@pytest.fixture(scope="module")
def frozen(
    finetune: Callable[..., Path], pretrained: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A head on the compositional states of the frozen model, fine-tuned on the STS benchmark."""
    flags = [*REGRESSION, "--freeze-backbone", "--finetune-from-model", pretrained]
    return finetune("sts_b", tmp_path_factory.mktemp("frozen"), *flags, "--representation", "comp")


def rows(checkpoint: Path, data: Path, tmp_path: Path, *more: str) -> list[list[str]]:
    """What compgen-predict says of each sentence."""
    out = tmp_path / "out.tsv"
    assert predict.main([str(checkpoint), str(data), "--cpu", "--out", str(out), *more]) == 0
    return [line.split("\t") for line in out.read_text().splitlines()]


def test_a_frozen_backbone_does_not_change(frozen, pretrained):
    before, after = (load(path)["model"] for path in (pretrained, frozen))
    assert {name.split(".")[0] for name in after.keys() - before} == {"classification_heads"}
    assert [name for name in before if not torch.equal(before[name], after[name])] == []


def test_predictions_do_not_depend_on_the_batch(frozen, data, tmp_path):
    alone = rows(frozen, data / "sts_b", tmp_path, "--max-tokens", "96")
    together = rows(frozen, data / "sts_b", tmp_path)
    assert len(alone) > 1
    for (_, one), (_, other) in zip(alone, together, strict=True):
        assert float(one) == pytest.approx(float(other), abs=1e-5)


def test_correlation_of_numbers(frozen, data, tmp_path, capsys):
    from scipy.stats import pearsonr

    found = rows(frozen, data / "sts_b", tmp_path, "--subset", "test1", "--json")
    said = json.loads(capsys.readouterr().out)
    numbers = [[float(text) for text in column] for column in zip(*found, strict=True)]
    assert said["score"] == pytest.approx(100 * pearsonr(*numbers).statistic, abs=1e-4)
    assert (said["metric"], said["total"]) == ("pearson", 4)
    assert "subset:test1" in said["signature"]


def test_a_trained_backbone_changes_and_classes_are_counted(
    finetune, pretrained, data, plugin, run, tmp_path, capsys
):
    """With the flags that fairseq has for it besides --finetune-from-model."""
    reset = [f"--reset-{what}" for what in ("optimizer", "dataloader", "meters", "lr-scheduler")]
    flags = ["--num-classes", 2, "--init-token", 0, "--representation", "comp"]
    path = finetune("paws", tmp_path, *flags, "--restore-file", pretrained, *reset)
    before, after = (load(p)["model"] for p in (pretrained, path))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert {"encoder.embed_segments.weight", "encoder.layers.1.composition.codebook"} <= changed

    found = rows(path, data / "paws", tmp_path, "--subset", "test1")
    right = [label == answer for label, answer in found]
    said = capsys.readouterr().out.splitlines()[-3:]
    assert said[0] == f"accuracy {10 * sum(right):.2f} ({sum(right)} / 10)"
    negative = [one for one, (label, _) in zip(right, found, strict=True) if label == "0"]
    share = f"{20 * sum(negative):.2f} ({sum(negative)} / 5)"
    assert said[1] == f"accuracy of 0 {share}"
    rows(path, data / "paws", tmp_path, "--subset", "test1", "--label", "0", "--json")
    scored = json.loads(capsys.readouterr().out)
    assert (scored["correct"], scored["total"]) == (sum(negative), 5)

    # fairseq's own evaluation agrees
    log = run(
        *("fairseq_cli.validate", data / "paws", *plugin, "--path", path, "--num-classes", 2),
        *("--task", "sentence_prediction", "--criterion", "sentence_prediction"),
        *("--init-token", 0, "--valid-subset", "test1", "--batch-size", 4),
    )
    assert f"accuracy {10 * sum(right):g} " in log


def test_recipe_resumes_and_evaluates(pretrained, tiny_model, data, tmp_path):
    save = tmp_path / "cont.1"
    chosen = {"PRETRAINED": str(pretrained), "REPRESENTATION": "cont", "BATCH": "10"}
    log = script("cat/finetune.sh", data / "sst2", save, **chosen, EPOCHS="1")
    assert f"loading pretrained model from {pretrained}" in log
    assert "num_updates 5" in log and "accuracy" in log
    again = script("cat/finetune.sh", data / "sst2", save, **chosen, EPOCHS="1", UPDATES="7")
    assert "loading pretrained model" not in again and "num_updates 7" in again
    assert "best_accuracy" in again
    said = script("cat/evaluate.sh", data / "sst2", save)
    assert said.count("accuracy of 1 ") == 2
    scored = json.loads((save / "test.best.json").read_text())
    lines = (save / "test.best.tsv").read_text().splitlines()
    assert scored["total"] == len(lines) == 10
    assert scored["correct"] == sum(line in ("0\t0", "1\t1") for line in lines)

    more = {"BACKBONE": "trained", "UPDATES": "1"}
    log = script("cat/finetune.sh", data / "sst2", tmp_path / "trained", **chosen | more)
    assert "'ddp_backend': 'legacy_ddp'" in log  # BERT's heads have no gradient

    for variables, message in (
        ({"PRETRAINED": "/nowhere"}, "PRETRAINED=/nowhere is not a file"),
        ({"REPRESENTATION": "all"}, "REPRESENTATION=all is none of"),
        ({"LR": "__import__('os').getpid()"}, "is not a number"),  # fairseq would evaluate it
    ):
        out = script(
            "cat/finetune.sh", data / "sst2", tmp_path / "x", status=2, **chosen | variables
        )
        assert message in out and out.count("\n") == 1
    out = script("cat/finetune.sh", data / "bird", tmp_path / "x", status=2, **chosen)
    assert "has nothing to train on" in out
    other = chosen | {"PRETRAINED": str(tiny_model / "checkpoint_last.pt")}
    out = script("cat/finetune.sh", data / "sst2", tmp_path / "x", status=1, **other)
    assert "sizes.py: " in out and "not a cat model" in out
    assert "finetune.sh comes first" in script("cat/evaluate.sh", data / "sst2", tmp_path, status=1)


@pytest.mark.parametrize("option", ["codes", "composition"])
@pytest.mark.parametrize("value", ["8\n--user-dir\n/tmp/elsewhere", "--user-dir", -3, 2.5])
def test_a_checkpoint_adds_no_flags(option, value, pretrained, tmp_path):
    state = load(pretrained)
    options = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
    options["model"][option] = value
    torch.save({**state, "cfg": options}, tmp_path / "changed.pt")
    flags = runpy.run_path(str(EXAMPLES / "cat" / "sizes.py"))["flags"]
    with pytest.raises(ValueError, match=re.escape(f"its option {option} is {value!r}; train")):
        flags(str(tmp_path / "changed.pt"))


@pytest.mark.parametrize(
    ("section", "option", "value", "warning"),
    [
        ("criterion", "ablation", "none", ""),
        ("criterion", "ablation", "semantics-composition", "nothing has trained the mixed states"),
        ("criterion", "sufficiency", 0.0, "nothing has trained the mixed states"),
        ("model", "composition", "none", "it has the representation cont alone"),
    ],
)
def test_states_that_mean_nothing_are_warned_of(
    section, option, value, warning, pretrained, data, tmp_path, caplog
):
    state, path = load(pretrained), str(tmp_path / "changed.pt")
    options = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
    options[section][option] = value
    torch.save({**state, "cfg": options}, path)
    flags = runpy.run_path(str(EXAMPLES / "cat" / "sizes.py"))["flags"]
    assert flags(path) == flags(path, "cont") and not caplog.text
    flags(path, "mix")
    assert warning in caplog.text and bool(caplog.text) == bool(warning)
    if section == "criterion":
        caplog.clear()
        load_cat(path, str(data / "bird"))
        assert warning in caplog.text and bool(caplog.text) == bool(warning)


def test_similarity_is_the_correlation_of_single_phrases(pretrained, frozen, data):
    folder = data / "bird"
    for subset, total in (("test", 12), ("test1", 6)):
        command = [pretrained, folder, "--subset", subset, "--cpu", "--json"]
        said = json.loads(output("compgen-similarity", *command))
        assert said["total"] == total
        model = load_cat(str(pretrained), str(folder))
        words, bos = model.encoder.dictionary, [model.encoder.dictionary.bos()]
        cosines: dict[str, list[float]] = {name: [] for name in ("cont", "comp", "mix")}
        texts = [(folder / "raw" / f"{subset}.input{i}").read_text().splitlines() for i in (0, 1)]
        for pair in zip(*texts, strict=True):
            states = []
            for phrase in pair:
                tokens = bos + words.encode_line(phrase, add_if_not_exist=False).tolist()
                with torch.no_grad():
                    _, extra = model(torch.tensor([tokens]), features_only=True)
                states.append(extra["composition"].layers[-1])
            for name, found in cosines.items():
                one, other = (getattr(state, name)[0, 0].double() for state in states)
                found.append(float(torch.cosine_similarity(one, other, dim=0)))
        rated = [float(line) for line in (folder / "label" / f"{subset}.label").open()]
        for name, found in cosines.items():
            expected = 100 * torch.corrcoef(torch.tensor([found, rated], dtype=torch.double))[0, 1]
            assert said["representations"][name] == pytest.approx(float(expected), abs=0.05)
        assert said["score"] == said["representations"]["mix"]
    # the head is all that a frozen model's fine-tuning changes
    tuned = json.loads(output("compgen-similarity", frozen, *command[1:]))
    assert tuned["representations"] == said["representations"]
    assert tuned["score"] == tuned["representations"]["comp"]


def test_similarity_of_one_representation(pretrained, data, tmp_path, caplog):
    out = tmp_path / "comp.json"
    flags = ["--representation", "comp", "--json-out", out, "--cpu"]
    said = output("compgen-similarity", pretrained, data / "bird", *flags)
    scored = json.loads(out.read_text())
    assert said == f"comp\t{scored['score']:.2f}\t(12 pairs of test)\n"
    assert scored["signature"].startswith("metric:pearson|case:mixed|subset:test|representation:")
    own = user_dir(
        tmp_path,
        "from compgen_fairseq.models.cat import CATConfig, CATModel",
        "from fairseq.models import register_model",
        "register_model('own', dataclass=CATConfig)(type('Own', (CATModel,), {}))",
    )
    state = load(pretrained)
    state["cfg"].model.arch = state["cfg"].model._name = "own"
    state["cfg"] = OmegaConf.to_container(state["cfg"], resolve=True, enum_to_str=True)
    torch.save(state, changed := tmp_path / "own.pt")
    own = ["--user-dir", own]
    assert output("compgen-similarity", changed, data / "bird", *flags, *own) == said
    state["cfg"]["model"] |= {"arch": "cat_tiny", "_name": "cat_tiny"}
    state["cfg"]["criterion"]["ablation"] = "sufficiency"
    torch.save(state, changed)
    output("compgen-similarity", changed, data / "bird", *flags)
    assert "nothing has trained the mixed states of" in caplog.text


def test_correlation_that_is_not_defined():
    same = {"comp": torch.ones(3, 2)}
    assert correlations(same, same, [0.1, 0.5, 0.9]) == {"comp": None}
    other = {"comp": torch.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, -1.0]])}
    assert correlations(same, other, [0.5, 0.5, 0.5]) == {"comp": None}
    found = correlations(same, other, [1.0, 0.5, 0.0])["comp"]
    assert found == pytest.approx(97.258, abs=0.01)  # of 1, 0.70711, 0 with 1, 0.5, 0


def test_what_cannot_be_done_is_one_sentence(pretrained, frozen, data, plugin, tmp_path):
    plain = pretrain(data, plugin, "--composition=none", "--max-update=1", "--save-dir", tmp_path)
    assert output("compgen-similarity", plain, data / "bird", "--cpu").startswith("cont\t")
    sts, phrases, text = (data / name for name in ("sts_b", "bird", "text"))
    mix, first = frozen, pretrained
    for command, arguments, message in (
        (similarity, [plain, phrases, "--representation", "comp"], "it has cont only"),
        (similarity, [first, phrases, "--subset", "none"], "input0/none.bin is not there"),
        (similarity, [first, data / "sst2"], "input1/test.bin is not there"),
        (similarity, [first, data / "paws"], "test.label: No such file"),
        (similarity, [first, text], "dict.txt"),
        (predict, [mix, sts, "--subset", "none"], "none"),
        (predict, [mix, sts, "--label", "1"], "the labels are numbers"),
        (predict, [mix, text], "dict.txt"),
    ):
        name, out = command.__name__.rpartition(".")[2], tmp_path / "out.json"
        said = refusal(f"compgen-{name}", *arguments, "--json-out", out, "--cpu")
        assert message in said
    assert not (tmp_path / "out.json").exists()
