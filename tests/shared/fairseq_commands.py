"""fairseq's commands as processes that start at once, on one worker or on two."""

import multiprocessing
import os
import socket
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest import mock

import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu

import compgen_fairseq  # noqa: F401 (checkpoints load with it)

# a server that has imported fairseq
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["fairseq_cli.train", "fairseq_cli.generate"])


def every_worker_saves(folder: Path) -> Path:
    """A user directory below a folder with which every worker saves, not the first one alone."""
    user_dir = folder / "every_worker_saves"
    user_dir.mkdir()
    (user_dir / "__init__.py").write_text(
        "from fairseq.trainer import Trainer\n"
        "import compgen_fairseq\n"
        "Trainer.should_save_checkpoint_on_current_rank = property(lambda self: True)\n"
    )
    return user_dir


def start(module: str, *flags: object, log: Path | None = None) -> BaseProcess:
    """Start ``fairseq-MODULE``; it writes to a file, if one is named."""
    with mock.patch("sys.argv", [f"fairseq-{module}", *map(str, flags)]):
        process = PROCESSES.Process(target=_main, args=(module, log))
        process.start()
    return process


def _main(module: str, log: Path | None) -> None:
    if log is not None:
        file = os.open(log, os.O_CREAT | os.O_WRONLY)
        os.dup2(file, 1)
        os.dup2(file, 2)
    __import__(f"fairseq_cli.{module}", fromlist=["cli_main"]).cli_main()


def status(module: str, *flags: object, log: Path | None = None) -> int | None:
    """The exit status of ``fairseq-MODULE``; -9 if it was killed."""
    process = start(module, *flags, log=log)
    process.join()
    return process.exitcode


def start_workers(number: int, *flags: object, own: list[list[object]] | None = None) -> list:
    """Start ``fairseq-train`` on some workers, each with its own flags, too."""
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
        rank_flags = ["--distributed-rank", rank] if number > 1 else []
        workers.append(start("train", *flags, *shared, *rank_flags, *(own[rank] if own else [])))
    return workers


def statuses(workers: list) -> list[int | None]:
    """The exit statuses of workers, once all have ended."""
    for worker in workers:
        worker.join()
    return [worker.exitcode for worker in workers]


def load(path: Path) -> dict:
    """A checkpoint."""
    return load_checkpoint_to_cpu(str(path))


def different(state: dict, other: dict) -> list[str]:
    """The names of the tensors that are not bit for bit the same in two models' states."""
    assert state.keys() == other.keys()
    return [name for name in state if not torch.equal(state[name], other[name])]
