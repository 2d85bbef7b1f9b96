"""A tiny pre-training folder, and labelled sentences in their publishers' layouts."""

import gzip
import io
import json
import random
import tarfile
import zipfile
from pathlib import Path

TEXT = """anarchism is political philosophy that advocates self governed societies based on
voluntary institutions these are often described as stateless societies although several authors
have defined them more specifically as the film was good the film was bad"""
WORDS = sorted(set(TEXT.split()))


def pretrained(folder: Path) -> Path:
    """A dictionary and BPE codes, as the preparation of a pre-training text leaves them."""
    from subword_nmt.apply_bpe import BPE
    from subword_nmt.learn_bpe import learn_bpe

    folder.mkdir()
    codes = io.StringIO()
    learn_bpe(io.StringIO(TEXT), codes, 60)
    (folder / "code").write_text(codes.getvalue())
    bpe = BPE(io.StringIO(codes.getvalue()))
    letters = sorted(set(TEXT) - {" ", "\n"})
    types = {piece for word in TEXT.split() for piece in bpe.process_line(word).split()}
    types |= {letter + end for letter in letters for end in ("", "@@")}
    (folder / "dict.txt").write_text("".join(f"{name} 1\n" for name in sorted(types)))
    return folder


def sentences(number: int, seed: int) -> list[str]:
    """Random sentences of four to eight words."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(4, 8))) for _ in range(number)]


def pretraining(folder: Path) -> list[str]:
    """compgen-prepare's words after ``pretraining DEST``: a text, senses of every second word."""
    (folder / "lines").write_text("".join(f"{line}\n" for line in sentences(300, 1)))
    senses = [
        {"en_word": word, "Def": f"{{entity|{i}:a={{part{i % 5}|x}}}}"}
        for i, word in enumerate(WORDS[::2])
    ]
    (folder / "senses").write_text(json.dumps(senses))
    text = ["--text", folder / "lines", "--senses", folder / "senses", "--bpe-merges", 60]
    return list(map(str, text))


def pack(archive: Path, texts: dict[str, str]) -> Path:
    """Write a ``.zip`` or a tar archive; in the latter, members that end in ``.gz`` are gzip'ed."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as file:
            for name, text in texts.items():
                file.writestr(name, text)
        return archive
    with tarfile.open(archive, "w" if archive.suffix == ".tar" else "w:gz") as tar:
        for name, text in texts.items():
            data = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return archive


def swapped(number: int, seed: int, quote: bool = False) -> str:
    """A file of PAWS; the second sentence of a non-paraphrase has its first two words swapped."""
    lines = ["id\tsentence1\tsentence2\tlabel"]
    for index, one in enumerate(sentences(number, seed)):
        words = one.split()
        other = one if index % 2 else " ".join([words[1], words[0], *words[2:]])
        pair = [repr(text.encode()) for text in (one, other)] if quote else [one, other]
        lines.append("\t".join([str(index + 1), *pair, str(index % 2)]))
    return "".join(f"{line}\n" for line in lines)


def paws(folder: Path) -> Path:
    """PAWS: Wikipedia's archives, and PAWS-QQP as its program writes it."""
    (folder / "paws_qqp").mkdir(parents=True)
    final = {f"final/{name}.tsv": swapped(n, n) for name, n in (("train", 40), ("dev", 8))}
    final["final/test.tsv"] = swapped(6, 6)
    pack(folder / "paws_wiki_labeled_final.tar.gz", final)
    pack(folder / "paws_wiki_labeled_swap.tar.gz", {"swap/train.tsv": swapped(10, 10)})
    (folder / "paws_qqp" / "train.tsv").write_text(swapped(30, 30, quote=True))
    (folder / "paws_qqp" / "dev_and_test.tsv").write_text(swapped(5, 5, quote=True))
    return folder


def bird(folder: Path) -> Path:
    """BiRD, 12 pairs, of which 6 have the same words."""
    folder.mkdir(parents=True)
    lines = ["term1\tterm2\trelation\tscore"]
    for index, one in enumerate(sentences(12, 3)):
        first, second, third = one.split()[:3]
        other = f"{second} {first}" if index % 2 else f"{first} {third}s"
        lines.append(f"{first.title()} {second}\t{other}\tX\t{index / 12:.3f}")
    (folder / "BiRD.txt").write_text("".join(f"{line}\n" for line in lines))
    return folder


def sts_b(folder: Path) -> Path:
    """The STS benchmark; pairs of the sources images and MSRvid by turns."""
    folder.mkdir(parents=True)
    texts = {}
    for name, number in (("train", 24), ("dev", 6), ("test", 8)):
        lines = []
        for index, (one, other) in enumerate(
            zip(sentences(number, number), sentences(number, 99), strict=True)
        ):
            genre = ("images", "MSRvid")[index % 2]
            genre = "train-only" if (name, index) == ("train", 0) else genre
            more = "\tlicence" if index % 3 == 0 else ""
            score = f"{5 * index / number:.3f}"
            lines.append(f'main-captions\t{genre}\t2014\t{index}\t{score}\t"{one}\t{other}{more}\n')
        texts[f"stsbenchmark/sts-{name}.csv"] = "".join(lines)
    pack(folder / "Stsbenchmark.tar.gz", texts)
    return folder


def sst2(folder: Path) -> Path:
    """SST-2; what has "good" in it is positive."""
    folder.mkdir(parents=True)
    texts = {}
    for name, number in (("train", 60), ("dev", 10)):
        lines = ["sentence\tlabel\n"]
        for index, one in enumerate(sentences(number, number)):
            lines.append(f"{one} {('bad', 'good')[index % 2]} \t{index % 2}\n")
        texts[f"SST-2/{name}.tsv"] = "".join(lines)
    texts["SST-2/test.tsv"] = "index\tsentence\n0\tthe film was bad\n"
    pack(folder / "SST-2.zip", texts)
    return folder
