"""Prepared folders: how every prepare script makes one, and knows one again.

A prepared folder DEST is what ``fairseq-preprocess`` writes, ``raw/`` (the text that was
binarised), whatever else the data set needs, and ``PREPARED.json`` (settings, sizes, versions,
checksums). It appears whole or not at all: everything is made in a hidden work folder beside it,
which is renamed in the end. ``daxy.py`` is a short user of it.
"""

import argparse
import fcntl
import json
import os
import platform
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

from tqdm import tqdm

from compgen.data.checksums import checksums, sha256
from compgen.ranges import Range, flag_of
from compgen.text import count_lines

RECORD = "PREPARED.json"
KEPT = """
The text lies in DEST/raw; settings, sizes, versions and checksums in DEST/PREPARED.json. DEST
appears only when it is complete; the same settings give the same bytes. When DEST is there already
with these settings, nothing is done; with other settings, nothing is touched and the exit code is
not 0."""
Item = TypeVar("Item")


class Parser(argparse.ArgumentParser):
    """The options that all prepare scripts share: DEST, ``--from`` and ``--help``.

    Args:
        script: the script as a user calls it, ``prepare/cogs.sh``.
        description: what the script makes, plain text with its own line breaks; what holds for all
            of them is added.
        folder: help of ``--from``.
        checksums: help of ``--checksums``; without it the script has no ``--checksums``.
        positional: arguments before DEST, each with its choices.
    """

    def __init__(
        self,
        script: str,
        description: str,
        *,
        folder: str,
        checksums: str | None = None,
        positional: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(
            prog=script,
            description=f"{description.rstrip()}\n{KEPT}",
            epilog="The environment's PYTHON (default: python) is the Python that has fairseq.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for name, choices in (positional or {}).items():
            text = ", ".join(choices)
            self.add_argument(name, metavar=name.upper(), choices=choices, help=text)
        self.add_argument("dest", metavar="DEST", type=Path, help="the fairseq data folder to make")
        self.add_argument("--from", dest="folder", metavar="FOLDER", type=Path, help=folder)
        if checksums is not None:
            self.add_argument("--checksums", metavar="FILE", type=Path, help=checksums)

    def add_whole(
        self, flag: str, limits: Range, help: str, default: int | None = None, metavar: str = "N"
    ) -> None:
        """Add an option that takes a whole number within limits."""
        self.add_argument(flag, type=limits.whole, default=default, metavar=metavar, help=help)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see --help.\n")


class Preparation:
    """One prepared folder, to be made or there already.

    As a context it holds the work folder, ``.DEST.preparing`` beside DEST, which no other run can
    hold at the same time. ``data`` in it becomes DEST and is always made anew; finished steps and
    downloads (anything else in the work folder) outlive an interruption or an error, unfinished
    ones do not. ``finish`` removes it all. Entering it raises a ``ValueError`` if another run
    holds it.

    Args:
        script: the script as a user calls it, ``prepare/cogs.sh``.
        dest: the folder to make; an empty folder counts as not there.
        settings: all that decides the bytes of DEST, by option name, as JSON holds it.
        positional: the settings that are positional arguments before DEST.
        packages: the modules, besides fairseq, whose versions decide the bytes: ``subword_nmt``.
        edition: of the script; a higher one gives other bytes for the same settings.
    """

    def __init__(
        self,
        script: str,
        dest: Path,
        settings: Mapping[str, Any],
        *,
        positional: Sequence[str] = (),
        packages: Sequence[str] = (),
        edition: int = 1,
    ) -> None:
        self.script, self.dest, self.edition = script, dest, edition
        self.settings: dict[str, Any] = json.loads(json.dumps(dict(settings)))
        self.positional, self.packages = positional, packages
        self._place = dest.resolve()
        self.folder = self._place.parent / f".{self._place.name}.preparing"
        # a process that outlived a killed run must not write into the next run's files
        self.data = self.folder / f"data-{os.getpid()}"
        self.raw = self.data / "raw"
        self._lock = -1

    def done(self, inputs: Mapping[str, str] | None = None, folder: Path | None = None) -> bool:
        """Whether DEST is there with these settings and every file as it was; says so.

        Args:
            inputs: the SHA-256 of the files that it is to be made from, if they may change.
            folder: the user's copy of the publisher's files, which may change, too.

        Raises:
            ValueError: DEST is there with other settings, from other inputs, with a file missing
                or changed, or was not made by this edition of the script.
        """
        if not self._place.exists() or (self._place.is_dir() and not any(self._place.iterdir())):
            return False
        try:
            record = json.loads((self._place / RECORD).read_text(encoding="utf-8"))
            present, files = dict(record["settings"]), dict(record["sha256"])
            read = dict(record.get("inputs") or {})
            script = record["command"].split()[0]
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            script, files = None, {}
        if script != self.script or not files:
            raise ValueError(
                f"{self.dest} is there and was not prepared by this script; name another folder."
            )
        names = present | self.settings
        if differing := [n for n in names if present.get(n) != self.settings.get(n)]:
            told = (
                f"{name if name in self.positional else flag_of(name)} "
                f"{_said(present.get(name))}, now {_said(self.settings.get(name))}"
                for name in differing
            )
            raise ValueError(
                f"{self.dest} was prepared with other settings ({'; '.join(told)});"
                " name another folder or remove it."
            )
        if record.get("edition", 1) != self.edition:
            raise ValueError(
                f"{self.dest} was prepared by another version of this script, whose files differ;"
                " name another folder or remove it."
            )
        if folder is not None:
            there = (name for name in read if (folder / name).is_file())
            inputs = read | {name: sha256(folder / name) for name in there}
        if inputs is not None and read != dict(inputs):
            raise ValueError(
                f"{self.dest} was prepared before its inputs changed;"
                " name another folder or remove it."
            )
        for name, digest in files.items():
            path = self._place / name
            if not path.is_file() or sha256(path) != digest:
                raise ValueError(
                    f"{self.dest / name} is missing or changed; remove {self.dest} and run again."
                )
        print(f"{self.dest} is already prepared with these settings.")
        return True

    def __enter__(self) -> Self:
        if self.folder.is_symlink():  # what is removed in it would be somebody else's
            raise ValueError(f"{self.folder} is a link; remove it.")
        self._parents = [path for path in self.folder.parents if not path.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ValueError(f"another run is preparing {self.dest}; wait for it.") from None
        except OSError:
            pass  # a file system without locks
        self._clean()
        self.raw.mkdir(parents=True)
        return self

    def __exit__(self, *_: object) -> None:
        # published, it is gone, or another run's by now
        if self.folder.exists() and os.path.samestat(os.fstat(self._lock), self.folder.stat()):
            self._clean()
            folders = [path for path in self.folder.iterdir() if path.is_dir()]
            for folder in (*folders, self.folder, *self._parents):
                with suppress(OSError):  # something is in it
                    folder.rmdir()
        os.close(self._lock)

    def _clean(self) -> None:
        for pattern in ("data-*", "*.partial"):
            for path in self.folder.glob(pattern):
                _remove(path)

    def step(self, name: str, make: Callable[[Path], object], key: object = None) -> Path:
        """An expensive part of the work, as the file or folder ``name`` of the work folder.

        It is made under another name and renamed, and a marker with its checksums is written last.
        A later run uses it again only if the marker has the same key and the checksums still hold.
        (Downloads need no step: ``fetch`` into ``folder`` checks and resumes by itself.)

        Args:
            name: the name of the file or folder.
            make: writes it at the path that it is given.
            key: all that decides its bytes, as JSON holds it; by default the settings.
        """
        path, marker = self.folder / name, self.folder / f"{name}.done"
        partial = self.folder / f"{name}.partial"
        key = [self.edition, self.settings if key is None else json.loads(json.dumps(key))]
        try:
            record = json.loads(marker.read_text(encoding="utf-8"))
            finished = record == {"key": key, "sha256": checksums(path)}
        except (OSError, ValueError):
            finished = False
        if not finished:
            for old in (marker, path, partial):
                _remove(old)
            make(partial)
            record = {"key": key, "sha256": checksums(partial)}
            partial.rename(path)
            partial.write_text(json.dumps(record), encoding="utf-8")
            partial.rename(marker)
        return path

    def finish(
        self,
        source: str,
        target: str,
        *,
        tests: Sequence[str] = ("test",),
        inputs: Mapping[str, Path] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Binarise ``raw``, write ``PREPARED.json`` and put DEST in its place.

        Args:
            source: the source language; ``raw`` holds ``{train,valid,*tests}.{source,target}``.
            target: the target language.
            tests: the test sets; they become the subsets test, test1, ... in this order.
            inputs: the publishers' files that were read; their SHA-256 goes into the record.
            options: more flags of fairseq-preprocess, such as ``--joined-dictionary``.

        Raises:
            ValueError: fairseq fails, or DEST appeared meanwhile.
        """
        sides = (f"--source-lang={source}", f"--target-lang={target}")
        self.binarise(*sides, *options, tests=tests)
        parts = ("train", "valid", *tests)
        pairs = {part: count_lines(self.raw / f"{part}.{source}") for part in parts}
        vocabulary = {  # with fairseq's four special tokens
            language: count_lines(self.data / f"dict.{language}.txt") + 4
            for language in (source, target)
        }
        self.publish({"pairs": pairs, "vocabulary": vocabulary}, inputs or {})
        print(f"{self.dest}:", ", ".join(f"{n} {part}" for part, n in pairs.items()), "pairs")

    def publish(self, sizes: Mapping[str, Any], inputs: Mapping[str, Path]) -> None:
        """Write ``PREPARED.json`` with these sizes, and put DEST in its place."""
        owners = metadata.packages_distributions()
        versions = {owner for name in ("fairseq", *self.packages) for owner in owners.get(name, [])}
        record = {
            "command": self._command(),
            "settings": self.settings,
            "edition": self.edition,
            **sizes,
            "versions": {
                "python": platform.python_version(),
                **{name: metadata.version(name) for name in sorted(versions)},
            },
            "inputs": {name: sha256(path) for name, path in inputs.items()},
            "sha256": checksums(self.data),
        }
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        (self.data / RECORD).write_text(text, encoding="utf-8")
        try:
            self.data.rename(self._place)
        except OSError as error:
            raise ValueError(f"{self.dest} cannot be put in place: {error.strerror}.") from error
        _remove(self.folder)

    def _command(self) -> str:
        """The command that makes this folder: DEST for its name, SHA-256 for files."""
        words = [self.script, *(str(self.settings[name]) for name in self.positional), "DEST"]
        for name, value in self.settings.items():
            if name not in self.positional and value is not None and value is not False:
                values = value if isinstance(value, list) else [value] if value is not True else []
                words += [flag_of(name), *map(str, values)]
        return shlex.join(words)

    def binarise(self, *options: str, tests: Sequence[str] = ()) -> None:
        """Run fairseq-preprocess, with more options, on train, valid and ``tests`` in ``raw``.

        Raises:
            ValueError: fairseq fails.
        """
        command = [sys.executable, "-m", "fairseq_cli.preprocess", f"--destdir={self.data}"]
        command += ["--trainpref=train", "--validpref=valid", "--padding-factor=1", *options]
        if tests:
            command += [f"--testpref={','.join(tests)}"]
        files = sum(1 for _ in self.raw.iterdir())
        log = []
        with (
            subprocess.Popen(
                command, cwd=self.raw, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            ) as process,
            tqdm(total=files, desc="binarise", unit="file", disable=None) as bar,
        ):
            for line in process.stdout or ():
                log.append(line)
                bar.update(" sents, " in line)
        if process.returncode:
            sys.stderr.writelines(log)
            raise ValueError("fairseq-preprocess failed; its output is above.")
        (self.data / "preprocess.log").unlink(missing_ok=True)  # holds paths and times


def hold_out(
    items: Sequence[Item], size: int | None = None, seed: int | None = 1
) -> tuple[list[Item], list[Item]]:
    """A random choice of ``size`` items (by default a fifth, rounded down) and the others.

    Both keep their order. Without a seed the choice is the last items.

    Raises:
        ValueError: ``size`` leaves one side empty.
    """
    n = len(items)
    size = n // 5 if size is None else size
    if not 1 <= size < n:
        raise ValueError(f"The validation set must have 1 to {n - 1} items, not {size}.")
    chosen = range(n - size, n) if seed is None else random.Random(seed).sample(range(n), size)
    held = set(chosen)
    return (
        [item for index, item in enumerate(items) if index in held],
        [item for index, item in enumerate(items) if index not in held],
    )


def _said(value: Any) -> str:
    return "not given" if value is None or value is False else json.dumps(value)


def _remove(path: Path) -> None:
    """Remove a file or folder that may not be there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
