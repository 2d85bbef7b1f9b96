"""Pairs of segments: which follow each other, what is masked, what is drawn."""

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.iterators import EpochBatchIterator
from random_batches import dictionary_of

from compgen.data.sememes import Annotations
from compgen_fairseq.data.sentence_pairs import Segments, SentencePairDataset
from compgen_fairseq.data.word_sememes import WordSememes


def make_dictionary(words: int) -> Dictionary:
    return dictionary_of(*(f"w{word}" for word in range(words)), "<mask>")


def sentences(documents: Sequence[Sequence[int]], first: int = 4) -> list[torch.Tensor]:
    """Sentences of so many subwords, every subword of the text another one."""
    made = []
    for lengths in documents:
        for length in lengths:
            made.append(torch.tensor([*range(first, first + length), 2]))
            first += length
        made.append(torch.tensor([2]))
    return made


def make(
    documents: Sequence[Sequence[int]], annotations: Annotations | None = None, **options: object
) -> SentencePairDataset:
    text = sentences(documents)
    dictionary = make_dictionary(sum(map(sum, documents)))
    words = WordSememes(annotations or Annotations([], {}), dictionary)
    sizes = [len(sentence) for sentence in text]
    return SentencePairDataset(text, sizes, dictionary, words, **options)  # type: ignore[arg-type]


def whole(item: dict) -> list[int]:
    """The pair before masking."""
    return torch.where(item["target"] != 1, item["target"], item["source"]).tolist()


def parts(item: dict) -> tuple[list[int], list[int]]:
    tokens = whole(item)
    middle = tokens.index(2)
    assert tokens[0] == 0 and tokens[-1] == 2 and tokens.count(2) == 2
    return tokens[1:middle], tokens[middle + 1 : -1]


@pytest.mark.parametrize(
    ("documents", "warning"),
    [
        (3 * [(4, 4, 4, 4)], ""),  # a segment is one sentence: three of four are followed
        (4 * [(4, 4, 4)], "b follows a in only 33% of the pairs"),
    ],
)
def test_short_documents_are_warned_of(documents, warning, caplog) -> None:
    make(documents, max_tokens=13)
    assert warning in caplog.text and bool(caplog.text) == bool(warning)


def test_segments_are_whole_sentences_of_one_document() -> None:
    text = sentences([(4, 4, 3), (12,), (), (5,)])
    segments = Segments(text, [len(s) for s in text], 8)
    words = WordSememes(Annotations([], {}), make_dictionary(28))
    found = [segments.read(i, words)[0].tolist() for i in range(len(segments))]
    expected = [(4, 12), (12, 15), (15, 21), (21, 27), (27, 32)]
    assert found == [list(range(*span)) for span in expected]
    assert segments.begin.tolist() == [0, 2, 4, 5]
    assert segments.document.tolist() == [0, 0, 1, 1, 2]
    assert [segments.followed(i) for i in range(5)] == [True, False, True, False, False]


def test_segments_of_a_large_text_fit_into_memory() -> None:
    sizes = np.full(100_000, 40)
    tracemalloc.start()
    number = len(Segments([], sizes, 62))  # type: ignore[arg-type]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert number == 100_000 and peak < 100 * number, f"{peak / number:.0f} bytes a segment"


DOCUMENTS = [(10, 10, 10, 10)] * 30


def test_a_worker_that_fetches_for_all_epochs_draws_anew_in_each() -> None:
    dataset = make(DOCUMENTS, max_tokens=24)
    batches = [np.arange(4), np.arange(4, 8)]
    workers = {"num_workers": 1, "reuse_dataloader": True}  # as fairseq's tasks have it
    iterator = EpochBatchIterator(dataset, dataset.collater, batches, **workers)
    for epoch in (1, 2):
        for batch in iterator.next_epoch_itr(shuffle=False):
            drawn = dataset.collater([dataset[int(index)] for index in batch["id"]])
            assert torch.equal(batch["net_input"]["src_tokens"], drawn["net_input"]["src_tokens"])
        assert iterator.epoch == epoch


def test_b_follows_a_in_half_of_the_pairs_and_is_of_another_document_in_the_others() -> None:
    dataset = make(DOCUMENTS, max_tokens=24)
    follows = []
    for epoch in (1, 2, 3):
        dataset.set_epoch(epoch)
        for index in range(len(dataset)):
            item = dataset[index]
            a, b = parts(item)
            (of_a,), (of_b,) = ({(token - 4) // 40 for token in part} for part in (a, b))
            assert (a[-1] - 4) // 10 == index
            assert item["next_sentence"] == (b[0] == a[-1] + 1)
            assert item["next_sentence"] == (of_a == of_b)
            if index % 4 != 3:  # the last of a document has none to follow
                follows.append(item["next_sentence"])
    assert 0.4 < sum(follows) / len(follows) < 0.6


def test_a_text_of_one_document_has_random_pairs_too() -> None:
    dataset = make([(10,) * 12], max_tokens=24)
    labels = set()
    for index in range(len(dataset)):
        item = dataset[index]
        a, b = parts(item)
        assert item["next_sentence"] == (b[0] == a[-1] + 1)
        assert (b[0] - 4) // 10 != index
        labels.add(item["next_sentence"])
    assert labels == {0, 1}


def test_what_is_drawn_depends_on_seed_epoch_and_index_alone() -> None:
    def items(seed: int, epoch: int) -> list[list[int]]:
        dataset = make(DOCUMENTS, max_tokens=24, seed=seed)
        dataset.set_epoch(epoch)
        np.random.seed(epoch)
        torch.manual_seed(epoch)
        return [dataset[index]["source"].tolist() for index in (5, 0, 5)]

    first = items(1, 2)
    assert first[0] == first[2]
    assert items(1, 2) == first
    assert items(1, 1)[0] != first[0]
    assert items(2, 2)[0] != first[0]
    order, again = (make(DOCUMENTS, seed=1).ordered_indices().tolist() for _ in range(2))
    assert order == again != list(range(120))
    uneven = make([(9, 3, 9), (8, 2)], max_tokens=21)
    assert uneven.sizes[uneven.ordered_indices()].tolist() == sorted(uneven.sizes)


def test_masks() -> None:
    dataset = make([(60, 60)] * 40, max_tokens=126)
    mask = 4 + 4800
    fates = np.zeros(3)
    subwords = 0
    for index in range(len(dataset)):
        item = dataset[index]
        words = len(item["source"]) - 3
        subwords += words
        chosen = item["target"].ne(1)
        assert 0 < chosen.sum() <= 0.15 * words + 1
        source, target = item["source"][chosen], item["target"][chosen]
        assert target.ge(4).all() and target.lt(mask).all() and source.ge(4).all()
        masked, kept = source.eq(mask), source.eq(target)
        fates += [int(fate.sum()) for fate in (masked, kept, ~masked & ~kept)]
    assert fates.sum() / subwords == pytest.approx(0.15, abs=0.01)
    assert fates / fates.sum() == pytest.approx([0.8, 0.1, 0.1], abs=0.03)


def test_some_pairs_are_short_and_none_is_longer_than_its_size() -> None:
    dataset = make([(20, 20)] * 100, max_tokens=43)
    lengths = [len(dataset[index]["source"]) for index in range(len(dataset))]
    assert all(length <= size <= 43 for length, size in zip(lengths, dataset.sizes, strict=True))
    short = [length for length in lengths if length < 43]
    assert 0.05 < len(short) / len(lengths) < 0.15
    item = dataset[lengths.index(min(lengths))]
    a, b = parts(item)
    assert a[-1] == 20 * item["id"] + 23, "a pair is shortened at its outer ends"
    assert (b[0] - 4) % 20 == 0


def test_annotations_are_those_of_the_unmasked_words() -> None:
    annotations = Annotations(["a|甲", "b|乙"], {"w3": (0,), "w17": (0, 1)})
    dataset = make(DOCUMENTS, annotations, max_tokens=24)
    rows = {dataset._dictionary.index("w3"): 0, dataset._dictionary.index("w17"): 1}
    seen = set()
    for index in (0, 1, 4):
        item = dataset[index]
        expected = [rows.get(token, -1) for token in whole(item)]
        assert item["rows"].tolist() == expected
        seen |= set(expected)
    assert seen == {-1, 0, 1}


def test_word_ids() -> None:
    dictionary = dictionary_of("wa@@", "ter", "dog", "<mask>")
    words = WordSememes(Annotations(["a|甲"], {"water": (0,)}), dictionary)
    text = [torch.tensor([6, 4, 5, 6, 2])] * 6
    dataset = SentencePairDataset(
        text, [5] * 6, dictionary, words, max_tokens=11, word_ids=True, mask_prob=0.01
    )
    batch = dataset.collater([dataset[index] for index in range(6)])
    longest = batch["net_input"]["src_lengths"].argmax()
    assert batch["net_input"]["words"][longest].tolist() == [0, 1, 2, 2, 3, 4, 5, 6, 6, 7, 8]
    assert batch["rows"][longest].tolist() == [-1, -1, 0, -1, -1, -1, 0, -1, -1]
    assert batch["target"].ne(1).any(1).all(), "a pair has something to predict"


def test_a_word_that_is_cut_through_is_no_part_of_a_special_tokens_word() -> None:
    dictionary = dictionary_of("wa@@", "ter", "<mask>")
    words = WordSememes(Annotations([], {}), dictionary)
    text = [torch.tensor([4, 5, 4, 5, 4, 5, 2])] * 2
    dataset = SentencePairDataset(text, [7] * 2, dictionary, words, max_tokens=9, word_ids=True)
    for index in range(4):  # segments of three subwords each, every second begins within a word
        item = dataset[index]
        special = item["words"][torch.tensor(whole(item)) < 3]
        assert [item["words"].eq(word).sum() for word in special] == [1, 1, 1]


def test_batch() -> None:
    dataset = make([(3, 9), (8, 8)], max_tokens=21)
    samples = [dataset[index] for index in range(4)]
    batch = dataset.collater(samples)
    assert batch["net_input"]["src_tokens"].shape == batch["target"].shape == batch["rows"].shape
    assert batch["next_sentence"].tolist() == [sample["next_sentence"] for sample in samples]
    assert batch["ntokens"] == sum(len(sample["source"]) for sample in samples)
    assert batch["net_input"]["src_tokens"].ne(1).sum() == batch["ntokens"]
    assert batch["nsentences"] == 4


def test_a_text_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="2 segments of text are too few"):
        make([(100,), (100,)], max_tokens=300)
