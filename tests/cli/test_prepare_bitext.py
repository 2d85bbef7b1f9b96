"""prepare/bitext.sh as a user runs it, on the example that ships."""

import pytest
from prepare_scripts import SCRIPTS, runner

EXAMPLE = SCRIPTS.parent / "examples" / "bitext"
bitext = runner("bitext")


def test_own_text_becomes_a_data_folder(tmp_path):
    own, dest = tmp_path / "own", tmp_path / "a,b c" / "data"
    own.mkdir()
    for part in ("train", "test"):
        for language in ("en", "de"):
            text = (EXAMPLE / f"{part}.{language}").read_text()
            (own / f"{part}.{language}").write_text(text)
    files = {part: [own / f"{part}.{side}" for side in ("en", "de")] for part in ("train", "test")}
    more = ["--valid", 8, "--bpe-merges", 0, "--lowercase", "--joined-dictionary"]
    command = [dest, "--train", *files["train"], "--test", *files["test"], *more]
    done = bitext(*command)
    assert "52 train, 8 valid, 20 test pairs" in done.stdout and "left out" not in done.stdout
    assert (dest / "dict.en.txt").read_bytes() == (dest / "dict.de.txt").read_bytes()
    lines = (dest / "raw" / "test.de").read_text().splitlines()
    assert lines[0] == "das faule pferd mag das stille kind heute ."
    assert "is already prepared" in bitext(*command).stdout
    folder = bitext(dest, "--from", own, "--languages", "en", "de", *more)
    assert "is already prepared" in folder.stdout
    files["test"][0].write_text(files["test"][0].read_text().replace("horse", "dog"))
    done = bitext(*command, status=1)
    assert "was prepared before its inputs changed" in done.stderr


@pytest.mark.parametrize(
    ("model", "flags"),
    [
        ("code", ["--bpe-merges", 60, "--joined-dictionary"]),
        ("sentencepiece.model", ["--bpe-merges", 60, "--sentencepiece"]),
        (None, ["--bpe-merges", 0]),
    ],
)
def test_text_for_a_model_that_is_there(model, flags, tmp_path):
    """The second corpus is the first one's test set: the same lines in the same subwords."""
    first, second = tmp_path / "first", tmp_path / "second"
    bitext(first, "--from", EXAMPLE, "--languages", "en", "de", "--valid", 8, *flags)
    own = ["--train", EXAMPLE / "test.en", EXAMPLE / "test.de", "--valid", 4, "--test", 4]
    own += ["--max-words", 0, "--pretrained", first]
    bitext(second, *own)
    for side in ("en", "de"):
        name = f"dict.{side}.txt"
        assert (second / name).read_bytes() == (first / name).read_bytes()
        lines = [(second / f"raw/{part}.{side}").read_text() for part in ("train", "valid", "test")]
        expected = (first / f"raw/test.{side}").read_text().splitlines()
        assert sorted("".join(lines).splitlines()) == sorted(expected)
    assert "is already prepared" in bitext(second, *own).stdout
    if model:
        assert (second / model).read_bytes() == (first / model).read_bytes()
        (first / model).write_text("neither\n")
        done = bitext(second, *own, status=1)
        assert "with other settings (--pretrained " in done.stderr and ";" in done.stderr
        done = bitext(tmp_path / "x", *own, status=1)
        assert f"{first / model} does not hold" in done.stderr or "is not a Sent" in done.stderr
    else:
        done = bitext(tmp_path / "x", *own, "--bpe-merges=10000", status=2)
        assert "--pretrained decides the subwords: leave out --bpe-merges" in done.stderr
        assert "without --lowercase" in bitext(tmp_path / "x", *own, "--lowercase", status=1).stderr
        (first / "dict.de.txt").write_text("neither\n")
        assert "dict.de.txt is not a fairseq" in bitext(tmp_path / "x", *own, status=1).stderr
        (first / "dict.de.txt").unlink()
        assert "dict.de.txt: No such file" in bitext(tmp_path / "x", *own, status=1).stderr
    assert not (tmp_path / "x").exists()


def test_pairs_that_are_left_out_are_counted(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a b\tx\n" + "".join(f"w{i}\tx\n" for i in range(9)))
    long = 1024 * "c "
    (tmp_path / "valid.tsv").write_text(f"c d\tx\nw10\t\n{long}\tx\n")  # stays as it is
    flags = ["--languages", "en", "lf", "--valid", tmp_path / "valid.tsv", "--test", 1]
    flags += ["--train", tmp_path / "pairs.tsv", "--bpe-merges", 0]
    done = bitext(tmp_path / "data", *flags)
    held_out = "a b" in (tmp_path / "data" / "raw" / "test.en").read_text()
    assert not held_out, "choose other sentences"
    assert "1 of 9 training pairs are left out: a side is empty, has a word of" in done.stdout
    assert "8 train, 3 valid, 1 test pairs" in done.stdout
    assert "valid: of 2 pairs a side is empty or has more than 1,023 words, the" in done.stdout
    assert "(first in line 2)\n" in done.stdout and "test: of" not in done.stdout


def test_symbols_of_fairseq_are_no_words(tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"w{i} </s>\tx\n" for i in range(9)))
    flags = ["--languages", "en", "lf", "--valid", 1, "--test", 1, "--bpe-merges", 0, "--tokenized"]
    done = bitext(tmp_path / "data", "--train", tmp_path / "pairs.tsv", *flags, status=1)
    assert "has the word </s>, a symbol of" in done.stderr


def test_cases_of_the_test_set(tmp_path):
    own = ["--from", EXAMPLE, "--languages", "en", "de", "--valid", 8, "--bpe-merges", 0]
    (tmp_path / "cases").write_text("old\nnew\n" * 10)
    own += ["--cases", tmp_path / "cases"]
    bitext(tmp_path / "data", *own)
    assert (tmp_path / "data/cases/test.case").read_text() == "old\nnew\n" * 10
    assert "is already prepared" in bitext(tmp_path / "data", *own).stdout
    (tmp_path / "cases").write_text("old\n")
    done = bitext(tmp_path / "other", *own, status=1)
    assert "cases: it has 1 lines, for 20 sentences" in done.stderr
    (tmp_path / "cases").write_text("old\n" * 19 + "cp_recursion\n")  # fails before the training
    done = bitext(tmp_path / "other", *own, status=1)
    assert "line 1: 'old' is not a generalization case of COGS" in done.stderr
    assert "needs the files" in bitext(tmp_path / "other", *own, "--test", 2, status=1).stderr
    assert not (tmp_path / "other").exists()


def test_compounds_of_the_test_set(tmp_path):
    """They are found in what pieces make; one that is not in its sentence is refused."""
    rules = ["--lexicon", EXAMPLE / "lexicon", "--compound", EXAMPLE / "test.compound"]
    own = ["--from", EXAMPLE, "--languages", "en", "de", "--valid", 8]
    data, pieces = tmp_path / "data", [*own, "--sentencepiece", "--bpe-merges", 60]
    bitext(data, *pieces, *rules)
    for name in ("lexicon", "test.compound"):
        assert (data / "cter" / name).read_text() == (EXAMPLE / name).read_text()
    assert "is already prepared" in bitext(data, *pieces, *rules).stdout
    (tmp_path / "compound").write_text("old doctor\n" * 5)
    other = [*rules[:2], "--compound", tmp_path / "compound"]
    done = bitext(tmp_path / "x", *own, "--bpe-merges", 0, *other, status=1)
    assert "compound has 5 lines, the test set 20 sentences" in done.stderr
    (tmp_path / "compound").write_text("old doctor\n" * 20)
    done = bitext(tmp_path / "x", *own, "--bpe-merges", 0, *other, status=1)
    assert "'old doctor' is not in the source" in done.stderr
    assert not (tmp_path / "x").exists()
