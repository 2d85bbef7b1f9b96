"""When the tables of a Proto-Transformer are filled, and what is refused with one sentence."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.dataclass.configs import FairseqConfig
from omegaconf import OmegaConf

from compgen_fairseq.modules.prototype_attention import PrototypeTable
from compgen_fairseq.prototypes.extract import Settings
from compgen_fairseq.tasks import prototype_hook
from compgen_fairseq.tasks.prototype_hook import PrototypeTaskConfig, begin_epoch

DIM, TYPES = 4, 8
TWO_WORKERS = "distributed_training.distributed_world_size=2 distributed_training.ddp_backend"


class Model:
    """What the hook sees of a proto_transformer."""

    def __init__(self, variant: str = "one-pass", k: int = 2):
        self.prototype_config = SimpleNamespace(
            prototypes=variant,
            prototypes_per_token=k,
            prototype_min_count=3,
            prototype_layer="last",
        )
        self.table = PrototypeTable(TYPES, DIM, 7)
        self.trained = None

    def tables(self):
        return {"source": self.table}

    def train_prototype_attention(self, on: bool) -> None:
        self.trained = on


@pytest.fixture
def extractions(monkeypatch) -> list:
    """What the hook extracts: here fixed prototypes."""
    calls = []

    def fill(task, model, subset, settings):
        calls.append((subset, settings))
        model.table.fill(torch.tensor([5]), torch.ones(1, settings.k, DIM), torch.tensor([1]))

    monkeypatch.setattr(prototype_hook, "fill_tables", fill)
    return calls


def task(training: str = "", updates: int = 0, **options):
    """With options of its own and of the training."""
    cfg = SimpleNamespace(**vars(PrototypeTaskConfig()), data="data-bin", train_subset="train")
    vars(cfg).update(options)
    whole = OmegaConf.merge(FairseqConfig(), OmegaConf.from_dotlist(training.split()))
    return SimpleNamespace(cfg=cfg, training_options=whole, updates=updates)


def test_the_tables_are_filled_once_when_stage_1_is_over(extractions):
    options = {"prototype_sample_size": 9, "prototype_max_tokens": 70}
    model, ours = Model(), task(prototype_stage1_epochs=2, **options)
    states = []
    for epoch in range(1, 6):
        begin_epoch(ours, epoch, model)
        states.append((model.table.filled, model.trained, len(extractions)))
    assert states == 2 * [(False, False, 0)] + 3 * [(True, True, 1)]
    subset, settings = extractions[0]
    assert subset == "train"
    assert settings == Settings(k=2, min_count=3, size=9, max_tokens=70, layer="last")


def test_the_memory_it_may_take_is_told_before_training(extractions, caplog):
    """8 types of at most 2^20 states, 4 wide, 2 bytes each, are a sixteenth of a GiB."""
    caplog.set_level("INFO")
    many = {"prototype_stage1_epochs": 3, "prototype_sample_size": 2**20}
    for options in (many, {**many, "prototype_memory": 0.03}):
        for epoch in (1, 2):
            begin_epoch(task(**options), epoch, Model())
    told = [record.getMessage() for record in caplog.records]
    assert [line.split("at most ")[1] for line in told] == [
        f"{gib} GiB of states in all" for gib in ("0.06", "0.03")
    ]
    assert all("after epoch 3" in line for line in told)


def test_a_stage_1_that_outlasts_the_training_is_told(extractions, caplog):
    """Epochs of 10 updates: three take 30, as the second one's beginning tells."""
    for limit, told in (
        ("optimization.max_epoch=3", (1, "3 epochs, --max-epoch ends the training after 3")),
        ("optimization.max_epoch=4 optimization.max_update=31", None),
        ("optimization.max_update=30", (2, "30 updates, --max-update ends the training after 30")),
        ("optimization.max_epoch=0 optimization.max_update=0", None),
    ):
        caplog.clear()
        found = []
        for epoch in (1, 2, 3):
            ours = task(limit, 10 * (epoch - 1), prototype_stage1_epochs=3)
            begin_epoch(ours, epoch, Model())
            found += [(epoch, r.getMessage()) for r in caplog.records if r.levelname == "WARNING"]
            caplog.clear()
        assert [epoch for epoch, _ in found] == ([told[0]] if told else [])
        assert told is None or told[1] in found[0][1]


def test_a_model_with_prototypes_has_no_stage_1(extractions, caplog):
    model = Model()
    begin_epoch(task(prototype_stage1_epochs=0), 1, model)  # a stage of no epochs ends at once
    for epoch in (2, 3):
        begin_epoch(task(prototype_stage1_epochs=2), epoch, model)
    assert len(extractions) == caplog.text.count("has its prototypes already") == 1
    assert model.trained is True


def test_stage_1_without_an_end(extractions, caplog):
    model = Model()
    begin_epoch(task(), 1, model)
    begin_epoch(task(), 99, model)
    assert caplog.text.count("this stays a plain Transformer") == 1
    assert not model.table.filled and model.trained is False and not extractions


def test_other_models_are_left_alone():
    begin_epoch(task(), 1, torch.nn.Linear(1, 1))
    for name, value in (("stage1_epochs", 1), ("restart", True), ("memory", 3.0)):
        flag = f"--prototype-{name.replace('_', '-')} needs --arch proto_transformer"
        with pytest.raises(ValueError, match=flag):
            begin_epoch(task(**{f"prototype_{name}": value}), 1, torch.nn.Linear(1, 1))


@pytest.mark.parametrize(
    ("variant", "options", "reason"),
    [
        ("random", {"prototype_stage1_epochs": 1}, "from the first update"),
        ("two-pass", {"prototype_stage1_epochs": 1}, "from the first update"),
        ("two-pass", {}, "--prototypes two-pass needs --prototype-table"),
        ("two-pass", {"prototype_table": "/none.pt"}, "/none.pt is not a file: name a checkpoint"),
        ("one-pass", {"prototype_table": "x.pt"}, "--prototype-table is for --prototypes two-pass"),
        ("one-pass", {"prototype_restart": True}, "needs --prototype-stage1-epochs"),
        (
            "one-pass",
            {"prototype_stage1_epochs": 1, "prototype_sample_size": 1},
            "--prototype-sample-size 1 is below --prototypes-per-token 2",
        ),
    ],
)
def test_options_that_do_not_go_together(variant, options, reason):
    with pytest.raises(ValueError, match=reason):
        begin_epoch(task(**options), 1, Model(variant))


def test_a_schedule_that_cannot_restart_is_refused_where_stage_1_has_no_epochs(extractions):
    stages = {"prototype_stage1_epochs": 0, "prototype_restart": True}
    with pytest.raises(ValueError, match="can't start --lr-scheduler manual"):
        begin_epoch(task("lr_scheduler._name=manual", **stages), 1, Model())
    assert not extractions


def test_another_number_of_prototypes_than_the_checkpoint_has(extractions):
    model = Model(k=3)
    model.table.fill(torch.tensor([5]), torch.ones(1, 2, DIM), torch.tensor([2]))
    with pytest.raises(ValueError, match=r"has 2 prototypes per token .* must be that, not 3"):
        begin_epoch(task(prototype_stage1_epochs=1), 2, model)


@pytest.mark.parametrize(
    ("training", "reason"),
    [
        (f"{TWO_WORKERS}=pytorch_ddp", "--find-unused-param"),
        (f"{TWO_WORKERS}=fully_sharded", "needs --ddp-backend legacy_ddp or pytorch_ddp"),
        ("ema.store_ema=true", "--store-ema can't follow a table that grows"),
        ("common.fp16=true optimizer.weight_decay=0.1", "would shrink the prototype attention"),
        ("common.bf16=true optimizer.weight_decay=0.1", "use --amp, or --memory-efficient-fp16"),
        (
            "common.bf16=true common.memory_efficient_bf16=true optimizer.weight_decay=0.1 "
            f"{TWO_WORKERS}=legacy_ddp",
            "on several processes with --find-unused-parameters",
        ),
        ("lr_scheduler._name=reduce_lr_on_plateau", "whose rate goes by epochs or scores"),
        (
            "lr_scheduler._name=polynomial_decay optimization.lr=[1,0.5]",
            "can't start --lr-scheduler polynomial_decay",
        ),
        ("lr_scheduler._name=fixed optimization.lr=[1,0.5]", "can't start --lr-scheduler fixed"),
    ],
)
def test_what_cannot_train_stage_1_is_refused_before_it_starts(training, reason):
    with pytest.raises(ValueError, match=reason):
        begin_epoch(task(training, prototype_stage1_epochs=1, prototype_restart=True), 1, Model())


UNUSED = "distributed_training.find_unused_parameters=true"


@pytest.mark.parametrize("backend", ["legacy_ddp", "no_c10d", f"pytorch_ddp {UNUSED}"])
def test_what_can(backend):
    model = Model()
    begin_epoch(task(f"{TWO_WORKERS}={backend}", prototype_stage1_epochs=1), 1, model)
    assert model.trained is False


def test_a_table_of_another_dictionary_is_refused(tmp_path):
    table = PrototypeTable(TYPES, DIM, 8)
    table.fill(torch.tensor([5]), torch.ones(1, 2, DIM), torch.tensor([2]))
    state = {f"encoder.prototypes.{n}": v for n, v in table.state_dict().items()}
    path = tmp_path / "other.pt"
    history = [{"num_updates": 0, "optimizer_name": "", "lr_scheduler_state": {}}]
    rest = {"optimizer_history": history, "extra_state": {"train_iterator": {}}}
    torch.save({"model": state, "cfg": None, "args": None, **rest}, path)
    with pytest.raises(ValueError, match=r"other\.pt: the prototypes belong to a dictionary with"):
        prototype_hook.load_tables(str(path), Model("two-pass").tables())
    with pytest.raises(ValueError, match="no prototypes of the target side"):
        prototype_hook.load_tables(str(path), {"target": table})


@pytest.mark.parametrize(
    ("kept", "updates", "begin"),
    [
        # fine-tuned from a checkpoint that restarted before update 9: updates count from 0 again
        pytest.param({}, (0, 1, 2), 0, id="another training's"),
        # interrupted: the table knows the update, and the optimizer keeps what it had
        pytest.param({"moments": 1}, (12, 13), 9, id="its own"),
    ],
)
def test_a_table_that_knows_of_a_restart(kept, updates, begin):
    model, stages = Model(), prototype_hook.PrototypeStages()
    optimizer = SimpleNamespace(state={**kept})
    model.table.fill(torch.tensor([5]), torch.ones(1, 2, DIM), torch.tensor([2]))
    model.table.restarted.fill_(9)
    stages.schedule = SimpleNamespace(step_update=lambda update: update)
    for update in updates:
        stages.restart(SimpleNamespace(optimizer=optimizer), model, update)
        assert stages.rate == update - begin
    assert optimizer.state == kept


def test_the_first_update_with_prototypes_forgets_the_others(monkeypatch):
    """Until then the rate is that of stage 1, whatever a new schedule begins with."""
    model, stages, rates = Model(), prototype_hook.PrototypeStages(), [0.5]
    stages.training_options = SimpleNamespace(lr_scheduler=None)
    inner = SimpleNamespace(state={"moments": 1})
    optimizer = SimpleNamespace(optimizer=inner, get_lr=lambda: rates[-1], set_lr=rates.append)
    schedule = SimpleNamespace(step_update=lambda update: update)
    monkeypatch.setattr(
        prototype_hook, "build_lr_scheduler", lambda _, told: told.set_lr(1e-7) or schedule
    )
    stages.restart(optimizer, model, 11)
    assert (rates[-1], stages.rate, inner.state) == (0.5, None, {"moments": 1})
    model.table.fill(torch.tensor([5]), torch.ones(1, 2, DIM), torch.tensor([2]))
    for update in (12, 13):
        stages.restart(optimizer, model, update)
        assert stages.rate == update - 12
    assert inner.state == {} and model.table.restarted == 12
