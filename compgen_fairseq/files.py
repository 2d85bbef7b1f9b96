"""Checks of dictionaries, binarized text and checkpoints when they are opened.

fairseq reads these files as if they were whole. Here the error about a broken one names the file
and says how to make it again.
"""

import itertools
import logging
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.huffman import HuffmanMMapIndex
from fairseq.data.indexed_dataset import IndexedDataset, MMapIndexedDataset, _code_to_dtype
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY

logger = logging.getLogger(__name__)

AGAIN = "make the data folder again, with fairseq-preprocess"
HEADER = 26  # bytes: a magic number, the version, the type of the tokens, the number of sentences
MAGIC = MMapIndexedDataset.Index._HDR_MAGIC
OTHER_KINDS = (IndexedDataset._HDR_MAGIC, HuffmanMMapIndex._HDR_MAGIC[:8])


def open_dictionary(read: Callable[[Any, Any], None], dictionary: Dictionary, file: Any) -> None:
    """Add a dictionary file's words to a dictionary, by fairseq's ``add_from_file``.

    Raises:
        ValueError: it is not there, or no dictionary.
    """
    if not isinstance(file, str):
        return read(dictionary, file)
    if not Path(file).is_file():
        raise ValueError(f"{file} is not there: name a folder that fairseq-preprocess made")
    try:
        read(dictionary, file)
    except Exception as error:
        reason = " ".join(str(error).split("Duplicate words can")[0].split())
        raise ValueError(f"{file} is not a dictionary ({reason}): {AGAIN}") from error


def find_language_pair(infer: Callable[[str], Any], folder: str) -> Any:
    """The languages of a data folder, by fairseq's ``infer_language_pair``.

    Raises:
        ValueError: it is not a folder, or its files tell none.
    """
    if not Path(folder).is_dir():
        what = "is a file" if Path(folder).exists() else "is not there"
        raise ValueError(f"{folder} {what}: name the folder that fairseq-preprocess made")
    found = infer(folder)
    if None in found:
        raise ValueError(f"{folder} has no binarized text of two languages: {AGAIN}")
    return found


def open_sentences(
    load: Callable[..., Any],
    path: str,
    dictionary: Dictionary | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """A part of the data, by fairseq's ``load_indexed_dataset`` with its arguments.

    Raises:
        ValueError: as :func:`check_sentences`.
    """
    check_sentences(path, dictionary)
    for k in itertools.count(1):
        if not (kwargs.get("combine") and Path(f"{path}{k}.idx").exists()):
            break
        check_sentences(f"{path}{k}", dictionary)
    return load(path, dictionary, *args, **kwargs)


def check_sentences(prefix: str, dictionary: Dictionary | None) -> None:
    """Check ``PREFIX.idx`` and ``PREFIX.bin``, if they are there and of fairseq's usual kind.

    Args:
        prefix: ``data-bin/train.en-de.en``.
        dictionary: the words; what is in the data must be in it. Alignments have none, and of a
            sentence there may be none.

    Raises:
        ValueError: one is missing or broken, or has words beyond the dictionary.
    """
    index, data = Path(f"{prefix}.idx"), Path(f"{prefix}.bin")
    there = [file for file in (index, data) if file.exists()]
    if len(there) == 1:
        missing = data if there == [index] else index
        raise ValueError(f"{missing} is missing beside {there[0].name}: {AGAIN}")
    if not there:
        return
    with open(index, "rb") as stream:
        header = stream.read(HEADER)
    if header[:8] in OTHER_KINDS:
        return
    if len(header) < HEADER or header[:9] != MAGIC or header[17] not in _code_to_dtype:
        raise ValueError(f"{index} is not an index of fairseq-preprocess, or only a part: {AGAIN}")
    kind = np.dtype(_code_to_dtype[header[17]])
    n = int.from_bytes(header[18:HEADER], "little")
    if index.stat().st_size != HEADER + 12 * n:
        raise ValueError(f"{index} is not of the size of {n} sentences: {AGAIN}")
    if n == 0:
        raise ValueError(f"{index} has no sentences: {AGAIN}")
    sizes = np.memmap(index, np.int32, "r", HEADER, (n,)).astype(np.int64)
    places = np.memmap(index, np.uint8, "r", HEADER + 4 * n, (8 * n,)).view(np.int64)
    complete = np.array_equal(places, (sizes.cumsum() - sizes) * kind.itemsize)
    if not complete or sizes.min() < (0 if dictionary is None else 1):
        raise ValueError(f"{index} contradicts itself: {AGAIN}")
    if data.stat().st_size != sizes.sum() * kind.itemsize:
        raise ValueError(f"{data} is not of the size that {index.name} says: {AGAIN}")
    if dictionary is None:
        return
    tokens = np.memmap(data, kind, "r")
    if tokens.min() < 0 or tokens.max() >= len(dictionary):
        raise ValueError(
            f"{data} has words beyond the {len(dictionary)} of its dictionary: take the one that "
            f"it was made with, or {AGAIN}"
        )


def open_checkpoint(
    load: Callable[..., dict[str, Any]], path: str, *args: Any, **kwargs: Any
) -> dict[str, Any]:
    """What a checkpoint holds, by fairseq's ``load_checkpoint_to_cpu``.

    Raises:
        ValueError: it is not there, no checkpoint or only a part of one, not as it was written, or
            could run code.
    """
    if not Path(path).is_file():
        raise ValueError(f"{path} is not a file: name a checkpoint of fairseq-train")
    try:
        changed = _changed_part(path)
    except (zipfile.BadZipFile, NotImplementedError, EOFError):
        changed = "its list of parts"
    if changed is not None:
        raise ValueError(
            f"{path} is not as it was written, {changed} is damaged: take a whole copy, or the "
            "checkpoint before it"
        )
    reason = None
    try:
        state = load(path, *args, **kwargs)
    except Exception as error:
        if isinstance(error, OSError) or "memory" in str(error):
            raise
        if found := re.search(r"GLOBAL (\S+)", str(error)):
            raise ValueError(
                f"{path} could run code when it is loaded, by {found[1]}, so it is not"
            ) from error
        state, reason = {}, error
    if not (isinstance(state, dict) and "model" in state):
        raise ValueError(
            f"{path} is not a checkpoint of fairseq-train, or only a part of one"
        ) from reason
    options = getattr(state.get("cfg"), "model", None)
    arch = getattr(options, "_name", None) or getattr(options, "arch", None)
    if arch and arch not in ARCH_MODEL_REGISTRY and arch not in MODEL_DATACLASS_REGISTRY:
        raise ValueError(
            f"{path} is of the architecture {arch}, which nothing imported has: import its plugin "
            "(--user-dir)"
        )
    return state


def open_models(load: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Warn of models that translate another way round than the command reads its data, to which a
    joined dictionary fits, too; what fairseq's ``load_model_ensemble_and_task`` returns."""
    models, saved, task = load(*args, **kwargs)
    trained, asked = (
        [getattr(getattr(of, name, None), f"{side}_lang", None) for side in ("source", "target")]
        for of, name in ((saved, "task"), (task, "cfg"))
    )
    if None not in trained + asked and trained != asked:
        logger.warning(
            "the checkpoint translates %s to %s, the data are read as %s to %s: say -s %s -t %s",
            *(trained + asked + trained),
        )
    return models, saved, task


def open_run(
    load: Callable[..., Any],
    model_name_or_path: str | os.PathLike[str],
    checkpoint_file: str = "model.pt",
    data_name_or_path: str | os.PathLike[str] = ".",
    archive_map: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """What fairseq's ``hub_utils.from_pretrained`` returns, with its arguments.

    Raises:
        ValueError: a folder is not there.
    """
    run, data = os.fspath(model_name_or_path), os.fspath(data_name_or_path)
    for what, place in (("the training", run), ("the data", data)):
        known = place in (archive_map or {}) or "://" in place
        known |= what == "the data" and place.startswith(".")
        if not known and not Path(place).exists():
            raise ValueError(f"there is no {place}: name the folder of {what}")
    if run.endswith(".pt"):
        raise ValueError(f"{run} is a file: name its folder, and it as checkpoint_file")
    if data.startswith(".") and Path(data).is_dir() and not (Path(run) / data).exists():
        data = os.path.abspath(data)  # fairseq looks for it in the folder of the training
    return load(run, checkpoint_file, data, archive_map, **kwargs)


def _changed_part(path: str) -> str | None:
    """What of a checkpoint no longer has its checksum.

    PyTorch writes a zip archive, in which every tensor has its CRC-32, and reads it without a look
    at them. Files of PyTorch before 1.6 are no archives and have none.
    """
    if not zipfile.is_zipfile(path):
        return None
    with zipfile.ZipFile(path) as archive:
        return archive.testzip()
