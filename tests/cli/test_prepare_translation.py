"""The prepare scripts of the translation corpora, run as a user runs them."""

import functools
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prepare_scripts import SCRIPTS, contents, runner
from sentence_files import pack
from serving import serving

run = functools.partial(runner("wmt17_en_de"), no_proxy="*")
STALLED = "test-full.tgz"  # the archive that the server first sends half of
OPTIONS = ["--joined-dictionary", "--bpe-merges=60"]
HANGING = """
import pathlib, time
pathlib.Path(__file__).with_name("called").touch()
time.sleep(600)
"""


def start(name: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    env = {key: value for key, value in os.environ.items() if key != "COMPGEN_DATA"}
    return subprocess.Popen(
        [str(SCRIPTS / f"{name}.sh"), *map(str, arguments)],
        env={**env, "PYTHON": sys.executable, "no_proxy": "*", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill_when(process: subprocess.Popen[str], path: Path) -> None:
    """Kill all of a command's processes as soon as a file is there."""
    with process:
        while not path.exists():
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL


class Publisher(ThreadingHTTPServer):
    stall = threading.Event()  # until it is set, half of an archive is sent and no more


class Handler(SimpleHTTPRequestHandler):
    server: Publisher

    def copyfile(self, source: Any, outputfile: Any) -> None:
        data = source.read()
        if self.path.endswith(STALLED) and not self.server.stall.is_set():
            outputfile.write(data[: len(data) // 2])
            self.server.stall.wait(60)
        else:
            outputfile.write(data)


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """WMT'17 in small, at the publisher's paths, with its checksums."""
    folder = tmp_path_factory.mktemp("statmt")

    def text(language: str, start: int, end: int) -> str:
        noun, verb = {"en": ("house", "sees"), "de": ("Haus", "sieht")}[language]
        return "".join(f"{noun} {i} {verb} Mr-{i % 7}, {noun}.\n" for i in range(start, end))

    corpora = {
        "wmt13/training-parallel-europarl-v7.tgz": ("training/europarl-v7.de-en", 1, 120),
        "wmt13/training-parallel-commoncrawl.tgz": ("commoncrawl.de-en", 120, 180),
        "wmt17/translation-task/training-parallel-nc-v12.tgz": (
            "training/news-commentary-v12.de-en",
            180,
            241,
        ),
    }
    files = {
        path: {f"{name}.{side}": text(side, start, end) for side in ("en", "de")}
        for path, (name, start, end) in corpora.items()
    }
    files[f"wmt14/{STALLED}"] = {
        f"test-full/newstest2014-deen-{name}.sgm": f'<seg id="1">house {name[-2:]}</seg>\n'
        for name in ("src.en", "ref.de")
    }
    sums = []
    for path, texts in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(pack(folder / path, texts).read_bytes()).hexdigest()
        sums.append(f"{digest}  {Path(path).name}\n")
    (folder / "sums").write_text("".join(sums))
    return folder


@pytest.fixture(scope="module")
def publisher(archives: Path) -> Iterator[Publisher]:
    handler = functools.partial(Handler, directory=archives)
    with serving(Publisher(("127.0.0.1", 0), handler)) as server:
        yield server


@pytest.fixture(scope="module")
def mirror(archives: Path, publisher: Publisher) -> list[str]:
    url = f"http://127.0.0.1:{publisher.server_port}"
    return ["--mirror", url, "--checksums", str(archives / "sums")]


@pytest.fixture(scope="module")
def prepared(
    publisher: Publisher, mirror: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """WMT'17, killed in a download, killed in fairseq-preprocess, and then left alone."""
    folder = tmp_path_factory.mktemp("wmt")
    dest, work = folder / "wmt17", folder / ".wmt17.preparing"
    command = (dest, *mirror, *OPTIONS, "--workers=2")
    kill_when(start("wmt17_en_de", *command), work / "downloads" / f"{STALLED}.part")
    assert not dest.exists()
    assert (work / "downloads" / "training-parallel-nc-v12.tgz").exists()
    publisher.stall.set()

    broken = folder / "fairseq_cli"
    broken.mkdir()
    (broken / "__init__.py").touch()
    (broken / "preprocess.py").write_text(HANGING)
    hanging = start("wmt17_en_de", *command, PYTHONPATH=str(folder))
    kill_when(hanging, broken / "called")
    assert not dest.exists()

    with open(work / "tokenised" / "test.de", "a") as file:
        file.write("more\n")  # what the next run must not take for finished
    done = run(*command)
    assert "238 train, 2 valid, 1 test pairs" in done.stdout, done.stderr
    assert [path.name for path in folder.iterdir() if path != broken] == ["wmt17"]
    return dest


def test_folder_is_complete(prepared: Path) -> None:
    files = contents(prepared)
    record = json.loads(files.pop("PREPARED.json"))
    command = "prepare/wmt17_en_de.sh DEST --bpe-merges 60 --joined-dictionary"
    assert record["command"] == command
    assert files["dict.en.txt"] == files["dict.de.txt"]
    assert record["pairs"] == {"train": 238, "valid": 2, "test": 1}
    assert {"subword-nmt", "sacremoses"} < set(record["versions"])
    assert len(record["inputs"]) == 4
    assert set(record["sha256"]) == set(files)
    assert {"code", "train.en-de.en.bin", "test.en-de.de.idx", "raw/valid.de"} < set(files)
    valid = files["raw/valid.en"].decode().replace("@@ ", "")
    assert valid == "".join(f"house {i} sees Mr @-@ {i % 7} , house .\n" for i in (100, 200))
    assert files["raw/test.de"].decode().replace("@@ ", "") == "house de\n"


def test_same_bytes_without_interruption(archives: Path, prepared: Path, tmp_path: Path) -> None:
    for path in archives.rglob("*.tgz"):
        (tmp_path / path.name).symlink_to(path)
    dest = tmp_path / "wmt17"
    command = (f"{dest}/", "--from", tmp_path, *OPTIONS, "--workers", 1)
    run(*command, PYTHON=sys.executable)
    assert contents(dest) == contents(prepared)
