"""The table of bad inputs: a command, its words, and what the sentence it ends in must name.

A word that begins with ``@`` is a file or folder of the small world of
:mod:`tests.cli.test_bad_inputs`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from bad_texts import LOGS, PREPARATIONS, RUNS
from small_models import SIZES


class Case(NamedTuple):
    """A command, what it is given and must refuse, and what the last line it prints must hold."""

    command: str
    words: tuple[str, ...]
    names: tuple[str, ...]


def case(line: str, *names: str) -> Case:
    """A case of a command line without blanks in its words."""
    command, *words = line.split()
    return Case(command, tuple(words), names)


#: fairseq-train on the small data; later flags win.
ANY = (
    "fairseq-train @data --user-dir @plugin --cpu --task compgen_translation --optimizer adam "
    "--max-tokens 200 --max-update 1 --save-dir @out"
)
TRAIN = (
    f"{ANY} --arch sq_transformer --criterion structural_cross_entropy "
    f"{' '.join(map(str, SIZES))} --source-codes 4 --target-codes 4"
)
GENERATE = "fairseq-generate @data --user-dir @plugin --cpu"

#: flags of fairseq-train, with numbers that make no sense
NUMBERS = {
    "encoder-attention-heads": "3",
    "dropout": "nan",
    "max-tokens": "0 abc",
    "update-freq": "[1,0]",
    "lr": "-1 [0.1,-0.1] x",
    "adam-betas": "x (0.9) (0.9,1.5)",
    "patience": "x",
}
PROTOTYPES = "--arch proto_transformer --criterion label_smoothed_cross_entropy"
MIXED = {
    f"--arch {arch} --criterion {criterion}": (f"--criterion {criterion}", arch)
    for arch, criterion in (
        ("cat_transformer", "structural_cross_entropy"),
        ("syntactic_attention", "structural_cross_entropy"),
        ("syntactic_attention", "composition_cross_entropy"),
        ("proto_transformer", "composition_cross_entropy"),
        ("transformer", "cat_pretraining"),
    )
}
MIXED["--arch proto_transformer --task translation"] = ("--task translation", "no prototypes")
MIXED[f"{PROTOTYPES} --num-batch-buckets 2"] = ("--num-batch-buckets", "prototypes")
COMBINATIONS = {
    "--arch sq_transformer_scn": ("'sq_transformer_scn' (sq_transformer_scan or",),
    "--task none": ("--task",),
    "--criterion none": ("--criterion",),
    "--criterion composition_cross_entropy": ("--criterion", "cat_transformer"),
    "--criterion cat_pretraining": ("--criterion", "--arch cat"),
    "--best-checkpoint-metric exact_match": ("--best-checkpoint-metric", "--eval-exact-match"),
    "--best-checkpoint-metric cter_instance": ("--best-checkpoint-metric", "--eval-cter"),
    "--cpu --distributed-world-size 2": ("--distributed-world-size 2", "torchrun"),
    "--update-ordered-indices-seed": ("--update-epoch-batch-itr",),
    "--optimizer fused_adam --fp16-adam-stats": ("fused_adam", "--fp16-adam-stats"),
    "--num-batch-buckets 2 --code-classes brown": ("--num-batch-buckets", "classes of words"),
    "--num-batch-buckets 2 --left-pad-target": ("--num-batch-buckets", "--left-pad-target"),
    "--best-checkpoint-metric bleu": ("--best-checkpoint-metric", "--eval-bleu"),
    "--best-checkpoint-metric accuracy": ("--best-checkpoint-metric accuracy", "nll_loss"),
    "--save-dir @text/below": ("--save-dir", "@text"),
    "--save-dir @text": ("--save-dir", "@text"),
    "--restore-file @none.pt": ("--restore-file", "@none.pt"),
    "--restore-file @sq.pt --store-ema": ("--store-ema", "average"),
    "--restore-file @checkpoints/text.pt": ("@checkpoints/text.pt",),
    "--restore-file @checkpoints/half.pt": ("@checkpoints/half.pt",),
    "--finetune-from-model @none.pt": ("@none.pt",),
    "--continue-once @none.pt": ("--continue-once", "@none.pt"),
    "--fp16": ("--fp16", "--bf16"),
    "--finetune-from-model @checkpoints/empty.pt": ("@checkpoints/empty.pt",),
    "--valid-subset none": ("@data", "'none'"),
    "--train-subset none": ("@data", "'none'"),
    "--eval-cter": ("--eval-cter", "@data/cter"),
    "--attention plain --code-ema-decay 0.9": ("--code-ema-decay", "codes: --quantizer sovq"),
    "--attention plain --sal-cross-attention paper": ("--sal-cross-attention", "--attention sal"),
    "--attention none": ("--attention", "choose from"),
    '--eval-exact-match-args {"baem":4}': ("--eval-exact-match-args", "baem"),
    '--eval-exact-match-args {"beam":0}': ("--eval-exact-match-args", "beam"),
    '--eval-exact-match-args {"beam":2.5}': ("--eval-exact-match-args", "whole number"),
    '--eval-exact-match-args {"beam":true}': ("--eval-exact-match-args", "whole number"),
    '--eval-exact-match-args {"beam":"4"}': ("--eval-exact-match-args", "beam"),
    '--eval-exact-match-args {"lenpen":NaN}': ("--eval-exact-match-args", "lenpen"),
    '--eval-exact-match-args {"score_reference":true}': ("score_reference", "not a generation"),
    '--eval-exact-match-args {"sampling":"false"}': ("sampling must be true or false",),
    "--eval-exact-match-args 4": ("--eval-exact-match-args", "JSON"),
    "--eval-exact-match-args {": ("--eval-exact-match-args", "JSON"),
    f"--eval-exact-match-args {'[' * 5000}": ("--eval-exact-match-args", "JSON"),
    '--eval-cter-args {"max_len_b":-1}': ("--eval-cter-args", "max-len-b"),
    '--eval-bleu-args {"beams":1}': ("--eval-bleu-args", "beams"),
    "--train-batches apart": ("--train-batches",),
    "--prototype-restart": ("--prototype-restart", "--arch proto_transformer"),
    "--prototypes one-pass": ("unrecognized arguments", "is of --arch proto_transformer"),
    "--no-such-flag": ("unrecognized arguments: --no-such-flag;",),
    "--max-updates 3": ("unrecognized arguments: --max-updates 3 (--max-update or",),
    "--source-lang none --target-lang tgt": ("dict.none.txt",),
}

#: a part of the small data that is broken, and the file that must be named
BROKEN_DATA = {
    "missing": "",
    "empty": "",
    "no-dictionary": "dict.src.txt",
    "binary-dictionary": "dict.src.txt",
    "twice-dictionary": "dict.src.txt",
    "uncounted-dictionary": "dict.tgt.txt",
    "small-dictionary": "src.bin",
    "empty-dictionary": "tgt.bin",
    "empty-index": "src.idx",
    "half-index": "tgt.idx",
    "foreign-index": "src.idx",
    "long-index": "src.idx",
    "no-binary": "subset",
    "half-binary": "src.bin",
    "long-binary": "tgt.bin",
    "empty-binary": "tgt.bin",
}
#: what is not a checkpoint, or none that is to be loaded, and what is said of it
BROKEN_CHECKPOINTS = {
    "none": "",
    "folder": "",
    "empty": "is not a checkpoint of fairseq-train, or only a part of one",
    "half": "is not a checkpoint of fairseq-train, or only a part of one",
    "text": "is not a checkpoint of fairseq-train, or only a part of one",
    "list": "is not a checkpoint of fairseq-train",
    "zip": "is not a checkpoint of fairseq-train",
    "code": "could run code",
    "flipped": "is damaged",
}
#: all commands load through one function: one is tried with every kind, the others with these
FEW = ("none", "half", "code")
THOROUGH = ("compgen-analyze codes @X @data --out @out",)
READERS = (
    *(*THOROUGH, f"{GENERATE} --path @X"),
    *("compgen-predict @X @data", "compgen-sememes @X @data word"),
    "compgen-similarity @X @data",
    *("compgen-prototypes show @X @data", "compgen-prototypes extract @X @data -o @out"),
    "compgen-analyze embeddings @X @data --out @out",
    "compgen-analyze attention @X @data --id 0 --out @out",
    "compgen-analyze prototypes @X @data wif --out @out",
    "fairseq-interactive @data --user-dir @plugin --cpu --task compgen_translation --path @X",
    "fairseq-validate @data --user-dir @plugin --cpu --task compgen_translation --batch-size 4 "
    "--path @X",
)
COMMAND_NUMBERS = {
    "compgen-score @logs/whole": {"expected": "0"},
    "compgen-compare @logs/whole @logs/whole": {
        "resamples": "0 1000000000000",
        "seed": "0",
        "expected": "0",
    },
    "compgen-predict @sq.pt @data": {"max-tokens": "0"},
    "compgen-sememes @sq.pt @data word": {"top": "0", "layer": "0"},
    "compgen-prototypes extract @sq.pt @data -o @out": {
        "prototype-max-tokens": "0",
        "prototypes-per-token": "0",
        "prototype-min-count": "0",
        "prototype-sample-size": "-1",
        "prototype-memory": "0",
    },
    "compgen-analyze embeddings @sq.pt @data --out @out": {
        "top": "0",
        "neighbours": "0",
        "clusters": "0",
        "perplexity": "0",
        "seed": "-1",
    },
    "compgen-analyze codes @sq.pt @data --out @out": {"top-words": "0", "seed": "-1"},
    "compgen-analyze attention @sq.pt @data --out @out": {"id": "-1", "pairs": "0"},
    "compgen-analyze prototypes @sq.pt @data wif --out @out": {
        "most": "0",
        "centres": "0",
        "max-tokens": "0",
    },
    "compgen-analyze consistency @sq.pt @data --out @out": {"top": "0", "layer": "0"},
    "compgen-analyze errors @runs/whole.1 --out @out": {"resamples": "0 1000000000000"},
    f"{GENERATE} --path @sq.pt": {"beam": "0", "nbest": "9", "shard-id": "1"},
}


def cases() -> Iterator[Case]:
    """The whole table."""
    yield from _of_flags(TRAIN, NUMBERS)
    for flags, names in MIXED.items():
        yield case(f"{ANY} {flags}", *names)
    for flags, names in COMBINATIONS.items():
        yield case(f"{TRAIN} {flags}", *names)
    for kind, file in BROKEN_DATA.items():
        folder = f"@broken/{kind}"
        yield case(TRAIN.replace("@data", folder, 1), folder, file)
        if kind in ("missing", "no-dictionary", "half-index", "no-binary"):
            names = [file] if kind != "no-binary" else []
            yield case(f"{GENERATE} --path @sq.pt".replace("@data", folder), folder, *names)
        if "dict" in file and kind not in ("small-dictionary", "empty-dictionary"):
            yield case(f"compgen-analyze codes @sq.pt {folder}", f"{folder}/{file}")
    for command in READERS:
        for kind in BROKEN_CHECKPOINTS if command in THOROUGH else FEW:
            file = f"@checkpoints/{kind}.pt"
            yield case(command.replace("@X", file), file, BROKEN_CHECKPOINTS[kind])
    for command, flags in COMMAND_NUMBERS.items():
        yield from _of_flags(command, flags)
    for kind, reason in LOGS.items():
        file = f"@logs/{kind}"
        yield case(f"compgen-score {file}", file, reason)
    for kind, reason in RUNS.items():
        yield case(f"compgen-report @runs/{kind}.1", f"@runs/{kind}.1", reason)
    for words, reason in PREPARATIONS.items():
        yield case(f"compgen-prepare {words}", reason)
    yield from OTHERS


def _of_flags(command: str, flags: dict[str, str]) -> Iterator[Case]:
    for flag, values in flags.items():
        for value in values.split():
            yield case(f"{command} --{flag} {value}", f"--{flag}")


OTHERS = [
    case("compgen-compare @logs/claims @logs/whole", "@logs/claims", LOGS["claims"]),
    case(f"{GENERATE} --path @sq.pt --retain-dropout", "--retain-dropout"),
    case("compgen-score @logs/whole --metric cogs", "--cases"),
    case("compgen-score @logs/whole --metric none", "--metric"),
    case("compgen-score @logs/whole --reference @none", "@none"),
    case("compgen-score @logs/whole --reference @text", "@text", "1 lines", "3 sentences"),
    case("compgen-score @logs/whole --reference @binary", "@binary", "UTF-8"),
    case("compgen-score @logs/whole --json-out @none/below/x", "@none/below/x"),
    case("compgen-score @logs/whole --json-out @folder", "@folder"),
    case("compgen-score @logs/whole --expected 5", "@logs/whole", "2 missing (ids 3, 4)"),
    case("compgen-score", "log"),
    case("compgen-score @logs/whole --metric chrf --tokenize zh", "--tokenize is for BLEU only"),
    case("compgen-score @logs/whole --lowercase", "--lowercase: for BLEU and chrF only"),
    case("compgen-compare @logs/whole @logs/whole --test ar", "is for BLEU and chrF only"),
    case(
        "compgen-compare @logs/whole @logs/whole --metric cter --compound a --lexicon b --lang de",
        "BLEU's options are not for CTER",
    ),
    case("compgen-compare @logs/whole @logs/whole --strict", "--strict: for CTER only"),
    case("compgen-score @logs/whole --cases @none", "--cases: for COGS only"),
    case("compgen-score @logs/whole --metric bleu --cases @none", "--cases: for COGS only"),
    case("compgen-score @logs/whole --metric bleu --lang de", "--lang: for --detokenize moses"),
    case("compgen-cter --compound @none --lexicon @none", "@none"),
    case("compgen-cter --check --json --compound @text --lexicon @text", "--check prints what"),
    case("compgen-cter --compound @text --lexicon @text", "@text"),
    case("compgen-cter --compound @text --lexicon @binary", "@binary"),
    case("compgen-analyze codes @none.pt", "DATA"),
    case("compgen-analyze codes @sq.pt @text", "@text"),
    case("compgen-analyze nothing", "nothing"),
    case("compgen-analyze codes @sq.pt @data --out @out --subset none", "none"),
    Case(
        "compgen-analyze",
        ("attention", "@sq.pt", "@data", "--out", "@out", "--sentence", "wif " * 3000),
        ("--sentence", "3000 words"),
    ),
    case("compgen-prototypes show @sq.pt @data", "@sq.pt", "sq_transformer"),
    case("compgen-prototypes extract @sq.pt @data -o @folder", "--output", "@folder"),
    case("compgen-prototypes extract @sq.pt @data -o @none/x", "--output", "@none/x"),
    case("compgen-prototypes nothing", "nothing"),
    case("compgen-predict @sq.pt @data", "@sq.pt", "sentence_prediction"),
    case("compgen-sememes @sq.pt @data word", "@sq.pt", "cat_pretraining"),
    case("compgen-similarity @sq.pt @data", "@sq.pt", "cat model"),
    case("compgen-report", "RUN"),
    case("compgen-report @runs/whole.1 --out @none/below/x", "@none/below/x"),
    case("compgen-report @runs/whole.1 --baseline none", "none"),
    case("compgen-results tables @none", "@none"),
    case("compgen-results write @none @out", "@none"),
    case(f"{GENERATE}", "--path"),
    case(f"{GENERATE} --path @sq.pt --gen-subset none", "@data", "none"),
    case(f"{GENERATE} --path @sq.pt --scoring none", "--scoring"),
]
