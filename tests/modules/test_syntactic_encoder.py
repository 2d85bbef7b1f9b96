"""The frame of a sentence, padding without effect, neighbours, and the ends' own roles."""

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from compgen_fairseq.modules.syntactic_encoder import (
    BidirectionalLSTM,
    SyntacticEncoder,
    frame,
    neighbour_states,
)

PAD, START = 1, 0
LENGTHS = torch.tensor([3, 5, 1, 4])


@pytest.mark.parametrize(
    "tokens",
    [
        [[5, 6, 2], [7, 2, PAD], [2, PAD, PAD]],
        [[5, 6, 2], [PAD, 7, 2], [PAD, PAD, 2]],
    ],
)
def test_frame_puts_the_marker_first_and_padding_last(tokens):
    tokens = torch.tensor(tokens)
    framed, lengths, positions = frame(tokens, PAD, START)
    assert framed.tolist() == [[0, 5, 6, 2], [0, 7, 2, PAD], [0, 2, PAD, PAD]]
    assert lengths.tolist() == [4, 3, 2]
    keep = tokens.ne(PAD)
    assert torch.equal(framed.gather(1, positions)[keep], tokens[keep])


def sentences(dim: int) -> torch.Tensor:
    """Random sentences of ``LENGTHS`` with noise for padding."""
    torch.manual_seed(1)
    return torch.randn(len(LENGTHS), 5, dim)


def test_the_layer_equals_pytorchs_on_packed_sequences():
    x = sentences(3)
    layer = BidirectionalLSTM(3, 4)
    expected = nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    ours = {**layer.forwards.state_dict()}
    ours |= {f"{name}_reverse": value for name, value in layer.backwards.state_dict().items()}
    expected.load_state_dict(ours)
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(expected(packed)[0], batch_first=True)
    torch.testing.assert_close(layer(x, LENGTHS), states)


def test_neighbour_states():
    states = torch.tensor([[[1.0, 10], [2, 20], [3, 30], [0, 0]]])  # three words and padding
    assert neighbour_states(states).tolist() == [[[0, 20], [1, 30], [2, 0], [3, 0]]]


def test_an_lstm_encoder_of_one_layer_by_hand():
    """Equation 2 with one-dimensional states: the LSTM's own equations, word by word. A word's
    state is blind to the word, and the ends have roles of their own."""
    encoder = SyntacticEncoder(1, 1, layers=1)
    words = [0.5, -1.0, 2.0, 0.25]

    def run(net, inputs):
        (wi, wf, wg, wo), (ui, uf, ug, uo) = net.weight_ih_l0[:, 0], net.weight_hh_l0[:, 0]
        bi, bf, bg, bo = net.bias_ih_l0 + net.bias_hh_l0
        h, c, states = torch.tensor(0.0), torch.tensor(0.0), []
        for x in inputs:
            c = torch.sigmoid(wf * x + uf * h + bf) * c + torch.sigmoid(
                wi * x + ui * h + bi
            ) * torch.tanh(wg * x + ug * h + bg)
            h = torch.sigmoid(wo * x + uo * h + bo) * torch.tanh(c)
            states.append(h)
        return states

    left = run(encoder.first.forwards, words)
    right = run(encoder.first.backwards, words[::-1])[::-1]
    h, summary = encoder(torch.tensor(words)[None, :, None], torch.tensor([4]))
    roles = [encoder.start_role, (left[0], right[2]), (left[1], right[3]), encoder.end_role]
    expected = torch.stack([role if torch.is_tensor(role) else torch.stack(role) for role in roles])
    torch.testing.assert_close(h[0], expected)
    torch.testing.assert_close(summary[0], torch.stack([left[3], right[0]]))


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_no_sentence_sees_padding_or_neighbours(layers):
    encoder = SyntacticEncoder(3, 4, layers).eval()
    x = sentences(3)
    h, summary = encoder(x, LENGTHS)
    assert h.shape == (4, 5, 8) and summary.shape == (4, 8)
    longer, _ = encoder(F.pad(x, (0, 0, 0, 2), value=9.0), LENGTHS)
    torch.testing.assert_close(longer[:, :5], h)
    for row, length in enumerate(LENGTHS.tolist()):
        alone, own_summary = encoder(x[row : row + 1, :length], LENGTHS[row : row + 1])
        torch.testing.assert_close(h[row, :length], alone[0])
        torch.testing.assert_close(summary[row], own_summary[0])


@pytest.mark.parametrize(
    "arguments, message", [((3, 4, 0), "at least one layer, not 0"), ((3, 5), "5 is odd")]
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        SyntacticEncoder(*arguments)
