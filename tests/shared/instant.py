"""A Python that starts at once: each of its processes is forked off one that has the imports.

PyTorch and fairseq take seconds to import, more than what most tests have a command do. What the
commands in :func:`instant` run is the real program, in a process of its own, with the arguments,
the variables, the folder and the streams of the call. Unlike in a new Python, nothing is said
while PyTorch and fairseq are imported, and every process hashes strings alike.
"""

import atexit
import functools
import gc
import json
import logging
import os
import runpy
import select
import signal
import socket
import sys
import threading

CLIENT = """#!{python} -IS
import sys
sys.path.insert(0, {folder!r})
import instant
instant.request({address!r})
"""


@functools.cache
def instant() -> str:
    """A folder with ``python`` and this environment's commands, to stand first in a PATH."""
    import subprocess
    import tempfile
    from pathlib import Path

    here = Path(__file__)
    instant.folder = tempfile.TemporaryDirectory()  # type: ignore[attr-defined]  # until pytest ends
    folder = Path(instant.folder.name)  # type: ignore[attr-defined]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen(64)
        # asked in the usual way whether there is a GPU, the server's children could not use it
        paths = os.pathsep.join(filter(None, [str(here.parents[2]), os.environ.get("PYTHONPATH")]))
        variables = {"PYTHONPATH": paths, "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
        instant.server = subprocess.Popen(  # type: ignore[attr-defined]
            [sys.executable, here, str(listener.fileno()), folder / "python"],
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,  # its end tells the server that pytest has ended
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
        )
    python = folder / "python"
    names = {"python": sys.executable, "folder": str(here.parent), "address": f"{folder}/socket"}
    python.write_text(CLIENT.format(**names))
    python.chmod(0o755)
    for command in Path(sys.executable).parent.iterdir():
        if command.name.startswith(("fairseq-", "compgen-", "torchrun")):
            (folder / command.name).symlink_to(python)
    return str(folder)


def request(address: str) -> None:
    """Have the server run what this process was called for, and end as that ends."""
    name = os.path.basename(sys.argv[0])
    script = [] if name == "python" else [os.path.join(os.path.dirname(sys.executable), name)]
    call = {"words": [*script, *sys.argv[1:]], "folder": os.getcwd(), "variables": {**os.environ}}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(address)
        socket.send_fds(connection, [json.dumps(call).encode()], [0, 1, 2])
        status = int(connection.recv(16) or b"1")
    if status < 0:  # a signal that ended it
        os.kill(os.getpid(), -status)
    sys.exit(status)


def serve(listener: socket.socket) -> list[str]:
    """Fork a process for each request; it returns in each, with the words for Python there."""
    import torch._dynamo  # what optimizers import  # noqa: F401

    for name in ("train", "generate", "interactive", "preprocess", "validate"):
        __import__(f"fairseq_cli.{name}")
    for name in [name for name in sys.modules if name.startswith("fairseq_cli")]:
        del sys.modules[name]  # each sets up its log when it is imported
    logging.root.handlers.clear()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the watchers
    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return accept(connection)
        connection.close()


def accept(connection: socket.socket) -> list[str]:
    """Fork and watch a process; it returns in that, with all that the request asks for."""
    message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    if child := os.fork():
        for stream in streams:
            os.close(stream)
        ready, _, _ = select.select([connection, os.pidfd_open(child)], [], [])
        if connection in ready:  # who asked has ended
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if connection not in ready:
            connection.send(str(status).encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    call = json.loads(message)
    sys.executable = sys.argv[2]
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["variables"])
    lines = 1 if "PYTHONUNBUFFERED" in os.environ else -1
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", lines, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return call["words"]


def run(words: list[str]) -> None:
    """What ``python WORDS`` runs."""
    named = words[0] not in ("-m", "-c")
    sys.argv = words if named else words[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(words[0])) if named else os.getcwd()
    if words[0] == "-m":
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif words[0] == "-c":
        sys.argv[0] = "-c"
        exec(words[1], {"__name__": "__main__"})
    else:
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    words, status = serve(socket.socket(fileno=int(sys.argv[1]))), 0
    try:
        run(words)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)  # at once: taking PyTorch apart takes half a second
