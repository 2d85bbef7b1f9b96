"""Syntactic Attention's decoder beside a loop over nn.LSTMCell, forward and backward.

The decoder's LSTM reads what it attends to, so its steps can't be handed to nn.LSTM as a sequence.
Both do the same arithmetic on the same random source states and take turns; their attention is
compared before anything is timed. "Own lengths", on the CPU alone, is the package's decoder where
each sentence stops at a length of its own, evenly spread up to the longest, as in a mixed batch.
Reported are the medians over the rounds of milliseconds per batch, on the CPU of CPU time.

    python benchmarks/syntactic_attention.py [--threads 1] [--rounds 9]
"""

import argparse
import logging
import statistics
from collections.abc import Callable
from functools import partial

import throughput as bench  # beside this file
import torch
import torch.nn as nn
from torch import Tensor

from compgen.ranges import AT_LEAST_1
from compgen_fairseq.modules.syntactic_decoder import SyntacticDecoder

# sentences, source tokens, steps: SCAN's average pair and batch and a long one, the paper's width
SHAPES = ((1, 9, 14), (32, 10, 15), (32, 11, 40))
DIM = 400

Unroll = Callable[[Tensor, Tensor, Tensor, int], Tensor]


def with_cell(decoder: SyntacticDecoder) -> Unroll:
    """nn.LSTMCell with the decoder's weights, fed with the attended states."""
    cell = nn.LSTMCell(DIM, DIM).to(decoder.initial.weight.device)
    cell.load_state_dict(decoder.layers[0].state_dict())
    decoder.add_module("cell", cell)  # so that its gradients are cleared with the others

    def unroll(h: Tensor, summary: Tensor, mask: Tensor, steps: int) -> Tensor:
        query = decoder.initial(summary).relu()
        state = (torch.zeros_like(query), torch.zeros_like(query))
        attention = []
        for _ in range(steps):
            weights = torch.baddbmm(mask, query.unsqueeze(1), h.transpose(1, 2)).softmax(-1)
            attention.append(weights)
            state = cell(torch.bmm(weights, h).squeeze(1), state)
            query = state[0]
        return torch.cat(attention, dim=1)

    return unroll


def measure(
    shape: tuple[int, int, int], device: str, rounds: int
) -> dict[str, tuple[float, float]]:
    """Median milliseconds of the forward pass, and of both passes, by contender."""
    sentences, length, steps = shape
    torch.manual_seed(1)
    decoder = SyntacticDecoder(DIM).to(device)
    h = 0.3 * torch.randn(sentences, length, DIM, device=device)
    summary = torch.randn(sentences, DIM, device=device)
    mask = torch.zeros(sentences, 1, length, device=device)
    gradient = torch.randn(sentences, steps, length, device=device)
    h.requires_grad_()
    lengths = torch.linspace(1, steps, sentences, device=device).ceil().long()
    wanted = (torch.arange(steps, device=device) < lengths.view(-1, 1)).unsqueeze(-1)
    unrolls: dict[str, Unroll] = {"package": decoder, "cell": with_cell(decoder)}
    if sentences > 1 and device == "cpu":
        unrolls["own lengths"] = partial(decoder, lengths=lengths)
    expected = decoder(h, summary, mask, steps)
    for name, unroll in unrolls.items():
        found = unroll(h, summary, mask, steps)
        right = expected * wanted if name == "own lengths" else expected
        torch.testing.assert_close(found, right, atol=1e-4, rtol=1e-4)
        found.backward(gradient)
    cuda = device == "cuda"
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in unrolls}
    for _ in range(rounds):
        for name, unroll in unrolls.items():
            decoder.zero_grad()
            h.grad = None
            forward, found = bench.stopwatch(partial(unroll, h, summary, mask, steps), cuda)
            backward, _ = bench.stopwatch(partial(found.backward, gradient), cuda)
            times[name].append((1e3 * forward, 1e3 * (forward + backward)))
    return {
        name: (statistics.median(f for f, _ in rows), statistics.median(b for _, b in rows))
        for name, rows in times.items()
    }


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for flag, default in (("--threads", 1), ("--rounds", 9)):
        text = "default: %(default)s"
        parser.add_argument(flag, type=AT_LEAST_1.whole, default=default, help=text)
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    logging.disable(logging.INFO)
    device = "cuda" if torch.cuda.is_available() and not args.cpu else "cpu"
    print(f"{device}, {args.threads} threads, PyTorch {torch.__version__}, width {DIM}\n")
    print("| sentences x source x steps | decoder | forward, ms | forward + backward, ms |")
    print("| --- | --- | ---: | ---: |")
    for shape in SHAPES:
        for name, (forward, both) in measure(shape, device, args.rounds).items():
            size = " x ".join(map(str, shape))
            print(f"| {size} | {name} | {forward:.1f} | {both:.1f} |", flush=True)


if __name__ == "__main__":
    main()
