"""``compgen-analyze attention``: attention maps, and how much alike they are for like sentences."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from compgen import plotting
from compgen.output import write_csv, write_json
from compgen.ranges import AT_LEAST_0, AT_LEAST_1, SEED
from compgen_fairseq.analysis import agreement, checkpoint, heatmaps
from compgen_fairseq.analysis.agreement import DEFINITIONS, Agreement
from compgen_fairseq.analysis.attention_maps import SIDES, START, attention_maps, translator
from compgen_fairseq.analysis.checkpoint import Loaded
from compgen_fairseq.analysis.pairs import Pair, find_pairs, read_classes, read_pairs, write_pairs
from compgen_fairseq.analysis.vocabulary import index, quantizer_of, type_codes
from compgen_fairseq.progress import progress

BATCH = 64  # pairs
MOST_WORDS = 200  # in a picture


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of this kind."""
    checkpoint.add_arguments(parser)
    add = parser.add_argument
    add("--subset", default="test", help="where sentences are (default: %(default)s)")
    shown = parser.add_argument_group("what is drawn: one sentence, or two of the same length")
    text = (
        "a source sentence, tokenized as the data; if it is in the subset, the decoder reads its "
        "reference, else only the encoder is shown"
    )
    shown.add_argument("--sentence", action="append", default=[], metavar="TEXT", help=text)
    text = "its number in the subset"
    shown.add_argument(
        "--id", action="append", default=[], type=AT_LEAST_0.whole, metavar="N", help=text
    )
    pairs = parser.add_argument_group("what is measured: pairs; one of them is drawn by default")
    text = "draw N pairs of sentences whose words have the same sequence of codes"
    pairs.add_argument("--pairs", type=AT_LEAST_1.whole, metavar="N", help=text)
    text = "the pairs.tsv of another model on the same subset"
    pairs.add_argument("--pairs-from", metavar="FILE", help=text)
    text = "the codes of that model instead of this one's"
    pairs.add_argument("--codes", metavar="CHECKPOINT", help=text)
    text = (
        "lines of a source word, a tab and its class, instead of codes; targets are then compared "
        "where they are of the same length"
    )
    pairs.add_argument("--classes", metavar="FILE", help=text)
    text = "of the pairs (default: %(default)s)"
    pairs.add_argument("--seed", type=SEED.whole, default=1, help=text)


def run(args: argparse.Namespace) -> list[Path]:
    """Write the pictures and numbers.

    Raises:
        ValueError: if there is nothing to draw or to measure.
    """
    ways = [way for way in (args.pairs, args.pairs_from) if way is not None]
    if len(ways) == 2 or (args.codes and args.classes):
        raise ValueError("choose one: --pairs or --pairs-from, --codes or --classes")
    if (args.codes or args.classes) and args.pairs is None:
        raise ValueError("--codes and --classes say which pairs to draw: say --pairs N, too")
    for text in args.sentence:
        if (words := len(text.split())) > MOST_WORDS:
            raise ValueError(f"--sentence has {words} words: at most {MOST_WORDS} can be drawn")
    if len(args.sentence) + len(args.id) > 2:
        raise ValueError("at most two sentences are drawn side by side")
    if not (ways or args.sentence or args.id):
        raise ValueError("say what to draw or to measure: --sentence, --id, --pairs N, ...")
    loaded = translator(checkpoint.load(args.checkpoint, args.data, args.cpu))
    data = checkpoint.subset(loaded, args.subset)
    examples = [_from_text(loaded, data, text) for text in args.sentence]
    pairs = _pairs(args, loaded, data) if ways else []
    numbers = args.id
    if pairs and not (examples or numbers):
        shown = next((pair for pair in pairs if pair.targets), pairs[0])
        numbers = [shown.a, shown.b]
    for i in numbers:
        if i >= len(data):
            raise ValueError(f"--id {i}: the subset {args.subset} has {len(data)} sentences")
        examples.append(data[i])

    out = Path(args.out)
    files: list[Path] = []
    inputs = [data.collater([example])["net_input"] for example in examples]
    maps = [attention_maps(loaded.model, loaded.moved(one)) for one in inputs]
    drawings = {side: _drawing(loaded, examples, maps, side) for side in SIDES}
    if pairs:
        files += _write(out, args, pairs, measure(loaded, data, pairs))
        if not args.pairs_from:
            files.append(write_pairs(out / "pairs.tsv", pairs, _text(loaded, data)))
    for side, drawing in drawings.items():
        if drawing is not None:
            files += plotting.save(drawing, out, f"attention-{side}")
    described = [_described(loaded, *drawn) for drawn in zip(examples, maps, strict=True)]
    return [*files, write_json(out / "maps.json", described)]


def measure(loaded: Loaded, data: Any, pairs: Sequence[Pair]) -> dict[str, Agreement]:
    """The agreement of the attention of pairs, by the names of
    :data:`~compgen_fairseq.analysis.attention_maps.SIDES`.

    Targets are the references (teacher forcing); the decoder's sides are measured on the pairs
    whose targets have the same structure. The first token of a target has only itself to attend
    to, so that the decoder's self-attention is compared from the second on.

    Raises:
        ValueError: if the sentences of a pair are not of the same length.
    """
    parts: dict[str, list[Agreement]] = {side: [] for side in SIDES}
    ordered = sorted(pairs, key=lambda pair: data.size(pair.a))
    chunks = [ordered[i : i + BATCH] for i in range(0, len(ordered), BATCH)]
    for chunk in progress(chunks, "pairs", len(chunks), " batches"):
        ids = sorted({i for pair in chunk for i in pair[:2]})
        sample = data.collater([data[i] for i in ids])
        row = {int(i): r for r, i in enumerate(sample["id"])}
        inputs = sample["net_input"]
        maps = attention_maps(loaded.model, loaded.moved(inputs))
        a, b = (torch.tensor([row[pair[side]] for pair in chunk]) for side in (0, 1))
        keep = {
            "encoder": inputs["src_tokens"].ne(loaded.dictionary("source").pad()),
            "cross": inputs["prev_output_tokens"].ne(loaded.dictionary("target").pad()),
        }
        if not torch.equal(keep["encoder"][a], keep["encoder"][b]):
            raise ValueError("the sentences of a pair must have as many words each")
        keep["decoder"] = keep["cross"] & (keep["cross"].cumsum(1) > 1)
        same = torch.tensor([pair.targets for pair in chunk])
        same &= keep["cross"][a].eq(keep["cross"][b]).all(1)
        for side, weights in maps.items():
            usable = keep[side][a].any(1) & (same | (side == "encoder"))
            if bool(usable.any()):
                first, second = a[usable], b[usable]
                parts[side].append(
                    agreement.compare(weights[first], weights[second], keep[side][first])
                )
    return {side: agreement.together(found) for side, found in parts.items() if found}


def _pairs(args: argparse.Namespace, loaded: Loaded, data: Any) -> list[Pair]:
    """The pairs that the flags ask for."""
    if args.pairs_from is not None:
        pairs = read_pairs(args.pairs_from, _text(loaded, data))
        if not pairs:
            raise ValueError(f"{args.pairs_from}: it has no pairs")
        return pairs
    source, target = loaded.dictionary("source"), loaded.dictionary("target")
    if args.classes:
        source_classes = read_classes(args.classes, source)
        target_classes = torch.zeros(len(target), dtype=torch.long)
        whose = args.classes
    else:
        whose = args.codes or args.checkpoint
        holder = translator(checkpoint.load(whose, args.data, args.cpu)) if args.codes else loaded
        checkpoint.same_words(loaded, holder)
        if any(quantizer_of(holder, side) is None for side in ("source", "target")):
            raise ValueError(
                f"{whose} has no codes: name an sq_transformer with --codes CHECKPOINT, word "
                "classes with --classes FILE, or its pairs with --pairs-from FILE"
            )
        source_classes, target_classes = (
            torch.from_numpy(type_codes(holder, side)) for side in ("source", "target")
        )
    items = [data[i] for i in range(len(data))]
    pairs = find_pairs(
        [item["source"] for item in items],
        [item["target"] for item in items],
        source_classes,
        target_classes,
        (source.unk(), target.unk()),
        args.pairs,
        args.seed,
    )
    if not pairs:
        raise ValueError(
            f"no two sentences of the subset {args.subset} have the same sequence of classes in "
            f"{whose}: take a larger --subset, such as train, or a model with fewer codes"
        )
    return pairs


def _text(loaded: Loaded, data: Any) -> list[str]:
    """The source sentences of a subset."""
    dictionary = loaded.dictionary("source")
    return [dictionary.string(data[i]["source"]) for i in range(len(data))]


def _from_text(loaded: Loaded, data: Any, text: str) -> dict[str, Any]:
    """The sample of a sentence that was typed, without a target unless the subset has it."""
    dictionary = loaded.dictionary("source")
    if not text.split():
        raise ValueError("--sentence: there is no word in it")
    words = [index(dictionary, word, "source") for word in text.split()]
    tokens = torch.tensor([*words, dictionary.eos()])
    for i in range(len(data)):
        if torch.equal(data[i]["source"], tokens):
            return data[i]
    return {"id": 0, "source": tokens, "target": None}


def _read(loaded: Loaded, example: Any, side: str, keys: int) -> tuple[list[str], list[str]]:
    """The tokens that attend and those that are attended to."""
    source = [loaded.dictionary("source")[int(token)] for token in example["source"]]
    if side == "encoder":
        return source, source
    target = [loaded.dictionary("target")[int(token)] for token in example["target"]]
    previous = [target[-1], *target[:-1]]  # what the decoder reads: the end first, as fairseq does
    if side == "decoder":
        return previous, previous
    return target, [START, *source][-keys:]


def _drawing(
    loaded: Loaded, examples: Sequence[Any], maps: Sequence[dict[str, Tensor]], side: str
) -> Any:
    """The picture of one kind of attention, or None where no sentence has it."""
    sentences = []
    for example, recorded in zip(examples, maps, strict=True):
        if side in recorded:
            weights = recorded[side][0].numpy()
            tokens = _read(loaded, example, side, weights.shape[-1])
            title = loaded.dictionary("source").string(example["source"])
            sentences.append(heatmaps.Sentence(title, weights, *tokens))
    if not sentences:
        return None
    title = SIDES[side]
    if len(sentences) == 2:
        a, b = (torch.from_numpy(s.weights)[None] for s in sentences)
        if a.shape != b.shape:
            if side == "encoder":
                raise ValueError(
                    f"{sentences[0].title!r} and {sentences[1].title!r} differ in length: only "
                    "sentences of the same number of tokens are drawn side by side"
                )
            return None
        rows = torch.ones(1, a.size(-2), dtype=torch.bool)
        rows[0, 0] = side != "decoder" or a.size(-2) == 1  # <s> counts where it is alone
        found = agreement.compare(a, b, rows).means()
        title += (
            f": mean KL divergence {found['kl']:.3g} nats, most weight on the same token in "
            f"{100 * found['same_token']:.1f}%\n"
            f"(outlined: weights that differ by more than {heatmaps.DIFFERENCE})"
        )
    return heatmaps.draw(sentences, title)


def _described(loaded: Loaded, example: Any, maps: dict[str, Tensor]) -> dict[str, Any]:
    """A drawn sentence's tokens and weights, for JSON."""
    described: dict[str, Any] = {}
    for side, weights in maps.items():
        queries, keys = _read(loaded, example, side, weights.size(-1))
        rounded = torch.round(weights[0].double(), decimals=6).tolist()
        described[side] = {"queries": queries, "keys": keys, "weights": rounded}
    return described


def _write(
    out: Path, args: argparse.Namespace, pairs: Sequence[Pair], found: dict[str, Agreement]
) -> Iterator[Path]:
    """Write what was measured."""
    summary = {side: {"pairs": len(one), **one.means()} for side, one in found.items()}
    report = {
        "checkpoint": args.checkpoint,
        "subset": args.subset,
        "pairs": len(pairs),
        "definitions": DEFINITIONS,
        "attention": summary,
    }
    yield write_json(out / "attention.json", report)
    rows = [{"attention": side, **head} for side, one in found.items() for head in one.heads()]
    yield write_csv(out / "attention.csv", rows)
