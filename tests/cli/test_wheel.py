"""The built wheel, in an environment of its own, has the commands, the recipes and the scripts."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from recipes import TINY, prepared

REPOSITORY = Path(__file__).resolve().parents[2]
PARTS = ("compgen", "compgen_cli", "compgen_fairseq", "examples", "prepare")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """``installed("compgen-score", ...)`` runs a command there; what it printed."""
    folder = tmp_path_factory.mktemp("wheel")
    source, env = folder / "source", folder / "env"
    for part in PARTS:
        shutil.copytree(REPOSITORY / part, source / part, symlinks=True)
    for file in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / file, source)

    def call(*command, **kwargs):
        path = os.pathsep.join([str(env / "bin"), os.environ["PATH"]])
        variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(
            list(map(str, command)),
            env={**variables, "PATH": path, **kwargs.pop("env", {})},
            cwd=kwargs.pop("cwd", folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == kwargs.pop("status", 0), done.stdout
        return done.stdout

    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    flags = ["--no-build-isolation", "--no-deps", "--no-index"]
    call(*pip, "wheel", *flags, source, "--wheel-dir", folder)
    (wheel,) = folder.glob("*.whl")
    call(sys.executable, "-m", "venv", "--without-pip", env)
    call(*pip, "--python", env / "bin" / "python", "install", "--no-deps", "--no-index", wheel)
    # the packages that this one needs, without its own editable installation: a path in a .pth is
    # not searched for other .pth files
    (packages,) = env.glob("lib/*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for name in ("train", "generate", "preprocess"):
        script = env / "bin" / f"fairseq-{name}"
        script.write_text(f'#!/bin/sh\nexec {env}/bin/python -m fairseq_cli.{name} "$@"\n')
        script.chmod(0o755)
    return call


def test_commands_and_recipes(installed, tmp_path, run):
    find = "u.find_spec(name).origin for name in ('compgen_fairseq', 'compgen_cli')"
    where = f"import importlib.util as u; print(*({find}))"
    assert str(REPOSITORY) not in installed("python", "-c", where)
    assert "--augment" in installed("compgen-prepare", "scan", "--help")
    assert "examples and prepare" in installed("compgen-examples", tmp_path)
    again = installed("compgen-examples", tmp_path, status=1)
    assert again == f"compgen-examples: {tmp_path}/examples is there already: name another folder\n"
    copied = {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()}
    tracked = subprocess.run(
        ["git", "ls-files", "examples", "prepare"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if tracked.returncode == 0:
        assert copied == set(map(Path, tracked.stdout.split()))
    assert "--train" in installed("bash", "prepare/bitext.sh", "--help", cwd=tmp_path)
    data, save = prepared(tmp_path / "data", ("src", "tgt"), run), tmp_path / "save"
    flags = [*TINY, "--disable-validation"]
    log = installed(
        *("bash", "examples/scan/train.sh", data, save, *flags),
        cwd=tmp_path,
        env={"METHOD": "sal", "UPDATES": "2"},
    )
    assert "num_updates 2" in log and (save / "checkpoint_last.pt").exists()
    assert "Warning" not in log.partition("done training")[0] and "DEBUG" not in log
