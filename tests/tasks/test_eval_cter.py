"""CTER in validation: its sums, and the number that fairseq-train logs on a small CoGnition."""

import shutil

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.logging import metrics
from fairseq_commands import start_workers, statuses
from logs import figures
from random_batches import Criterion
from small_models import TRANSFORMER

from compgen.scoring import cter, cter_rules
from compgen.scoring.cter import Rules
from compgen.scoring.cter_rates import rates
from compgen.text import write_lines
from compgen_fairseq.tasks import compgen_translation, eval_cter

LEXICON = "the\t/\nany\t任何\ndog\t狗/犬\ncar\t车\nred\t红\nnear\t附近\nsaw\t看到\nmod0\t他喜欢的\n"
COMPOUNDS = {
    "the dog": "狗",
    "any red car": "任何 红 车",
    "the dog he liked": "他喜@@ 欢的 狗",
    "near the car": "车 附近",
}
CONTEXTS = {
    "{} ran .": "{} 跑 。",
    "then {} came .": "然后 {} 来 。",
    "we like {} !": "我们 爱 {} 。",
    "{} is here .": "{} 在 。",
    "is it {} ?": "是 {} 。",
}


@pytest.fixture(scope="module")
def cognition(tmp_path_factory, run):
    """A prepared folder whose validation set is 20 of CoGnition's kind, and those as training."""
    folder = tmp_path_factory.mktemp("cognition")
    pairs = [
        (compound, source.format(compound), target.format(translation))
        for compound, translation in COMPOUNDS.items()
        for source, target in CONTEXTS.items()
    ]
    for part in ("train", "valid"):
        for column, language in ((1, "en"), (2, "zh")):
            write_lines(folder / f"{part}.{language}", (pair[column] for pair in pairs))
    data = folder / "data"
    parts = ["--trainpref", folder / "train", "--validpref", folder / "valid"]
    run("fairseq_cli.preprocess", "-s", "en", "-t", "zh", *parts, "--destdir", data)
    write_lines(data / "cter/valid.compound", (pair[0] for pair in pairs))
    (data / "cter/lexicon").write_text(LEXICON)
    return data


def test_two_workers_log_what_the_library_says(cognition, plugin, tiny_training, tmp_path):
    options = '{"beam": 2, "max_len_b": 10}'
    flags = [
        *(cognition, *plugin, *TRANSFORMER, *tiny_training, "--task", "compgen_translation"),
        *("--eval-cter", "--eval-cter-args", options, "--eval-bleu", "--eval-exact-match"),
        *("--eval-exact-match-args", options, "--best-checkpoint-metric", "cter_instance"),
        *("--max-epoch", 16, "--validate-interval", 8, "--no-epoch-checkpoints"),
        *("--num-workers", 0, "--batch-size-valid", 3),  # 7 batches: groups are torn apart
    ]
    folders = [tmp_path / name for name in "01"]
    assert statuses(start_workers(2, *flags, folders=folders)) == [0, 0]
    log = (folders[0] / "log").read_text()

    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task(
        [str(folders[0] / "checkpoint_last.pt")]
    )
    model.eval()
    task.load_dataset("valid")
    batches = task.get_batch_iterator(task.dataset("valid"), max_sentences=20)
    (sample,) = batches.next_epoch_itr(shuffle=False)
    beams = task._decode(task.cter_generator, sample, model)
    text = {
        i: task.tgt_dict.string(beam[0]["tokens"])
        for i, beam in zip(sample["id"].tolist(), beams, strict=True)
    }
    compounds = [compound for compound in COMPOUNDS for _ in CONTEXTS]
    lines = cter.align(compounds, compounds, [text[i] for i in range(20)])
    score = rates([bool(task.cter_rules.judge(line)) for line in lines])
    assert 0 < score.instance < 100
    assert figures(log, "cter_instance")[-1] == pytest.approx(score.instance, abs=1e-3)
    assert figures(log, "cter_aggregate")[-1] == pytest.approx(score.aggregate, abs=1e-3)
    assert figures(log, "best_cter_instance")[-1] == min(figures(log, "cter_instance"))
    right = task._decode_and_compare(sample, model)
    assert right.total == 20
    assert figures(log, "exact_match")[-1] == pytest.approx(right.percent, abs=1e-3)
    assert len(figures(log, "bleu")) == 2


def without_compounds(data, folder):
    shutil.copytree(data, folder, ignore=shutil.ignore_patterns("cter"), dirs_exist_ok=True)


OWN = "DET\tthe\t/\nN\tdog\t狗/犬\nN\tcar\t车\nADJ\tred\t红\norder\tADJ\tN\nmatch\tcharacters\n"


def test_own_compounds_of_any_number_of_lines(cognition, tmp_path):
    """Ten lines have one compound, not one after the other, and five each the other two."""
    without_compounds(cognition, tmp_path)
    of_lines = [("the dog", "red car", "the dog", "the car")[i // 5] for i in range(20)]
    write_lines(tmp_path / "cter/valid.compound", of_lines)
    (tmp_path / "cter/lexicon").write_text(OWN)
    task = make_task(tmp_path)
    task.load_dataset("valid")
    task.cter_generator = object()
    dog = task.tgt_dict.encode_line("狗", add_if_not_exist=False)
    task.inference_step = lambda generator, models, sample: [
        [{"tokens": dog}] for _ in sample["id"]
    ]
    data = task.dataset("valid")
    outputs = [
        task.valid_step(data.collater([data[i] for i in part]), Criterion(), Criterion())[2]
        for part in (range(9), range(9, 20))
    ]
    with metrics.aggregate(new_root=True) as total:
        eval_cter.reduce(outputs)
    values = total.get_smoothed_values()
    assert values["cter_instance"] == pytest.approx(50)
    assert values["cter_aggregate"] == pytest.approx(200 / 3)


def test_two_subsets_of_other_sizes():
    """Of all subsets fairseq keeps sums as well, under a name of its own."""
    with metrics.aggregate("a name of its own"):
        for compounds in (3, 5):
            with metrics.aggregate(new_root=True) as total:
                counted = torch.ones(2, compounds, dtype=torch.int16)
                counted[:, -1] = 0  # of a compound whose lines --max-valid-steps leaves out
                eval_cter.reduce([{eval_cter.COUNTS: counted}])
            values = total.get_smoothed_values()
            assert (values["cter_instance"], values["cter_aggregate"]) == (100, 100)


@pytest.mark.parametrize("text", ["das faule pf@@ erd", "▁das ▁faule ▁pf erd", "faule pferd@@"])
def test_subwords_of_own_compounds_are_joined(text, tmp_path):
    (tmp_path / "lexicon").write_text("ADJ\tlazy\tfaule\nN\thorse\tpferd\norder\tADJ\tN\n")
    rules = cter_rules.load(tmp_path / "lexicon")
    assert not rules.judge(cter.Line("", "lazy horse", text, rules.parse("lazy horse")))


def test_a_checkpoint_is_chosen_by_cter_only_where_every_subset_has_it(
    cognition, plugin, tiny_training, run, tmp_path
):
    flags = [cognition, *plugin, *TRANSFORMER, *tiny_training, "--task", "compgen_translation"]
    flags += ["--eval-cter", "--best-checkpoint-metric", "cter_instance", "--max-update", 1]
    flags += ["--valid-subset", "valid,train", "--save-dir", tmp_path]
    said = run("fairseq_cli.train", *flags, status=1)
    assert "cter_instance is not a score of the validation set 'train'" in said


def make_task(data, **options):
    options |= {"dataset_impl": "mmap", "required_seq_len_multiple": 1}
    config = compgen_translation.CompgenTranslationConfig(
        data=str(data), source_lang="en", target_lang="zh", eval_cter=True, **options
    )
    source, target = (Dictionary.load(str(data / f"dict.{side}.txt")) for side in ("en", "zh"))
    return compgen_translation.CompgenTranslationTask(config, source, target)


@pytest.mark.parametrize(("cter_args", "times"), [('{"beam": 1}', 1), ('{"beam": 2}', 2)])
def test_equal_options_decode_once(cter_args, times, cognition, monkeypatch):
    task = make_task(cognition, eval_exact_match=True, eval_cter_args=cter_args)
    task.load_dataset("valid")
    monkeypatch.setattr(task, "build_generator", lambda models, options: object())
    monkeypatch.setattr(
        "fairseq.tasks.fairseq_task.FairseqTask.build_model", lambda *_, **__: Criterion()
    )
    model = task.build_model(None)
    decoded = []
    dog = task.tgt_dict.encode_line("狗", add_if_not_exist=False)
    task.inference_step = lambda generator, *_: decoded.append(generator) or [[{"tokens": dog}]]
    sample = task.dataset("valid").collater([task.dataset("valid")[7]])
    output = task.valid_step(sample, model, Criterion())[2]
    assert len(decoded) == times
    assert output["_exact_match_total"] == 1
    assert output[eval_cter.COUNTS].tolist() == [[0, 1, 0, 0], [0, 1, 0, 0]]


@pytest.mark.parametrize("as_sent", [torch.Tensor.byte, torch.Tensor.double])
def test_groups_are_put_together_from_batches_and_workers(as_sent):
    """Two steps of two workers; the last one's second worker had only a dummy."""
    steps = [
        [([3, 2, 0], [1, 0, 0]), ([1, 0, 3], [1, 0, 0])],
        [([1, 3, 1], [0, 1, 0]), ([0, 0, 0], [0, 0, 0])],
    ]
    with metrics.aggregate() as total:
        for step in steps:
            eval_cter.reduce([{eval_cter.COUNTS: as_sent(torch.tensor(c))} for c in step])
        eval_cter.reduce([{"loss": 1.0}])  # a training step
    values = total.get_smoothed_values()
    assert values["cter_instance"] == pytest.approx(100 * 3 / 14)
    assert values["cter_aggregate"] == pytest.approx(100 * 2 / 3)
    assert eval_cter.COUNTS not in values


def test_a_subset_without_compounds_is_named(cognition, tmp_path, caplog):
    without_compounds(cognition, tmp_path)
    task = make_task(tmp_path)
    task.load_dataset("valid")
    assert f"no CTER on subset valid: there is no {tmp_path}/cter/valid.compound" in caplog.text
    sample = task.dataset("valid").collater([task.dataset("valid")[0]])
    assert eval_cter.COUNTS not in task.valid_step(sample, Criterion(), Criterion())[2]

    (tmp_path / "cter").mkdir()
    (tmp_path / "cter/lexicon").write_text(LEXICON)
    (tmp_path / "cter/valid.compound").write_text("the dog\n" * 15)
    with pytest.raises(ValueError, match=r"valid\.compound and .*: 15 compounds for 20 sentences"):
        task.load_dataset("valid")
    (tmp_path / "cter/valid.compound").write_text("near the car\n" * 20)
    with pytest.raises(ValueError, match="line 1: the compound 'near the car' is not in"):
        task.load_dataset("valid")


def test_a_compound_may_have_many_lines():
    sample = {"all_groups": 1, "groups": [0] * 300, "compounds": ["dog"] * 300}
    found = eval_cter.counts(sample, ["猫"] * 300, Rules({"dog": ("狗",)}))
    assert found.tolist() == [[300], [300]]
