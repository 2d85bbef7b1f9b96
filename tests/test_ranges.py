"""Every number of every configuration has a range, and its default is in it."""

import argparse
import inspect
import sys
import typing
from dataclasses import dataclass, fields
from types import SimpleNamespace

import pytest
from fairseq import options
from fairseq.dataclass import FairseqDataclass

import compgen_fairseq  # noqa: F401
from compgen.ranges import AT_LEAST_0, AT_LEAST_1, RANGES, RATE, SEED, SHARE, check, ranges

CONFIGURATIONS = [
    kind
    for name, module in sorted(sys.modules.items())
    if name.startswith("compgen_fairseq.")
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, FairseqDataclass) and kind.__module__ == name
]


@pytest.mark.parametrize("kind", CONFIGURATIONS, ids=lambda kind: kind.__name__)
def test_every_number_has_a_range(kind):
    for field in fields(kind):
        if field.name not in kind.__annotations__ or isinstance(field.default, str):
            continue
        types = {field.type, *typing.get_args(field.type)}
        if types & {int, float}:
            assert field.name in RANGES, f"{kind.__name__}.{field.name} has no range"
            assert field.default is None or field.default in RANGES[field.name]


def test_fairseqs_defaults_are_in_their_ranges():
    for name in ("training", "generation", "interactive_generation", "validation"):
        parser = getattr(options, f"get_{name}_parser")()
        check(parser.parse_known_args([])[0])


@pytest.mark.parametrize(
    "name, value, told",
    [
        ("encoder_layers", 0, "--encoder-layers must be at least 1, not 0"),
        ("dropout", 1.0, "--dropout must be at least 0 and below 1, not 1.0"),
        ("dropout", float("nan"), "--dropout must be at least 0 and below 1, not nan"),
        ("lr", [0.1, -1.0], "--lr must be at least 0, not -1.0"),
        ("lr", (float("inf"),), "--lr must be at least 0, not inf"),
        ("mask_prob", 1.5, "--mask-prob must be at least 0 and at most 1, not 1.5"),
        ("batch_size_valid", "0", "--batch-size-valid must be at least 1, not 0"),
        ("batch_size_valid", "4.5", "--batch-size-valid must be a whole number, not 4.5"),
        ("seed", -1, f"--seed must be at least 0 and below {2**32}, not -1"),
    ],
)
def test_numbers_beyond_their_range_are_refused(name, value, told):
    with pytest.raises(ValueError, match=f"^{told}$"):
        check(SimpleNamespace(**{name: value}))


OUT_OF_RANGE = """
decoder-layers=0 encoder-ffn-embed-dim=0 decoder-ffn-embed-dim=-1 decoder-attention-heads=0
attention-dropout=1.5 activation-dropout=-1 max-source-positions=0 max-target-positions=-5
encoder-predictor-layers=0 decoder-predictor-layers=-1 batch-size=0 max-tokens-valid=-1
batch-size-valid=0 max-epoch=-1 save-interval=0 save-interval-updates=-1 validate-interval=0
log-interval=0 num-workers=-1 weight-decay=-0.1 srl-mse=-2 encoder-layers=0 encoder-embed-dim=0
encoder-attention-heads=0 source-codes=1 target-codes=1 update-freq=0 seed=4294967296
clip-norm=-1 label-smoothing=1 max-update=-5 distributed-world-size=0 mmi-entropy=-1
encoder-commitment=nan prototype-stage1-epochs=-1 prototype-max-tokens=0 prototype-memory=0
prototype-sample-size=-1 prototype-min-count=0 reconstruction=-1 reconstruction-beta=1
sparsity=-0.01 semantic-dim=0 dropout=-1 sememe-codes=-1 pooler-dropout=1 max-positions=0
tokens-per-sample=0 nuance=-1 guided-decomposition=-1 momentum=1 lenpen=100 predictor-share=0
temperature=0 prototypes-per-token=0 codes=1 encoder-hidden-size=0 nbest=0 max-len-b=-1
max-tokens=-1 num-shards=0 shard-id=-1
"""


def test_a_number_out_of_its_range_is_refused_by_its_flag():
    for given in OUT_OF_RANGE.split():
        flag, _, value = given.partition("=")
        with pytest.raises(ValueError, match=f"^--{flag} must be "):
            check(SimpleNamespace(**{flag.replace("-", "_"): float(value)}))


@pytest.mark.parametrize(
    "fine",
    [
        *({"dropout": 0}, {"mask_prob": 1}, {"max_tokens": None}, {"lr": [0.1]}, {"seed": 1}),
        *({"lenpen": -1}, {"ema_decay": 1}, {"batch_size_valid": "${dataset.batch_size}"}),
    ],
)
def test_others_are_not(fine):
    check(SimpleNamespace(**fine))


def test_a_table_is_about_its_own_options_and_contradicts_no_other():
    @dataclass
    class Configuration:
        dropout: float

    for name, limits in (("nothing_of_the_kind", AT_LEAST_1), ("dropout", AT_LEAST_0)):
        with pytest.raises(ValueError, match=name):
            ranges((limits, (name,)))(Configuration)


@pytest.mark.parametrize(
    "read, text, told",
    [
        (AT_LEAST_1.whole, "0", "must be a whole number, at least 1, not '0'"),
        (AT_LEAST_1.whole, "1.5", "must be a whole number, at least 1, not '1.5'"),
        (RATE.number, "much", "must be a number, at least 0 and below 1, not 'much'"),
        (SHARE.number, "nan", "must be a number, at least 0 and at most 1, not 'nan'"),
        (SEED.whole, str(2**32), "must be a whole number"),
    ],
)
def test_arguments_of_commands(read, text, told):
    with pytest.raises(argparse.ArgumentTypeError, match=told):
        read(text)
    assert (RATE.number("0.5"), SEED.whole("7")) == (0.5, 7)
