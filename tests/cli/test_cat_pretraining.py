"""fairseq-train pre-trains CAT on a part of the Wikipedia sample; compgen-sememes reads it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fairseq_commands import (
    different,
    every_worker_saves,
    load,
    start_workers,
    status,
    statuses,
    with_autocast,
)
from in_process import output, refusal
from logs import logged
from prepare_scripts import publish, runner
from recipes import script
from small_models import CAT

from compgen_fairseq.analysis import checkpoint
from compgen_fairseq.analysis.sememes import decompose


@pytest.fixture(scope="module")
def data(public: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 150 words of eight articles, with the published annotations."""
    source, folder = public("hownet"), tmp_path_factory.mktemp("pretraining")
    names = ("hownet.txt", "en2zh_dict.txt", "sememe_1400_EnZh.txt", "corpus.en")
    texts = {name: (source / name).read_text() for name in names}
    articles = texts["corpus.en"].splitlines()[:8]
    texts["corpus.en"] = "\n".join(" ".join(article.split()[:150]) for article in articles)
    part = publish(folder / "hownet", texts)
    flags = ["--from", part, "--checksums", part / "sums", "--bpe-merges", 300]
    runner("pretraining")(folder / "data", *flags)
    return folder / "data"


@pytest.fixture(scope="module")
def flags(data: Path, plugin: list[str]) -> list[object]:
    return [
        *(data, *plugin, "--task", "cat_pretraining", "--tokens-per-sample", 48),
        *("--arch", "cat_tiny", *CAT, "--criterion", "cat_pretraining"),
        *("--optimizer", "adam", "--lr", 0.01),
        *("--batch-size", 8, "--num-workers", 0, "--seed", 2, "--log-format", "json"),
    ]


@pytest.fixture(scope="module")
def run(flags: list[object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two epochs."""
    folder = tmp_path_factory.mktemp("run")
    best = ["--best-checkpoint-metric", "ppl_mix"]
    save = ["--save-dir", folder, "--max-epoch", 2]
    assert status("train", *flags, *best, *save, "--log-file", folder / "log") == 0
    return folder


def test_every_term_is_logged_and_the_loss_falls(run: Path) -> None:
    log = (run / "log").read_text()
    names = {
        f"{t}_{r}" for t in ("mlm", "nsp", "ppl", "nsp_accuracy") for r in ("cont", "comp", "mix")
    }
    names |= {"guided_decomposition", "sparsity", "reconstruction", "zeros_1", "zeros_2"}
    names |= {"nuance_entropy", "nuance_mlm", "nuance_nsp", "loss"}
    assert all(len(logged(log, f"valid_{name}")) == 2 for name in names)
    losses = logged(log, "train_loss")
    assert losses[1] < losses[0]
    assert logged(log, "valid_best_ppl_mix")[-1] == min(logged(log, "valid_ppl_mix"))


def test_the_plain_encoder_trains_and_validates(
    flags: list[object], data: Path, plugin: list[str], tmp_path: Path
) -> None:
    plain = ["--composition", "none", "--max-epoch", 1, "--save-dir", tmp_path]
    assert status("train", *flags, *plain, "--log-file", tmp_path / "log") == 0
    log = (tmp_path / "log").read_text()
    assert logged(log, "valid_ppl_cont") and logged(log, "valid_nsp_accuracy_cont")
    assert not logged(log, "valid_ppl_comp") + logged(log, "valid_sparsity")
    path = ["--path", tmp_path / "checkpoint_last.pt", "--batch-size", 8]
    path += ["--task", "cat_pretraining", "--valid-subset", "valid"]
    assert status("validate", data, *plugin, *path) == 0
    said = refusal("compgen-sememes", tmp_path / "checkpoint_last.pt", data, "the")
    assert "it is of --composition none" in said


def test_the_recipe_of_an_ablation(data: Path, tmp_path: Path) -> None:
    """On several GPUs the parameters that only the mixed states need have no gradient."""
    small = ["--encoder-layers=1", "--encoder-embed-dim=16", "--batch-size=8", "--log-interval=1"]
    log = script(
        "cat/train.sh", data, tmp_path, *small, METHOD="no-sufficiency", SEED="2", UPDATES="2"
    )
    assert "num_updates 2" in log and "'best_checkpoint_metric': 'ppl_cont'" in log
    assert "'ddp_backend': 'legacy_ddp'" in log


def test_two_workers_hold_the_same_model(flags: list[object], tmp_path: Path) -> None:
    more = ["--user-dir", every_worker_saves(tmp_path), "--max-update", 3, "--word-average"]
    folders = [tmp_path / str(rank) for rank in range(2)]
    workers = start_workers(2, *flags, *more, "--disable-validation", folders=folders)
    assert statuses(workers) == [0, 0]
    states = [load(folder / "checkpoint_last.pt")["model"] for folder in folders]
    assert different(*states) == []


def test_the_sememes_of_words(run: Path, data: Path) -> None:
    path = str(run / "checkpoint_last.pt")
    text = (data / "raw" / "train").read_text().replace("@@ ", "").split()
    words = ["the", "and", "political"]
    command = [path, str(data), *words, "--subset", "train", "--top", "3"]
    found = json.loads(output("compgen-sememes", *command, "--json"))
    assert [row["word"] for row in found] == words
    names = (data / "sememes.txt").read_text().splitlines()
    annotations = dict(line.split("\t") for line in (data / "annotations.tsv").open())
    for row in found:
        assert row["occurrences"] == text.count(row["word"])
        assert 0 <= row["zeros"] < 1
        weights = [code["weight"] for code in row["codes"]]
        assert len(weights) == 3 and weights == sorted(weights, reverse=True) and weights[-1] > 0
        right = [names[int(index)] for index in annotations.get(row["word"], "").split()]
        assert (row["right"] is None) == (not right)
        for code in row["codes"]:
            assert code["code"] in names
            assert code["annotated"] == (code["code"] in right)
    printed = output("compgen-sememes", *command)
    assert f"the: {text.count('the')} times" in printed
    assert found[0]["codes"][0]["code"] in printed
    codes = json.loads(output("compgen-sememes", *command, "--layer", "1", "--json"))[0]["codes"]
    assert all(code["code"] in {f"code {number}" for number in range(8)} for code in codes)


def test_with_word_average_the_sememes_are_of_the_mean_state(run: Path, data: Path) -> None:
    loaded = checkpoint.load(str(run / "checkpoint_last.pt"), str(data), True, "cat_pretraining")
    model, task = loaded.model, loaded.task
    task.load_dataset("train")
    dataset, last = task.dataset("train"), len(model.encoder.layers) - 1
    index, first = next(
        (index, int(place))
        for index in range(len(dataset))
        for place in (~dataset.segment(index)[1]).nonzero()
    )
    tokens, starts = dataset.segment(index)
    words = starts.cumsum(0) - 1
    number = int(words[first])  # a word of several subwords
    name = task.dictionary.string(tokens[words == number], bpe_symbol="@@ ")
    with torch.no_grad():
        _, composition = model.encoder.representations(tokens.unsqueeze(0))
        expected = model._word_codes(composition, words.unsqueeze(0), False)[0][0, number]
    ((single, *_),) = decompose(model, task, "train", [name], last).values()
    task.cfg.word_average = True
    ((average, *_),) = decompose(model, task, "train", [name], last).values()
    torch.testing.assert_close(average, expected)
    assert not torch.allclose(average, single)


def test_it_trains_under_autocast_and_codes_beyond_the_sememes_have_numbers(
    flags: list[object], data: Path, tmp_path: Path
) -> None:
    more = ["--amp", "--user-dir", with_autocast(tmp_path), "--sememe-codes", 1410]
    more += ["--max-update", 2, "--disable-validation", "--save-dir", tmp_path]
    assert status("train", *flags, *more) == 0
    command = [str(tmp_path / "checkpoint_last.pt"), str(data), "the", "--subset", "train"]
    assert "  code 140" in output("compgen-sememes", *command, "--top", "1410")


def test_what_cannot_be_shown_is_one_sentence(run: Path, data: Path, tmp_path: Path) -> None:
    for words, reason in (
        ([data, "xylophone"], "'xylophone' does not occur in the subset valid"),
        ([data, "the", "--layer", "3"], "--layer is between 1 and 2"),
        ([tmp_path, "the"], "sememes.txt: No such file"),
    ):
        assert reason in refusal("compgen-sememes", run / "checkpoint_last.pt", *words)
