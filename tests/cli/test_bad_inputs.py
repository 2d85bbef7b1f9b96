"""Whatever is wrong, a command ends in one sentence that names it, and leaves nothing behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from bad_inputs import TRAIN, Case, cases
from in_process import PLUGIN, call
from logs import write_log
from sentence_files import bird, sst2, sts_b

from compgen.text import write_lines

CASES = list(cases())


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    """Small data, a checkpoint, logs and runs: whole ones, and what can be wrong with them."""
    root = tmp_path_factory.mktemp("world")
    (root / "folder").mkdir()
    (root / "plugin").symlink_to(PLUGIN)
    (root / "text").write_text("hello\n")
    (root / "binary").write_bytes(bytes(range(256)))
    _data(root)
    flags = [_placed(root, word) for word in TRAIN.split()[1:]]
    save = ["--no-epoch-checkpoints", "--save-dir", str(root / "sq")]
    trained = call("fairseq-train", flags + save)
    assert trained.status == 0, trained.err
    (root / "sq" / "checkpoint_last.pt").rename(root / "sq.pt")
    _checkpoints(root)
    _preparations(root)
    _logs(root / "logs")
    _runs(root / "runs")
    return root


def _placed(root: Path, word: str) -> str:
    return str(PLUGIN) if word == "@plugin" else word.replace("@", f"{root}/", word[:1] == "@")


def _data(root: Path) -> None:
    """``data``, and copies of it in ``broken`` with one thing wrong each."""
    for part, n in (("train", 30), ("valid", 9), ("test", 9)):
        lines = [
            " ".join("wif dax lug zup blick".split()[i % 3 : 1 + i % 5]) or "wif" for i in range(n)
        ]
        write_lines(root / f"{part}.src", lines)
        write_lines(root / f"{part}.tgt", map(str.upper, lines))
    prefixes = [f"--{part}pref={root / part}" for part in ("train", "valid", "test")]
    data = root / "data"
    call("fairseq-preprocess", ["-s", "src", "-t", "tgt", *prefixes, "--destdir", str(data)])
    (root / "broken" / "empty").mkdir(parents=True)

    def change(name: str, *files: str, edit: Callable[[bytes], bytes] | None = None) -> None:
        folder = root / "broken" / name
        shutil.copytree(data, folder)
        for file in files:
            path = folder / file
            whole = path.read_bytes()
            path.unlink()
            if edit:
                path.write_bytes(edit(whole))

    def everywhere(side: str, kind: str) -> list[str]:
        return [f"{part}.src-tgt.{side}.{kind}" for part in ("train", "valid", "test")]

    change("no-dictionary", "dict.src.txt")
    change("binary-dictionary", "dict.src.txt", edit=lambda _: bytes(range(128, 256)))
    change("twice-dictionary", "dict.src.txt", edit=lambda whole: 2 * whole)
    change("uncounted-dictionary", "dict.tgt.txt", edit=lambda _: b"WIF\nDAX\n")
    change("small-dictionary", "dict.src.txt", edit=lambda whole: whole.splitlines(True)[0])
    change("empty-dictionary", "dict.tgt.txt", edit=lambda _: b"")
    change("empty-index", *everywhere("src", "idx"), edit=lambda whole: whole[:12])
    change("half-index", *everywhere("tgt", "idx"), edit=lambda whole: whole[:50])
    change("foreign-index", *everywhere("src", "idx"), edit=lambda _: b"hello" * 20)
    change("long-index", *everywhere("src", "idx"), edit=lambda whole: whole + b"more")
    change("no-binary", *everywhere("src", "bin"))
    change("half-binary", *everywhere("src", "bin"), edit=lambda whole: whole[:10])
    change("long-binary", *everywhere("tgt", "bin"), edit=lambda whole: whole + b"more")
    change("empty-binary", *everywhere("tgt", "bin"), edit=lambda whole: whole[:1])


class Foreign:
    """Unpickled without care, this makes a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def _checkpoints(root: Path) -> None:
    folder = root / "checkpoints"
    (folder / "folder.pt").mkdir(parents=True)
    whole = (root / "sq.pt").read_bytes()
    (folder / "half.pt").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile(root / "sq.pt") as parts:
        largest = max(parts.infolist(), key=lambda part: part.file_size)
    place = largest.header_offset + largest.file_size // 2
    flipped = bytes([whole[place] ^ 1])
    (folder / "flipped.pt").write_bytes(whole[:place] + flipped + whole[place + 1 :])
    (folder / "empty.pt").write_bytes(b"")
    (folder / "text.pt").write_text("hello\n")
    torch.save([1, 2], folder / "list.pt")
    torch.save({"model": {}, "cfg": Foreign(root / "executed")}, folder / "code.pt")
    torch.load(folder / "code.pt", weights_only=False)  # it would do harm
    (root / "executed").rmdir()
    np.savez(folder / "zip", np.zeros(3))
    (folder / "zip.npz").rename(folder / "zip.pt")


def _preparations(root: Path) -> None:
    """Publishers' files, pre-trained and prepared folders."""
    write_lines(root / "checksums", [f"{'0' * 64}  de-en.tgz"])
    for name in ("train.daxy", "hownet.txt"):
        write_lines(root / "foreign" / name, ["x"])
    write_lines(root / "pretrained" / "code", ["#version: 0.2", "w i"])
    write_lines(root / "pretrained" / "dict.txt", ["wif 3"])
    for name in ("final/train", "final/dev", "final/test", "swap/train"):
        write_lines(root / "paws" / f"{name}.tsv", ["id\tsentence", "1\twif"])
    for publish in (bird, sst2, sts_b):
        publish(root / publish.__name__)
    record = {"command": "prepare/scan.sh addjump DEST", "settings": {}, "sha256": {}}
    write_lines(root / "prepared" / "unchecked" / "PREPARED.json", [json.dumps(record)])
    (root / "prepared" / ".linked.preparing").symlink_to(root / "folder")


def _logs(folder: Path) -> None:
    (folder / "folder").mkdir(parents=True)
    (folder / "binary").write_bytes(b"S-0\t\xff\xfe\n")
    three = 3 * ["jump"]
    write_log(folder / "no-references", three, None, three)
    whole = write_log(folder / "whole", three, three, three).read_text()
    (folder / "claims").write_text(whole.replace("Translated 3", f"Translated {10**12}"))
    (folder / "far-id").write_text(whole.replace("-2\t", f"-{10**12}\t"))


def _runs(folder: Path) -> None:
    """Folders of evaluated runs, by what is wrong in them."""
    sections = {
        "common": {"seed": 1},
        "distributed_training": {"distributed_world_size": 1},
        "optimization": {"update_freq": [1]},
        "task": {"data": "none"},
    }
    machine = {"cpu": "a CPU", "cores": 2, "threads": "1", "gpus": [], "processes": 1}
    session = {"minutes": 2.0, "command": "fairseq-train", "machine": machine}
    deep = "[" * 100_000
    score = {"metric": "exact_match", "score": 50.0, "signature": "m"}

    def run(
        name: str,
        record: str | None = None,
        data: str | None = '{"sha256": {"a": "b"}}',
        scored: str | bytes | None = json.dumps(score),
        minutes: object = 2.0,
        updates: object = 9,
        **options: dict[str, object],
    ) -> None:
        path = folder / f"{name}.1"
        path.mkdir(parents=True)
        changed = {**session, "minutes": minutes, "settings": {**sections, **options}}
        whole = json.dumps({"updates": updates, "sessions": [changed]})
        (path / "RUN.json").write_text(whole if record is None else record)
        if data is not None:
            (path / "PREPARED.json").write_text(data)
        if scored is not None:
            (path / "test.best.json").write_bytes(
                scored.encode() if isinstance(scored, str) else scored
            )

    (folder / "empty.1").mkdir(parents=True)
    run("whole")
    for name, record in {"text": "hello", "deep": deep, "list": "[1]", "empty": "{}"}.items():
        run(f"record-{name}", record=record)
    run("seed-text", common={"seed": "one"})
    run("updates-text", updates="many")
    run("frequency-text", optimization={"update_freq": ["x"]})
    run("frequency-number", optimization={"update_freq": 4})
    run("minutes-text", minutes="long")
    run("minutes-nan", minutes=float("nan"))
    run("no-data", data=None)
    run("data-text", data="hello")
    run("data-empty", data="{}")
    run("no-scores", scored=None)
    values = {"text": "high", "nan": float("nan"), "bool": True}
    for name, value in values.items():
        run(f"score-{name}", scored=json.dumps({**score, "score": value}))
    run("score-deep", scored=deep)
    run("score-huge", scored=json.dumps(score).replace("50.0", "5" * 10_000))
    run("score-binary", scored=b"\xff\xfe")


def shown(case: Case) -> str:
    return " ".join([case.command, *case.words[-4:]])[:90]


@pytest.mark.parametrize("case", CASES, ids=shown)
def test_a_command_ends_in_a_sentence(case, world, monkeypatch):
    shutil.rmtree(out := world / "out", ignore_errors=True)
    monkeypatch.delenv("COMPGEN_DATA", raising=False)
    monkeypatch.delenv("COMPGEN_TRACEBACK", raising=False)
    said = call(case.command, [_placed(world, word) for word in case.words])
    line = said.last_line
    assert said.status in (1, 2), (said.out + said.err)[-2000:]
    script = f"prepare/{''.join(case.words[:1])}.sh"  # as which compgen-prepare speaks, too
    assert line.startswith((case.command, script)) and len(line) < 1000, line
    assert "unrecognized arguments" not in line or "unrecognized" in "".join(case.names), line
    assert "usage: fairseq-" not in said.err, said.err[-2000:]
    assert "Traceback" not in said.err and "COMPGEN_TRACEBACK" not in line, said.err[-2000:]
    for name in case.names:
        assert _placed(world, name) in line, f"{name} is not in: {line}"
    if line.startswith("prepare/"):
        assert (said.out, said.err) == ("", f"{line}\n")
    assert not out.exists() and not (world / "executed").exists()


@pytest.mark.parametrize(
    ("redirect", "status", "said"),
    [
        ("> /dev/full", 1, "compgen-score: standard output: No space left on device\n"),
        # as "| head": quiet, with the status of a command that SIGPIPE ended
        ("| true; exit ${PIPESTATUS[0]}", 128 + signal.SIGPIPE, ""),
        (">&-", 0, ""),
    ],
)
def test_standard_output_that_is_full_or_that_nobody_reads(redirect, status, said, world):
    program = Path(sys.executable).with_name("compgen-score")
    line = f"env -u PYTHONUNBUFFERED {program} {world}/logs/whole {redirect}"
    done = subprocess.run(["bash", "-c", line], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, said)
