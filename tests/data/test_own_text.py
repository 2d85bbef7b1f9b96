"""Text of one's own: every kind of file comes to the same pairs, and bad input is named."""

import gzip
import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from compgen.data import own_text

EXAMPLE = Path(__file__).parents[2] / "examples" / "bitext"
TRAIN = [EXAMPLE / "train.en", EXAMPLE / "train.de"]
TEST = [EXAMPLE / "test.en", EXAMPLE / "test.de"]
PAIRS = list(zip(*(path.read_text().splitlines() for path in TRAIN), strict=True))


def written(files, held_out, folder, **options):
    own_text.write_text(files, held_out, ("en", "de"), folder, **options)
    return {path.name: path.read_text().splitlines() for path in folder.iterdir()}


def test_text_and_tables_come_to_the_same(tmp_path):
    tsv, jsonl = tmp_path / "train.tsv.gz", tmp_path / "train.jsonl"
    tsv.write_bytes(gzip.compress("".join(f"{en}\t{de}\n" for en, de in PAIRS).encode()))
    nested = [{"translation": {"de": de, "en": en}} for en, de in PAIRS[:30]]
    flat = [{"en": en, "de": de} for en, de in PAIRS[30:]]
    jsonl.write_text("".join(json.dumps(pair) + "\n" for pair in nested + flat))
    made = [
        written({"train": train, "test": TEST}, {"valid": 8}, tmp_path / str(i))
        for i, train in enumerate((TRAIN, [tsv], [jsonl]))
    ]
    assert made[0] == made[1] == made[2]
    assert made[0]["test.de"] == TEST[1].read_text().splitlines()


def test_held_out_sentences_are_in_no_other_part(tmp_path, monkeypatch):
    doubled = tmp_path / "pairs.tsv"
    untranslated = "".join(f"{en}\t\n" for en, _ in PAIRS)
    text = "".join(f"{en}\t{de}\n" for en, de in 2 * PAIRS)
    doubled.write_text(f"{untranslated}{text}\tleer\nempty\t\n")
    arguments = {"train": [doubled]}, {"valid": 8, "test": 9}
    made = written(*arguments, tmp_path / "made")
    monkeypatch.setattr(own_text, "AT_ONCE", 5)
    assert written(*arguments, tmp_path / "piecemeal") == made
    parts = [made[f"{part}.en"] for part in ("train", "valid", "test")]
    assert [len(part) for part in parts] == [3 * (60 - 8 - 9) + 2, 8, 9]
    assert not set(parts[0]) & set(parts[1]) and not set(parts[1]) & set(parts[2])
    assert not set(parts[0]) & set(parts[2]) and "" not in parts[1] + parts[2]
    assert dict(zip(made["test.en"], made["test.de"], strict=True)).items() <= dict(PAIRS).items()


@pytest.mark.parametrize(
    ("variants", "options"),
    [
        (("Hello {}", "hello {}"), {"lowercase": True}),
        (("word{} a", "word{}  a", "word{} \u00a0a"), {}),
        (("word{}.", "word{} ."), {}),
        (("word{} & a", "word{} &amp; a"), {}),
        (("word{} a²", "word{} a2"), {}),
    ],
)
def test_what_comes_to_one_sentence_is_in_one_part(variants, options, tmp_path):
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"{text.format(i)}\tx\n" for i in range(6) for text in variants))
    made = written({"train": [table]}, {"valid": 2, "test": 2}, tmp_path / "made", **options)
    lines = [made[f"{part}.en"] for part in ("train", "valid", "test")]
    parts = [[next(filter(str.isdigit, line)) for line in part] for part in lines]
    assert [len(part) for part in parts] == [2 * len(variants), 2, 2]
    assert len(set().union(*parts)) == sum(len(set(part)) for part in parts) == 6


def test_a_table_may_begin_with_its_languages(tmp_path):
    table = tmp_path / "pairs.tsv"
    table.write_bytes(b"en\tde \r\n" + "".join(f"{en}\t{de}\n" for en, de in PAIRS).encode())
    made = written({"train": [table]}, {"valid": 1, "test": 1}, tmp_path / "made")
    assert sum(len(made[f"{part}.en"]) for part in ("train", "valid", "test")) == len(PAIRS)
    table.write_text("de\ten\nb\ta\n")
    with pytest.raises(ValueError, match=r"pairs\.tsv: its columns are de and en: source first"):
        written({"train": [table]}, {"valid": 1, "test": 1}, tmp_path / "other")


@pytest.mark.parametrize(
    ("name", "line", "wanted"),
    [
        ("a.tsv", "the cat", "two cells"),
        ("a.tsv", "a\tb\tc", "two cells"),
        ("a.jsonl", '{"en": "a"}', "a text for en and de"),
        ("a.jsonl", '{"en": "a", "de": 1}', "a text for en and de"),
        ("a.jsonl", '{"translation": 3}', "a text for en and de"),
        ("a.jsonl", "{", "a text for en and de"),
        ("a.jsonl", '{"en": "\\ud83d", "de": "a"}', "a text for en and de"),
    ],
)
def test_a_bad_line_is_named(name, line, wanted, tmp_path):
    table = tmp_path / name
    good = "a\tb" if table.suffix == ".tsv" else '{"en": "a", "de": "b"}'
    table.write_text(f"{good}\n{line}\n")
    with pytest.raises(ValueError, match=f"{name}, line 2: it is not .*{wanted}"):
        written({"train": [table]}, {"valid": 1, "test": 1}, tmp_path / "made")


def test_text_with_capitals_for_a_model_without(tmp_path):
    """A folder of a published corpus does not say whether it was lowercased; its words do."""
    paths = [tmp_path / f"dict.{side}.txt" for side in ("en", "de")]
    args = SimpleNamespace(
        pretrained=tmp_path, dictionaries=paths, lowercase=False, tokenized=False
    )
    for words, refused in ((("a", "ein"), True), (("a", "Ein"), False), (("狗", "犬"), False)):
        for path, word in zip(paths, words, strict=True):
            path.write_text(f"{word} 1\n")
        with pytest.raises(ValueError, match="no capitals") if refused else nullcontext():
            own_text._same_text(args)
    (tmp_path / "PREPARED.json").write_text("[]")
    with pytest.raises(ValueError, match=r"PREPARED\.json does not say how its text"):
        own_text._same_text(args)
