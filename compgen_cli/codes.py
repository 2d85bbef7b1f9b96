"""``compgen-codes``: the words of each code of an SQ-Transformer checkpoint."""

import json
import logging
import sys

from compgen.errors import command
from compgen_cli.parser import Parser


def words_per_code(model) -> dict[str, list[list[str]]]:
    """The words of each code, most frequent first, on both sides.

    Args:
        model: an SQ-Transformer with codes.

    Returns:
        ``{"source": [[word, ...], ...], "target": ...}``, one list per code.

    Raises:
        ValueError: if the model has no codes.
    """
    clusters = {}
    for name, side in (("source", model.encoder), ("target", model.decoder)):
        stack, dictionary = side.stack, side.dictionary
        if stack.quantizer is None:
            raise ValueError("this model has no codes: it was trained with --quantizer none")
        codes = stack.type_codes()
        groups: list[list[str]] = [[] for _ in range(stack.quantizer.num_codes)]
        special = {dictionary.pad(), dictionary.unk(), dictionary.bos()}
        for index, code in enumerate(codes.tolist()):
            if index not in special:
                groups[code].append(dictionary[index])
        clusters[name] = groups
    return clusters


@command("compgen-codes")
def main(argv: list[str] | None = None) -> int:
    """Print the words of each code as text or JSON, or the codes of some words."""
    parser = Parser(prog="compgen-codes", description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("data", help="the fairseq-preprocess'ed folder with the dictionaries")
    parser.add_argument("words", nargs="*", help="only the codes of these, each on a line")
    parser.add_argument("--json", action="store_true", help="print JSON, of all words")
    args = parser.parse_args(argv)
    if args.json and args.words:
        parser.error("--json prints all words: give WORDS or --json")

    from compgen_fairseq.analysis.checkpoint import load

    logging.getLogger("fairseq").setLevel(logging.WARNING)
    model = load(args.checkpoint, args.data, cpu=True).model
    if not hasattr(model.encoder, "stack"):
        raise ValueError(f"{args.checkpoint} holds no sq_transformer model")
    clusters = words_per_code(model)
    if args.json:
        print(json.dumps(clusters, ensure_ascii=False, indent=1))
        return 0
    rows = [
        (name, code, words)
        for name, groups in clusters.items()
        for code, words in enumerate(groups)
    ]
    if unknown := sorted(set(args.words).difference(*(words for *_, words in rows))):
        raise ValueError(f"{args.data} has no word {unknown[0]!r}")
    for word in args.words or [None]:
        for name, code, words in rows:
            if word is None or word in words:
                cells = [name, str(code), " ".join(words)]
                print(*([word] if word else []), *cells, sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
