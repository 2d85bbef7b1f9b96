"""BLEU is sacreBLEU's, on sentences that were put back into plain text."""

import pytest
from sacrebleu import corpus_bleu, corpus_chrf

from compgen.scoring.bleu import BleuOptions, bleu, plain_text

CHINESE = BleuOptions(tokenize="zh", detokenize="chinese")
GERMAN, FRENCH = (BleuOptions(detokenize="moses", language=name) for name in ("de", "fr"))
SUBWORDS = BleuOptions(detokenize="subwords")
MOSES = "E @-@ Mail @-@ Te@@ st , &quot; gut &quot; &amp; l&apos; amour ."
REFERENCES = ["狗把他自己的车给了他。", "突然那只狗把吉他摔了下来。"]


@pytest.mark.parametrize(
    ("options", "text", "plain"),
    [
        (CHINESE, "狗 把 吉@@ 他 给 了 他 。", "狗把吉他给了他。"),
        (CHINESE, "a@@ b c@@", "abc"),
        (GERMAN, MOSES, 'E-Mail-Test, "gut" & l\' amour.'),
        (GERMAN, "▁Ein ▁kl einer ▁H und .", "Ein kleiner Hund."),
        (FRENCH, MOSES, 'E-Mail-Test, "gut" & l\'amour.'),
        (SUBWORDS, "▁Ein ▁kl einer ▁H und ▁.", "Ein kleiner Hund ."),
        (SUBWORDS, "a@@ b  c", "ab  c"),
        (BleuOptions(), "ab  c", "ab  c"),
    ],
)
def test_sentences_become_plain_text(options, text, plain):
    assert plain_text([text, ""], options) == [plain, ""]


def test_subwords_are_refused_where_nothing_joins_them():
    for text in ("a@@ b  c", "▁a b"):
        with pytest.raises(ValueError, match="are in subwords: decode with --remove-bpe"):
            plain_text(["a b", text], BleuOptions())


def test_chinese_segmentation_does_not_count():
    whole = ["狗把他自己的车给他了。", "那只狗突然把吉他摔了。"]
    segmented = ["狗 把 他@@ 自己 的 车 给 他 了 。", "那只 狗 突然 把 吉他 摔@@ 了 。"]
    expected = corpus_bleu(whole, [REFERENCES], tokenize="zh")
    score, signature = bleu(segmented, REFERENCES, CHINESE)
    assert 20 < score.score < 80
    assert score.score == expected.score and score.counts == expected.counts
    assert signature.startswith("detok:chinese|n:2|nrefs:1|case:mixed|eff:no|tok:zh|smooth:exp|")


def test_case_and_tokenizer_count():
    hypotheses, references = ["THE dog , he liked it"], ["the dog, he liked it"]
    ways = BleuOptions(), BleuOptions(lowercase=True), BleuOptions("none", lowercase=True)
    mixed, lower, none = (bleu(hypotheses, references, options)[0].score for options in ways)
    assert mixed < lower == pytest.approx(100) and none < 100


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ValueError, match="2 hypotheses cannot be compared with 1 references"):
        bleu(["a", "b"], ["a"], BleuOptions())
    with pytest.raises(ValueError, match="no sentences"):
        bleu([], [], BleuOptions())
    with pytest.raises(ValueError, match="14a is none of 13a, zh"):
        BleuOptions(tokenize="14a")


def test_chrf_is_sacrebleus():
    hypotheses, references = ["der alte Hund schläft", "ein Haus"], ["der alte Hund", "das Haus"]
    score, stamp = bleu(hypotheses, references, BleuOptions(score="chrf"))
    assert score.score == corpus_chrf(hypotheses, [references]).score
    assert stamp.startswith("detok:none|n:2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|")


def test_chrf_can_be_counted_without_case():
    ways = (BleuOptions(score="chrf", lowercase=lower) for lower in (False, True))
    mixed, lower = (bleu(["THE dog"], ["the dog"], options)[0].score for options in ways)
    assert mixed < lower == pytest.approx(100)
