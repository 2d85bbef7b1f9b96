"""The recipes as commands, and tiny data and models for them."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from instant import instant

from compgen.text import write_lines

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TINY = [
    *("--encoder-layers=1", "--decoder-layers=1", "--encoder-embed-dim=16"),
    *("--encoder-ffn-embed-dim=16", "--decoder-ffn-embed-dim=16", "--max-tokens=200"),
    *("--encoder-attention-heads=2", "--decoder-attention-heads=2"),
    *("--encoder-predictor-layers=1", "--decoder-predictor-layers=1", "--log-interval=5"),
    "--max-target-positions=16",  # for who has learned nothing decodes until then
]
COMPOUNDS = ["the dog", "the small dog", "on the farm", "took the dog"]
LEXICON = {"the": "", "dog": "狗", "small": "小", "on": "", "farm": "农场", "took": "带/拿"}


def script(
    name: str, *args: object, status: int = 0, cwd: Path | None = None, **variables: str
) -> str:
    """Run a script of ``examples/``, whose Python starts at once; what it printed."""
    path = os.pathsep.join([instant(), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", str(EXAMPLES / name), *map(str, args)],
        env={**os.environ, "PATH": path, **variables},
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == status, done.stdout
    return done.stdout


def prepared(folder: Path, languages: tuple[str, str], run: Callable[..., str]) -> Path:
    """A folder as the prepare scripts make it: the compounds and a translation of each."""
    source, target = languages
    lines = [compound for compound in COMPOUNDS for _ in range(5)]
    for part in ("train", "valid", "test"):
        for language, words in ((source, lines), (target, [line.upper() for line in lines])):
            write_lines(folder / "raw" / f"{part}.{language}", words)
    prefixes = [f"--{part}pref={folder / 'raw' / part}" for part in ("train", "valid", "test")]
    run("fairseq_cli.preprocess", "-s", source, "-t", target, *prefixes, "--destdir", folder)
    settings = {"tokenized": True, "bpe_merges": 0}
    extra = {
        "cases/test.case": 20 * ["prim_to_subj_common"],
        "cter/test.compound": lines,
        "cter/lexicon": [
            f"{atom}\t{word}/" if word else f"{atom}\t/" for atom, word in LEXICON.items()
        ],
        "PREPARED.json": [
            json.dumps(
                {"sha256": {"raw": source}, "settings": settings, "pairs": {"test": len(lines)}}
            )
        ],
    }
    for name, text in extra.items():
        write_lines(folder / name, text)
    return folder
