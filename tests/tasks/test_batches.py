"""Mixed batches hold every sentence once, of every length, others in each epoch."""

import gc
import multiprocessing
import shutil
import threading

import numpy as np
from fairseq.data.iterators import BackgroundConsumer

from compgen_fairseq.tasks.batches import MixedLengthsDataset
from compgen_fairseq.tasks.compgen_translation import (
    CompgenTranslationConfig,
    CompgenTranslationTask,
)


def load(data, part="train", **options):
    interpolated = {"train_subset": "train", "dataset_impl": None, "required_seq_len_multiple": 1}
    config = CompgenTranslationConfig(data=str(data), **interpolated, **options)
    task = CompgenTranslationTask.setup_task(config)
    task.load_dataset(part)
    return task, task.dataset(part)


def test_mixed_batches_hold_every_length_and_change_with_the_epoch(tiny_data):
    task, dataset = load(tiny_data, train_batches="mixed")
    limits = {"max_tokens": 200, "required_batch_size_multiple": 8, "seed": 3}
    first, second, again = (
        task.get_batch_iterator(dataset, epoch=epoch, **limits).frozen_batches
        for epoch in (1, 2, 1)
    )
    for made in (first, second):
        assert sorted(np.concatenate(made)) == list(range(285))
        assert max(len(b) * dataset.dataset.num_tokens_vec(b).max() for b in made) <= 200
    assert np.concatenate(first).tolist() == np.concatenate(again).tolist()
    assert np.concatenate(first).tolist() != np.concatenate(second).tolist()
    assert all(len(np.unique(dataset.dataset.num_tokens_vec(batch))) > 2 for batch in first[:-1])


def test_only_the_training_set_is_mixed(tiny_data):
    assert isinstance(load(tiny_data, train_batches="mixed")[1], MixedLengthsDataset)
    assert not isinstance(load(tiny_data, "valid", train_batches="mixed")[1], MixedLengthsDataset)
    assert not isinstance(load(tiny_data)[1], MixedLengthsDataset)


def test_further_parts_of_the_training_set_count_once(tiny_data, tmp_path):
    data = shutil.copytree(tiny_data, tmp_path / "data")
    for file in data.glob("train.*"):
        shutil.copy(file, data / file.name.replace("train.", "train1."))
    assert len(load(data)[1]) == 285
    task = load(data)[0]
    task.load_dataset("train", combine=True)
    assert len(task.dataset("train")) == 2 * 285


def test_processes_of_an_epochs_own_batches_end_with_it(tiny_data):
    """Each waits for the next epoch otherwise, which makes processes of its own."""
    task, dataset = load(tiny_data, train_batches="mixed")
    gc.collect()
    before = multiprocessing.active_children()
    gc.disable()
    try:
        for epoch in (1, 2):
            batches = task.get_batch_iterator(
                dataset, max_sentences=50, num_workers=1, epoch=epoch, data_buffer_size=2
            )
            assert len(list(batches.next_epoch_itr())) == 6
            for thread in threading.enumerate():
                if isinstance(thread, BackgroundConsumer):
                    thread.join()
            assert multiprocessing.active_children() == before
    finally:
        gc.enable()


def test_a_resumed_training_has_the_batches_of_the_first_epoch(tiny_data):
    made = []
    for epoch, anew in ((1, False), (2, False), (2, True)):
        task, dataset = load(tiny_data)
        limits = {"max_tokens": 200, "update_epoch_batch_itr": anew}
        batches = task.get_batch_iterator(dataset, epoch=epoch, **limits)
        assert batches.epoch == epoch
        made.append(np.concatenate(batches.frozen_batches).tolist())
    assert made[0] == made[1] != made[2]
