"""Checks an installation: on a machine with a GPU all that this package does there, in 20 minutes.

    make gpu-check     # or: python benchmarks/gpu_check.py OUT

The tests marked ``gpu``, the speed of ``throughput.py --suite sq`` in three precisions, and ten
minutes of SAL's training on SCAN AddJump 2x at the paper's size with its exact match. Prints one
table; OUT/gpu-check.json holds the figures, OUT/*.out what each step printed. Without a GPU it
checks what can be checked: that the package is built and imported, and that no training step of
SQ-Transformer would wait for a GPU.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ("UPDATES", "LAUNCH", "BEAM")  # variables that would change what the recipes do


def step(out: Path, name: str, command: list[Any], **environment: str) -> tuple[bool, float]:
    """Run a step; whether it passed, and its seconds. What it prints goes to ``OUT/NAME.out``."""
    print(f"gpu-check: {name} ...", file=sys.stderr)
    start = time.monotonic()
    with (out / f"{name}.out").open("w", encoding="utf-8") as file:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=ROOT,
            env={k: v for k, v in os.environ.items() if k not in RECIPES} | environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    return done.returncode == 0, time.monotonic() - start


def speeds(out: Path, data: Path, rows: list[list[str]]) -> dict[str, Any]:
    """Training and generation speed in each precision, each model against fairseq's Transformer."""
    found: dict[str, Any] = {}
    for precision in ("fp32", "fp16", "bf16"):
        file = out / f"throughput-{precision}.json"
        flags = [] if precision == "fp32" else [f"--{precision}"]
        command = [sys.executable, "benchmarks/throughput.py", data, "--suite", "sq", *flags]
        passed, seconds = step(out, f"throughput-{precision}", [*command, "--json", file])
        text = "see the output"
        if passed:
            found[precision] = json.loads(file.read_text(encoding="utf-8"))["models"]
            text = ", ".join(
                f"{m['label']} {m['training']:,.0f} tokens/s (x{m['training_ratio']:.2f}, "
                f"{m['memory'] / 2**20:,.0f} MiB)"
                for m in found[precision]
            )
        rows.append([f"speed, {precision}", verdict(passed), f"{seconds:.0f} s", text])
    return found


def training(out: Path, data: Path, minutes: float, rows: list[list[str]]) -> dict[str, Any]:
    """SAL at the paper's size for some minutes, and its exact match on the test set."""
    save = out / "gpu-check-sal"
    shutil.rmtree(save, ignore_errors=True)  # or nothing would be left to train
    flags = ["--stop-time-hours", minutes / 60, "--fp16"]
    flags += ["--validate-interval-updates", 2000, "--save-interval-updates", 2000]
    command = ["bash", "examples/scan/train.sh", data, save, *flags]
    passed, seconds = step(out, "train", command, METHOD="sal", SEED="1", SIZE="paper")
    scored, more = passed, 0.0
    if passed:
        scored, more = step(out, "evaluate", ["bash", "examples/scan/evaluate.sh", data, save])
    scores = {}
    if scored:
        run = json.loads((save / "RUN.json").read_text(encoding="utf-8"))
        test = json.loads((save / "test.last.json").read_text(encoding="utf-8"))
        scores = {"updates": run["updates"], "exact_match": test["score"]}
    text = "{updates:,} updates, exact match {exact_match:.2f}".format(**scores) if scores else ""
    rows.append(["SAL, the paper's size", verdict(scored), f"{seconds + more:.0f} s", text])
    return scores


def verdict(passed: bool) -> str:
    """The word that stands in the table."""
    return "passed" if passed else "FAILED"


def table(rows: list[list[str]]) -> str:
    """A Markdown table."""
    head = ["check", "", "time", "figures"]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * 4, *rows])


def main() -> int:
    """Run the steps; 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", metavar="OUT", type=Path, help="folder for figures and outputs")
    parser.add_argument("--minutes", type=float, default=10, help="of training (default: 10)")
    args = parser.parse_args()
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    rows: list[list[str]] = []
    cuda = torch.cuda.is_available()
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if cuda else "no GPU",
        "torch": torch.__version__,
    }
    tests = [sys.executable, "-m", "pytest", "--timeout", 600]
    if cuda:
        passed, seconds = step(out, "tests", [*tests, "-n", 4, "-m", "gpu", "tests/gpu"])
        rows.append(["tests marked gpu", verdict(passed), f"{seconds:.0f} s", ""])
        data = out / "scan-addjump-2x"
        prepare = ["bash", "prepare/scan.sh", "addjump", data, "--augment", 2]
        passed, seconds = step(out, "prepare", prepare)
        rows.append(["SCAN from its grammar", verdict(passed), f"{seconds:.0f} s", ""])
        if passed:
            found["throughput"] = speeds(out, data, rows)
            found["training"] = training(out, data, args.minutes, rows)
    else:
        print("gpu-check: PyTorch sees no GPU here: what needs none is checked", file=sys.stderr)
        for name, command in (
            ("import", [sys.executable, "-c", "import compgen_fairseq, faiss, fairseq"]),
            ("no step waits for a GPU", [*tests, "tests/models/test_no_waiting.py"]),
        ):
            passed, seconds = step(out, name.split()[0], command)
            rows.append([name, verdict(passed), f"{seconds:.0f} s", ""])
    found["checks"] = [row[:3] for row in rows]
    (out / "gpu-check.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{found['device']}, PyTorch {found['torch']}\n\n{table(rows)}\n\n{out}/gpu-check.json")
    return int(any(row[1] == "FAILED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
