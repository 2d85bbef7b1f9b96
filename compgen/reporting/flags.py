"""Which flags of fairseq's commands a score may depend on."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

# Options that no score depends on, in any section of fairseq's configuration.
UNCOUNTED = set(
    "data dataset_impl num_workers data_buffer_size max_tokens_valid batch_size_valid gen_subset "
    "num_shards shard_id eval_bleu_print_samples seed".split()
)
# Flags that no score depends on: where a run lies, on what it runs and what it shows.
INDIFFERENT = UNCOUNTED | set(
    "save_dir user_dir cpu no_progress_bar log_format log_interval tensorboard_logdir "
    "keep_interval_updates no_epoch_checkpoints find_unused_parameters ddp_backend device_id "
    "distributed_backend distributed_init_method distributed_no_spawn distributed_rank".split()
)
# Options that name a file, whose folder is another for each seed.
FILES = set("finetune_from_model restore_file continue_once prototype_table".split())
_NAMES = "|".join(sorted(INDIFFERENT)).replace("_", "-")
INDIFFERENT_WORDS = re.compile(rf"(^|\s+)--({_NAMES})(=\S*)?(\s+[^-\s]\S*)*(?=\s|$)")


def flags(command: str) -> dict[str, list[str]]:
    """The values of each flag of a training that a score may depend on.

    Flags and not all options, so that results outlive a revision that adds an option or drops one.
    Of a flag that is given twice the last counts, as for fairseq; of a file only its name.
    """
    values: list[str] = []
    found: dict[str, list[str]] = {}
    for word in shlex.split(command):
        if re.match("-[-A-Za-z]", word):
            name, equals, value = word.removeprefix("--").partition("=")
            found[name] = values = [value] if equals else []
        else:
            values.append(word)
    for flag, files in found.items():
        if flag.replace("-", "_") in FILES:
            found[flag] = [Path(file).name for file in files]
    return {flag: v for flag, v in found.items() if flag.replace("-", "_") not in INDIFFERENT}


def decoding(texts: Iterable[str]) -> str:
    """The flags of a run's decodings, each once, without those that no score depends on."""
    return "; ".join(dict.fromkeys(INDIFFERENT_WORDS.sub("", text).strip() for text in texts))
