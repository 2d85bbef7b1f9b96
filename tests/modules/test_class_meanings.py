"""Which of its class a target word is, by hand."""

import pytest
import torch

from compgen_fairseq.modules.class_meanings import ClassMeanings, class_means

# classes of the source {3, 4} and {5}, of the target {1, 2}, which the first exchanges, {0} and {3}
KINDS, CLASSES = torch.tensor([0, 1, 2, 3, 3, 5]), torch.tensor([0, 1, 1, 1])
OWNERS = torch.tensor([-1, 3, 3, -1])


@pytest.fixture
def meanings(request):
    """A source word of embedding ``x`` says ``x`` times a target embedding; by default 1 wide."""
    module = ClassMeanings(getattr(request, "param", 1), len(KINDS), len(CLASSES))
    for linear in (module.query, module.key, module.say):
        torch.nn.init.eye_(linear.weight)
    module.assign(KINDS, CLASSES, OWNERS)
    return module


def decide(module, tokens, words, logits, keys=None, embeddings=(10.0, 1.0, -1.0, 7.0)):
    """One step of one sentence; vectors have one number that is not 0, and scores are the keys."""
    places, one = len(tokens), torch.eye(1, module.query.in_features)
    return module(
        torch.tensor([[logits]]),
        torch.tensor(embeddings).view(4, 1) * one,
        one.view(1, 1, -1) * one.numel() ** 0.5,
        torch.tensor(keys or [0.0] * places).view(1, places, 1) * one,
        torch.zeros(1, 1, 1, places),
        torch.tensor(words).view(1, places, 1) * one,
        torch.tensor([tokens]),
    )[0, 0].tolist()


def test_the_class_alone_tells_its_words_apart(meanings):
    """The mean of 5 and 1 stays; 3 says 2 and -2, and 5, which is of another class, nothing."""
    assert meanings.classes.tolist() == [0, 1, 1, 3]  # a class without an owner is none
    logits = [4.0, 5.0, 1.0, 9.0]
    assert decide(meanings, [3, 5], [2.0, 50.0], logits) == pytest.approx([4, 5, 1, 9])
    assert decide(meanings, [4, 5], [-3.0, 50.0], logits) == pytest.approx([4, 0, 6, 9])
    assert decide(meanings, [4, 5], [-3.0, 0.0], [4.0, 0.0, 6.0, 9.0])[1:3] == pytest.approx([0, 6])
    assert decide(meanings, [5, 5], [2.0, 50.0], logits) == pytest.approx([4, 3, 3, 9])
    # the mean stays also where 3 says 2 and 6
    said = decide(meanings, [3, 5], [2.0, 50.0], logits, embeddings=(10.0, 1.0, 3.0, 7.0))
    assert said == pytest.approx([4, 1, 5, 9])


@pytest.mark.parametrize("meanings", [1, 4], indirect=True)
def test_attention_chooses_among_the_words_of_the_class(meanings):
    """Keys of log 3 and 0 give 3/4 and 1/4 of their share, whatever attention goes elsewhere."""
    keys = [float(torch.tensor(3.0).log()), 0.0, 6.0]
    assert decide(meanings, [3, 4, 5], [2.0, -2.0, 50.0], [0.0] * 4, keys) == pytest.approx(
        [0, 1, -1, 0], abs=1e-5
    )


def test_a_class_that_attention_has_lost_says_nothing_infinite(meanings):
    said = decide(meanings, [3, 5], [2.0, 1.0], [0.0] * 4, [0.0, 500.0])
    assert all(abs(x) <= 2 for x in said)


def test_a_sentence_without_the_class_has_finite_gradients_when_the_loss_is_scaled(meanings):
    """As by --fp16 and --amp, which begin at 128: they skip updates until none overflows."""
    logits = torch.zeros(1, 1, 4, requires_grad=True)
    words = torch.ones(1, 2, 1, requires_grad=True)
    places = [torch.ones(1, n, 1) for n in (1, 2)]
    weight, mask, tokens = torch.ones(4, 1), torch.zeros(1, 1, 1, 2), torch.tensor([[5, 5]])
    meanings(logits, weight, *places, mask, words, tokens)[..., 1].sum().mul(2**16).backward()
    assert words.grad.eq(0).all() and logits.grad.tolist() == [[[0, 2**15, 2**15, 0]]]


def test_little_attention_chooses_as_much_does_under_autocast(meanings):
    with torch.autocast("cpu", torch.float16):
        said = decide(meanings, [3, 4, 5], [2.0, 2.0, 1.0], [0.0] * 4, [0.0, 0.0, 15.0])
    assert said == pytest.approx([0, 2, -2, 0])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_class_means(dim):
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
    means = class_means(x, torch.tensor([0, 1, 1, 3]), dim)
    y, means = (x, means) if dim == 0 else (x.t(), means.t())
    assert torch.equal(means[[0, 3]], y[[0, 3]])
    torch.testing.assert_close(means[1:3], y[1:3].mean(0).expand(2, 4))
