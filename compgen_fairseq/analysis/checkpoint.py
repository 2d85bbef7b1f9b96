"""A trained model with its task, and the sentences that it is run on."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils, utils

from compgen_fairseq.progress import progress
from compgen_fairseq.prototypes.states import make_batches


@dataclass(frozen=True)
class Loaded:
    """A checkpoint, ready to be run.

    Args:
        model: in evaluation mode, on the GPU where there is one.
        task: with its dictionaries.
        cfg: all options that it was trained with.
        path: where it comes from.
    """

    model: Any
    task: Any
    cfg: Any
    path: str

    def dictionary(self, side: str) -> Any:
        """The dictionary of the ``"source"`` or the ``"target"`` side."""
        return self.task.source_dictionary if side == "source" else self.task.target_dictionary

    def moved(self, sample: dict[str, Any]) -> dict[str, Any]:
        """A sample, or a part of one, on the model's device."""
        device = next(self.model.parameters()).device
        return utils.apply_to_sample(lambda tensor: tensor.to(device), sample)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What every kind has that runs a model: checkpoint, data folder, device, other plugins."""
    parser.add_argument("checkpoint", metavar="CHECKPOINT")
    parser.add_argument("data", metavar="DATA", help="the fairseq-preprocess'ed folder")
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    text = "a plugin of your own that has the checkpoint's architecture"
    parser.add_argument("--user-dir", type=plugin, metavar="FOLDER", help=text)


def plugin(folder: str) -> str:
    """Import the plugin of a ``--user-dir``."""
    try:
        with contextlib.redirect_stdout(sys.stderr):  # and what it prints is no output
            utils.import_user_module(argparse.Namespace(user_dir=folder))
    except FileNotFoundError:
        raise argparse.ArgumentTypeError(f"there is no folder {folder}") from None
    except Exception as error:  # of somebody else's code
        raise argparse.ArgumentTypeError(f"{folder} cannot be imported: {error}") from None
    return folder


def load(checkpoint: str, data: str, cpu: bool = False, task: str | None = None) -> Loaded:
    """A model of any architecture with the task that it was trained on.

    Args:
        checkpoint: the file.
        data: a fairseq-preprocess'ed folder with the dictionaries of the training.
        cpu: use no GPU.
        task: the name of the only task that will do; None: any.

    Raises:
        ValueError: if either is not there, they don't belong together, or the task is another.
    """
    overrides = {"data": data, "num_batch_buckets": 0}  # which would pad the sentences
    state = checkpoint_utils.load_checkpoint_to_cpu(checkpoint, overrides)
    if task not in (None, name := getattr(state["cfg"].task, "_name", None)):
        raise ValueError(f"{checkpoint} is of the task {name}, not of {task}")
    if not Path(data).is_dir():
        raise ValueError(f"{data} is not a folder: name the fairseq-preprocess'ed data")
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what a plugin of one's own prints
            found = checkpoint_utils.load_model_ensemble_and_task([checkpoint], state=state)
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise ValueError(f"{checkpoint} cannot be loaded with {data}: {reason}") from None
    except FileNotFoundError as error:
        raise ValueError(f"{data} is not the data of {checkpoint}: {error}") from None
    (model,), cfg, of_task = found
    if torch.cuda.is_available() and not cpu:
        model.cuda()
    return Loaded(model.eval(), of_task, cfg, checkpoint)


def same_words(one: Loaded, other: Loaded) -> None:
    """Refuse two models whose dictionaries number other words.

    Raises:
        ValueError: naming both.
    """
    for side in ("source", "target"):
        if one.dictionary(side) != other.dictionary(side):
            raise ValueError(
                f"{one.path} and {other.path} have other {side} dictionaries: name models of the "
                "same data and direction"
            )


def subset(loaded: Loaded, name: str) -> Any:
    """The data set of a part of the data, such as ``test``.

    Raises:
        ValueError: if there is no such part.
    """
    if name not in loaded.task.datasets:
        try:
            loaded.task.load_dataset(name, combine=name == loaded.task.cfg.train_subset)
        except FileNotFoundError:
            folder = loaded.task.cfg.data
            raise ValueError(f"{folder} has no subset {name!r}: choose another --subset") from None
    return loaded.task.dataset(name)


def batches(loaded: Loaded, name: str, max_tokens: int) -> Iterator[dict[str, Any]]:
    """Collated samples of pairs of like length, on the model's device, with a progress bar.

    Every pair is in exactly one of them; ``sample["id"]`` says which they are.

    Args:
        loaded: the checkpoint.
        name: the part of the data, such as ``test``.
        max_tokens: of a batch; a longer pair is a batch of its own.

    Raises:
        ValueError: if there is no such part.
    """
    data = subset(loaded, name)
    parts = make_batches(data, np.arange(len(data)), max_tokens)
    for part in progress(parts, name, len(parts), " batches"):
        yield loaded.moved(data.collater([data[int(i)] for i in part]))
