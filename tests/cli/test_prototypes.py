"""compgen-prototypes puts prototypes into a checkpoint and shows them."""

import functools
import json
import shutil

import torch
from fairseq import checkpoint_utils
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq_commands import load, user_dir
from in_process import output, refusal

from compgen_cli.prototypes import main
from compgen_fairseq.models.proto_transformer import ProtoTransformerModel
from compgen_fairseq.prototypes.checkpoint import has_prototypes, make_room


def test_a_plain_transformer_becomes_one_with_prototypes(plain, tiny_data, with_prototypes):
    before, after = load(plain), load(with_prototypes)
    names = before["model"]
    assert all(torch.equal(after["model"][name], names[name]) for name in names)
    assert after["model"]["encoder.prototypes.vectors"].shape == (6, 2, 16)
    assert after["extra_state"]["train_iterator"] == before["extra_state"]["train_iterator"]
    files, options = [str(with_prototypes)], {"data": str(tiny_data)}
    (model,), _ = checkpoint_utils.load_model_ensemble(files, arg_overrides=options)
    assert model.encoder.prototypes.filled
    assert [path.name for path in with_prototypes.parent.iterdir()] == ["stage2.pt"]


def test_a_model_built_on_proto_transformer_has_prototypes(monkeypatch):
    own = type("Own", (ProtoTransformerModel,), {})
    monkeypatch.setitem(ARCH_MODEL_REGISTRY, "own_proto", own)
    named = "own_proto", "proto_transformer_cognition", "transformer", None
    assert [has_prototypes(arch) for arch in named] == [True, True, False, False]


def test_a_checkpoint_without_the_optimizer_gives_the_same_table_and_a_warning(
    plain, tiny_data, with_prototypes, tmp_path, caplog
):
    state = torch.load(plain, weights_only=True)
    del state["last_optimizer_state"]
    torch.save(state, tmp_path / "bare.pt")
    flags = ["--cpu", "-k", "2", "--prototype-min-count", "5", "-o", str(tmp_path / "again.pt")]
    assert main(["extract", str(tmp_path / "bare.pt"), str(tiny_data), *flags]) == 0
    assert "counts its updates from 0" in caplog.text
    files = with_prototypes, tmp_path / "again.pt"
    assert torch.equal(*(load(path)["model"]["encoder.prototypes.vectors"] for path in files))


def test_the_preset_says_how_many_prototypes_and_force_replaces_a_file(plain, tiny_data, tmp_path):
    (table := tmp_path / "table.pt").write_text("old")
    command = ["compgen-prototypes", "extract", plain, tiny_data, "--cpu", "-o", table, "--force"]
    command += ["--prototype-min-count", "5", "--arch"]
    said = refusal(*command, "transformer")
    assert said.endswith("--arch transformer is not a preset of proto_transformer")
    output(*command, "proto_transformer_wmt_en_de")
    assert load(table)["model"]["encoder.prototypes.vectors"].shape == (6, 5, 16)
    own = user_dir(
        tmp_path,
        "from fairseq.models import register_model, register_model_architecture",
        "own = type('Own', (compgen_fairseq.ProtoTransformerModel,), {})",
        "register_model('own_proto')(own)",
        "register_model_architecture('own_proto', 'own_preset')(lambda args: None)",
    )
    assert "--arch own_proto is not a preset" in refusal(*command, "own_proto", "--user-dir", own)
    output(*command, "own_preset", "--user-dir", own)
    assert load(table)["model"]["encoder.prototypes.vectors"].shape == (6, 3, 16)


def test_the_flags_of_an_extraction_count(plain, tiny_data, tmp_path):
    command = ["compgen-prototypes", "extract", plain, tiny_data, "--cpu", "-k", 2, "--force"]
    command += ["--prototype-min-count", 5, "-o", tmp_path / "table.pt"]

    def vectors(*flags):
        output(*command, *flags)
        return load(tmp_path / "table.pt")["model"]["encoder.prototypes.vectors"]

    whole = vectors()
    for flags in (["--prototype-sample-size", 2], ["--subset", "valid"]):
        assert not torch.equal(vectors(*flags), whole), flags
    assert torch.equal(vectors("--prototype-layer", "last"), whole)  # its encoder has one layer
    assert load(tmp_path / "table.pt")["cfg"]["model"].prototype_layer == "last"


def test_the_optimizer_gets_room_for_new_parameters():
    """Of parameters a, NEW, b, NEW, c and the criterion's d the smaller model has a, b, c and d."""
    group = {"lr": 0.1, "params": [0, 1, 2, 3]}
    old = {"state": {0: "a", 1: "b", 2: "c", 3: "d"}, "param_groups": [group], "loss_scale": 2}
    new = make_room(old, [True, False, True, False, True])
    assert new == {
        "state": {0: "a", 2: "b", 4: "c", 5: "d"},
        "param_groups": [{"lr": 0.1, "params": [0, 1, 2, 3, 4, 5]}],
        "loss_scale": 2,
    }
    in_one_piece = {"state": {0: "abc"}, "param_groups": [{"lr": 0.1, "params": [0]}]}
    for without in (None, in_one_piece, {**old, "param_groups": [group, group]}):
        assert make_room(without, [True, False, True, False, True]) is None


def test_show(with_prototypes, tiny_data):
    show = functools.partial(output, "compgen-prototypes", "show", with_prototypes, tiny_data)
    head, *rows = [line.split("\t") for line in show().splitlines()]
    assert head == ["side", "type", "prototypes", "mean_distance"]
    assert {row[1] for row in rows} == {"wif", "dax", "lug", "zup", "blick", "kiki"}
    assert all(row[0] == "source" and row[2] == "2" and float(row[3]) > 0 for row in rows)
    printed = json.loads(show("--json"))
    assert [[str(value) for value in row.values()] for row in printed] == rows


def test_what_cannot_be_done_is_one_sentence(plain, tiny_data, with_prototypes, tmp_path):
    data = tiny_data
    other = shutil.copytree(tiny_data, tmp_path / "data-bin")
    words = (tiny_data / "dict.src.txt").read_text().splitlines()
    (other / "dict.src.txt").write_text("\n".join([*words[1:], words[0]]) + "\n")
    new = ["-o", tmp_path / "new.pt", "--cpu"]
    for command, reason in (
        (["extract", plain, data, "-o", with_prototypes], "is there already"),
        (["extract", plain, data, *new, "--prototype-min-count", "999"], "source side occurs 999"),
        (["extract", plain, data, *new, "--prototypes", "best"], "--prototypes is one of one-pass"),
        (["extract", plain, data, *new, "--prototypes", "random"], "nothing to extract"),
        (["show", plain, data], "has no prototypes yet"),
        (["show", with_prototypes, other], "a dictionary of other words"),
    ):
        assert reason in refusal("compgen-prototypes", *command, bars=True)
    assert [p.name for p in tmp_path.iterdir()] == ["data-bin"], "something half-written is left"
