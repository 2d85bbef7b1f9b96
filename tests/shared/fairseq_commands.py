"""fairseq's commands, on one worker or on two, and the checkpoints they leave."""

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from instant import instant

import compgen_fairseq  # noqa: F401 (checkpoints load with it)


def user_dir(folder: Path, *lines: str) -> Path:
    """A user directory below a folder: the plugin, and these lines of Python. Its name is the
    folder's, for fairseq imports one directory of a name in a process."""
    path = folder / f"{folder.name}_plugin"
    path.mkdir()
    (path / "__init__.py").write_text("\n".join(["import compgen_fairseq", *lines]))
    return path


def every_worker_saves(folder: Path) -> Path:
    """A user directory with which every worker saves, not the first one alone."""
    return user_dir(
        folder,
        "from fairseq.trainer import Trainer",
        "Trainer.should_save_checkpoint_on_current_rank = property(lambda self: True)",
    )


def with_autocast(folder: Path) -> Path:
    """A user directory with which ``--amp`` has an effect: fairseq's autocast is CUDA's, which does
    nothing on a CPU; the CPU's, in bfloat16, takes its place. A command that never turns it on
    exits with 3."""
    return user_dir(
        folder,
        "import atexit, os, torch",
        "class Autocast(torch.autocast):",
        "    on = False",
        "    def __init__(self, enabled=True):",
        '        super().__init__("cpu", torch.bfloat16, enabled)',
        "        Autocast.on |= enabled",
        "torch.cuda.amp.autocast = Autocast",
        "atexit.register(lambda: Autocast.on or os._exit(3))",
    )


def start(module: str, *flags: object) -> subprocess.Popen[bytes]:
    """Start ``fairseq-MODULE``."""
    return subprocess.Popen([f"{instant()}/fairseq-{module}", *map(str, flags)])


def status(module: str, *flags: object) -> int:
    """The exit status of ``fairseq-MODULE``; -9 if it was killed."""
    return start(module, *flags).wait()


def start_workers(number: int, *flags: object, folders: Sequence[Path] = ()) -> list:
    """Start ``fairseq-train`` on some workers, each with a new folder of its own, too."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared: list[object] = []
    if number > 1:
        shared = [
            *("--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"),
            *("--distributed-init-method", f"tcp://127.0.0.1:{port}", "--distributed-no-spawn"),
            *("--distributed-world-size", number),
        ]
    workers = []
    for rank in range(number):
        own: list[object] = ["--distributed-rank", rank] if number > 1 else []
        if folders:
            folders[rank].mkdir()
            own += ["--save-dir", folders[rank], "--log-file", folders[rank] / "log"]
        workers.append(start("train", *flags, *shared, *own))
    return workers


def statuses(workers: list) -> list[int]:
    """The exit statuses of workers, once all have ended."""
    return [worker.wait() for worker in workers]


def load(path: Path) -> dict:
    """A checkpoint."""
    return load_checkpoint_to_cpu(str(path))


def fits(values: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether all numbers of a checkpoint, which is in float32, are numbers of ``dtype``."""
    return torch.equal(values, values.to(dtype).float())


def different(state: dict, other: dict) -> list[str]:
    """The names of the tensors that are not bit for bit the same in two models' states."""
    assert state.keys() == other.keys()
    return [name for name in state if not torch.equal(state[name], other[name])]
