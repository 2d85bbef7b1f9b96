"""Batches: none is lost, none counts twice, and their processes and threads end in time."""

import atexit
import contextlib
import inspect
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from fairseq.data import StripTokenDataset, data_utils
from fairseq.data.iterators import BackgroundConsumer, EpochBatchIterator
from fairseq.data.shorten_dataset import TruncateDataset
from fairseq.tasks import FairseqTask
from fairseq.trainer import Trainer

from compgen_fairseq.around import around

logger = logging.getLogger(__name__)

SECONDS_FOR_A_BATCH = 5  # how long Python's end waits for a batch that is being fetched


@around(data_utils, "batch_by_size")
def keep_the_last_batch(
    batch_by_size: Callable[..., Any], indices: Iterable[int], *args: Any, **kwargs: Any
) -> list[Any]:
    """Return every index in a batch.

    fairseq drops the last batch when its size is not a multiple of
    ``--required-batch-size-multiple`` (8 by default), so that training, validation, generation
    and interactive use each lose up to 7 sentences; without any index it fails instead.  What is
    dropped is one whole batch within the limits, so it is put back as it was.
    """
    if not isinstance(indices, np.ndarray):
        indices = np.fromiter(indices, dtype=np.int64)
    if len(indices) == 0:
        return []
    batches = batch_by_size(indices, *args, **kwargs)
    n = sum(map(len, batches))
    return batches if n == len(indices) else [*batches, indices[n:]]


@around(FairseqTask, "filter_indices_by_size")
def count_what_is_left_out(
    filter_indices_by_size: Callable[..., Any],
    task: FairseqTask,
    indices: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Count what is left out as too long on standard output, too, where the scores of
    ``fairseq-generate > LOG`` look for it; fairseq warns on standard error."""
    kept = filter_indices_by_size(task, indices, *args, **kwargs)
    if left_out := len(indices) - len(kept):
        print(f"{left_out:,} samples have invalid sizes and will be skipped", flush=True)
    return kept


@around(TruncateDataset, "__init__")
def count_what_is_cut(
    init: Callable[..., None], dataset: TruncateDataset, sentences: Any, length: int, **kw: Any
) -> None:
    """Count the sentences of which ``--truncate-source`` or ``--shorten-method`` leaves a part."""
    init(dataset, sentences, length, **kw)
    end = isinstance(sentences, StripTokenDataset)  # which leaves it in the sizes
    if cut := int((np.asarray(sentences.sizes) - end > length).sum()):
        logger.warning("%s of %s sentences are cut to %s tokens", cut, len(sentences), length)


@around(FairseqTask, "get_batch_iterator")
def resume_with_the_same_batches(
    get_batch_iterator: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """Make a run that resumes after its first epoch draw the batches it was interrupted in.

    fairseq forms the batches once, with a seed that depends on the epoch in which it does so, and
    keeps them for all epochs. A resumed run forms them in a later epoch, hence other ones, and
    counts the batches it has done already among those: some pairs come twice, some not at all.
    Here they are always formed as in epoch 1; the order of the batches still changes by epoch.
    Where a dataset forms others each epoch, the processes of ``--num-workers`` end with the epoch:
    fairseq has them stay until Python collects cycles, which it does seldom.
    """
    call = inspect.signature(get_batch_iterator).bind(*args, **kwargs)
    call.apply_defaults()
    given = call.arguments
    task, dataset, epoch = given["self"], given["dataset"], given["epoch"]
    drawn_anew = given["update_epoch_batch_itr"] or given["disable_iterator_cache"]
    kept = task.can_reuse_epoch_itr(dataset) and not drawn_anew
    if not kept or dataset in task.dataset_to_epoch_iter:
        iterator = get_batch_iterator(*call.args, **call.kwargs)
        iterator.persistent_workers &= kept
        return iterator
    if not any(dataset is known for known in task.datasets.values()):
        given["disable_iterator_cache"] = True  # a buffer of fairseq-interactive comes but once
    given["epoch"] = 1
    iterator = get_batch_iterator(*call.args, **call.kwargs)
    iterator.epoch = max(epoch, 1)
    return iterator


@around(EpochBatchIterator, "_get_iterator_for_epoch")
def shuffle_after_the_curriculum(
    iterate: Callable[..., Any], iterator: EpochBatchIterator, epoch: int, shuffle: bool, **kw: Any
) -> Any:
    """Shuffle the batches after the epochs of ``--curriculum``; fairseq goes on as in the first."""
    if iterator.reuse_dataloader and iterator.dataloader is not None:
        iterator.epoch_batch_sampler.shuffle = shuffle
    return iterate(iterator, epoch, shuffle, **kw)


@around(EpochBatchIterator, "state_dict")
def keep_the_number_of_processes(
    state_dict: Callable[..., dict[str, Any]], iterator: EpochBatchIterator
) -> dict[str, Any]:
    """Say of how many processes' batches a place in an epoch is."""
    return {**state_dict(iterator), "processes": iterator.num_shards}


@around(EpochBatchIterator, "load_state_dict")
def go_on_with_as_many_processes(
    load: Callable[..., None], iterator: EpochBatchIterator, state: dict[str, Any]
) -> None:
    """Refuse to go on within an epoch with more or fewer processes, which share it otherwise.

    fairseq would leave out some pairs and repeat others.
    """
    before, now = state.get("processes", iterator.num_shards), iterator.num_shards
    if state.get("iterations_in_epoch", 0) > 0 and before != now:
        raise ValueError(
            f"the checkpoint is from within an epoch, of {before} processes, not {now}: train with "
            f"{before}, go on from the end of an epoch, or begin this one anew (--reset-dataloader)"
        )
    load(iterator, state)


@around(Trainer, "get_valid_iterator")
def validate_apart(
    get_valid_iterator: Callable[..., Any],
    trainer: Trainer,
    subset: str,
    disable_iterator_cache: bool = False,
) -> Any:
    """Give a validation on the training set batches of its own, and leave the set in its epoch.

    fairseq takes those of the training, whose epochs the validations then count for.
    """
    if subset != trainer.cfg.dataset.train_subset:
        return get_valid_iterator(trainer, subset, disable_iterator_cache)
    batches = get_valid_iterator(trainer, subset, True)
    trainer.task.dataset(subset).set_epoch(getattr(trainer, "epoch", 1))
    return batches


@around(FairseqTask, "train_step")
def tell_dummy_batches(
    train_step: Callable[..., Any],
    task: FairseqTask,
    sample: dict[str, Any],
    model: Any,
    criterion: Any,
    optimizer: Any,
    update_num: int,
    ignore_grad: bool = False,
) -> Any:
    """Let the criterion know, by ``sample["ignore_grad"]``, a batch that counts for nothing, and
    count it for nothing.

    A worker that has run out of batches repeats its first one, to keep the others company.
    """
    sample["ignore_grad"] = ignore_grad
    loss, size, log = train_step(task, sample, model, criterion, optimizer, update_num, ignore_grad)
    if ignore_grad:
        size, log = 0 * size, {name: 0 * value for name, value in log.items()}
    return loss, size, log


@around(Trainer, "train_step")
def dummy_batches_first(
    train_step: Callable[..., Any], trainer: Trainer, samples: list[Any], raise_oom: bool = False
) -> Any:
    """Keep the real batches of an update whose last batch is a dummy (``--update-freq``).

    fairseq takes the last for all: it would count nothing of what such a worker has done.
    """
    return train_step(trainer, sorted(samples, key=bool), raise_oom)


@atexit.register
def end_prefetching() -> None:
    """Let fairseq's threads that fetch batches ahead end before Python does.

    Python stops a thread at whatever it is doing; one that is inside PyTorch takes the process with
    it, and a training that ``--max-update`` ended in the middle of an epoch exits with SIGABRT.
    """
    for thread in threading.enumerate():
        if isinstance(thread, BackgroundConsumer):
            thread._max_len = 0  # it ends after the batch that it is at
            give_up = time.monotonic() + SECONDS_FOR_A_BATCH
            while thread.is_alive() and time.monotonic() < give_up:
                with contextlib.suppress(queue.Empty):  # it may be waiting for room
                    thread._queue.get(timeout=0.01)
