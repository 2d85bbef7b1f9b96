"""Every model refuses a dictionary of the right size with other words."""

import pytest
import torch
from random_batches import dictionary_of as of

from compgen_fairseq.models.known_dictionary import KnownDictionary, fingerprint


def test_the_fingerprint_tells_types_and_their_order_apart():
    numbers = [fingerprint(d) for d in (of("a", "b"), of("b", "a"), of("ab"), of("a", "b"))]
    assert len(set(numbers)) == 3 and numbers[0] == numbers[3]
    assert min(numbers) >= 0 and max(numbers) < 2**48, "an average of checkpoints sums them"


def model(*tokens: str) -> torch.nn.Module:
    whole = torch.nn.Module()
    whole.encoder = torch.nn.Module()
    whole.encoder.known_dictionary = KnownDictionary(of(*tokens))
    return whole


def test_other_dictionaries_are_refused():
    state = model("a", "b").state_dict()
    model("a", "b").load_state_dict(state)
    for other in (model("b", "a"), model("a", "b", "c")):
        with pytest.raises(ValueError, match="the checkpoint's encoder was trained with a dict"):
            other.load_state_dict(state)
    model("a", "b").load_state_dict({})  # of a plain Transformer
