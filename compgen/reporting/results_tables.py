"""RESULTS.md: the tables of a folder of results, beside the papers' figures."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compgen.reporting.report import Summary
from compgen.reporting.results import unpack
from compgen.reporting.runs import LOWER_IS_BETTER, ReportError, read_json

PAPERS = "papers.toml"
HELD_OUT = ("train20", "last20")  # validation sets of the training distribution's own data
UNTRAINED = 10.0  # percent
INTRODUCTION = """\
# Results

Made by `compgen-results tables results --out RESULTS.md` from [results](results), a file for each
run that [examples/tables.py](examples/README.md) did, with its command, machine and revision.
Scores are in percent, of whole test sets: mean ± standard deviation over n seeds, median and worst
for the checkpoint that validation chose, mean ± standard deviation for the last one. *Ours* is a
method of no paper; updates, epochs and CPU minutes are a run's.
"""


@dataclass(frozen=True)
class Result:
    """One run.

    Args:
        file: where it stands.
        data, setting, method, seed: as the file's place and name say.
        found: its content.
    """

    file: Path
    data: str
    setting: str
    method: str
    seed: int
    found: dict[str, Any]

    def score(self, checkpoint: str, name: str) -> float | None:
        value = self.found["scores"][checkpoint].get(name)
        return value["score"] if isinstance(value, dict) else value

    @property
    def untrained(self) -> bool:
        """Whether it is a Syntactic Attention that has not learned its training set.

        The paper leaves out runs with at most 10% training accuracy. What is known here is the
        accuracy on the part that was held out from the training set.
        """
        chosen = self.found["chosen"]
        held_out = chosen["from"] in HELD_OUT and chosen["value"] is not None
        return self.method.startswith("syntactic") and held_out and chosen["value"] <= UNTRAINED


@dataclass(frozen=True)
class Row:
    """The runs of one method in one setting, by seed; those left out of the mean apart."""

    method: str
    runs: tuple[Result, ...]
    left_out: tuple[Result, ...]

    def summary(self, checkpoint: str, name: str) -> Summary | None:
        values = [run.score(checkpoint, name) for run in self.runs]
        found = tuple(value for value in values if value is not None)
        lower = name.partition(" ")[0] in LOWER_IS_BETTER
        return Summary(found, lower) if found else None


def read(folder: Path) -> list[Result]:
    """The results in a folder, ``DATA/SETTING/METHOD.SEED.json``.

    Raises:
        ReportError: if a file is not a result or not where it belongs.
    """
    results = []
    for file in sorted(folder.rglob("*.json")):
        place = file.relative_to(folder).parts
        found = read_json(file)
        try:
            name = f"{found['method']}.{found['seed']}.json"
            result = Result(file, *place[:-1], found["method"], int(found["seed"]), found)
            _ = [found[key] for key in ("verdicts", "signatures", "updates", "cpu_minutes")]
            _ = result.untrained, found["data"]["fingerprint"], found["settings"]
            if not all(found["scores"][checkpoint] for checkpoint in ("best", "last")):
                raise KeyError("scores")
        except (LookupError, TypeError, ValueError, AttributeError):
            raise ReportError(
                f"{file}: it is no result of compgen-results in {folder}/DATA/SETTING"
            ) from None
        if name != file.name:
            raise ReportError(f"{file}: by its content its name is {name}")
        results.append(result)
    return results


def tables(folder: Path | str) -> str:
    """RESULTS.md.

    Raises:
        ReportError: if a file cannot be read, or results that are to stand in one table cannot be
            compared.
    """
    folder = Path(folder)
    papers = _papers(folder / PAPERS)
    results = read(folder)
    order = [*papers, *sorted({result.data for result in results})]
    text = [INTRODUCTION]
    for data in dict.fromkeys(order):
        of_data = [result for result in results if result.data == data]
        if not of_data:
            continue
        paper = papers.get(data, {})
        text.append(f"## {paper.get('title', data)}\n")
        if "source" in paper:
            text.append(f"Paper: {paper['source']}.\n")
        for setting in dict.fromkeys(result.setting for result in of_data):
            text.append(f"### {setting}\n")
            text += _table([r for r in of_data if r.setting == setting], paper, papers["ours"])
    return "\n".join(text).rstrip("\n") + "\n"


def _papers(file: Path) -> dict[str, Any]:
    try:
        return {"ours": [], **tomllib.loads(file.read_text(encoding="utf-8"))}
    except FileNotFoundError:
        return {"ours": []}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ReportError(f"{file}: {error}") from None


def _table(results: Sequence[Result], paper: dict[str, Any], ours: Sequence[str]) -> list[str]:
    """A table of one setting, and what is to be said below it."""
    _must_agree(results, ("data", "fingerprint"))
    figures = {name: found for name, found in paper.items() if isinstance(found, dict)}
    names = dict.fromkeys(name for result in results for name in result.found["scores"]["best"])
    shown = [name for name in figures or names if name in names]
    rows = _rows(results, [method for found in figures.values() for method in found])
    lines = [
        "| score | method | n | mean ± std | median | worst | last checkpoint | paper | updates "
        "| epochs | CPU minutes |",
        "| --- | --- | " + " | ".join(9 * ["---:"]) + " |",
    ]
    for name in shown:
        for row in rows:
            best, last = (row.summary(checkpoint, name) for checkpoint in ("best", "last"))
            if best is None or last is None:
                continue
            cells = [
                *(f"{name} ↓" if best.lower_is_better else name, row.method),
                *(str(best.n), _spread(best), f"{best.median:.2f}", f"{best.worst:.2f}"),
                *(_spread(last), figures.get(name, {}).get(row.method, "")),
                f"{row.runs[0].found['updates']:,}",
                _mean((run.found["epochs"] for run in row.runs), 0),
                _mean((run.found["cpu_minutes"] for run in row.runs), 0),
            ]
            if row.method in ours:
                cells[1] += " (ours)"
            lines.append(f"| {' | '.join(cells)} |")
    return ["\n".join([*lines, ""]), *_notes(results, rows, shown)]


def _rows(results: Sequence[Result], order: Iterable[str]) -> list[Row]:
    rows = []
    for method in dict.fromkeys([*order, *(result.method for result in results)]):
        runs = sorted((r for r in results if r.method == method), key=lambda r: r.seed)
        if runs:
            _must_agree(runs, ("settings",))
            _must_agree(runs, ("updates",))
            trained = tuple(run for run in runs if not run.untrained)
            rows.append(Row(method, trained, tuple(run for run in runs if run.untrained)))
    return rows


def _must_agree(results: Sequence[Result], keys: tuple[str, ...]) -> None:
    """Refuse results of one table that differ in what must be the same."""

    def value(result: Result) -> Any:
        found: Any = result.found
        for key in keys:
            found = found[key]
        return found

    for result in results[1:]:
        if value(result) != value(results[0]):
            raise ReportError(
                f"{results[0].file} and {result.file} stand in one table but differ in their "
                f"{keys[0]} ({value(results[0])} and {value(result)})"
            )


def _notes(results: Sequence[Result], rows: Sequence[Row], shown: Sequence[str]) -> list[str]:
    notes = [*_left_out(rows), *_changes(rows)]
    chosen = dict.fromkeys(
        f"{c['metric']} on {c['subset']}" + (f" ({c['from']})" if c["from"] else "")
        for c in (result.found["chosen"] for result in results)
    )
    stamps = dict.fromkeys(
        stamp
        for result in results
        for name, stamp in result.found["signatures"].items()
        if name in shown
    )
    by_seed = ", ".join(
        f"{row.method} {_list(run.seed for run in row.runs)}" for row in rows if row.runs
    )
    notes.append(f"Checkpoints were chosen by {_list(chosen)}. Seeds: {by_seed}.\n")
    notes.append(", ".join(f"`{stamp}`" for stamp in stamps) + "\n")
    return notes


def _left_out(rows: Sequence[Row]) -> list[str]:
    out = [f"{row.method} {_list(r.seed for r in row.left_out)}" for row in rows if row.left_out]
    if not out:
        return []
    return [
        f"Left out of n, as the paper leaves out runs that have at most {UNTRAINED:.0f}% of their "
        f"training set right (here of the part held out from it): {', '.join(out)}.\n"
    ]


def _changes(rows: Sequence[Row]) -> list[str]:
    """The relative change of CTER between each method and its baseline."""
    from compgen.scoring.significance import relative_change

    by_method = {row.method: row for row in rows if row.runs}
    told = []
    for row in by_method.values():
        baseline = by_method.get(baseline_of(row.method))
        if baseline is None or baseline is row:
            continue
        for name, level in (("cter instance", False), ("cter aggregate", True)):
            a, b = (_pooled(one, level) for one in (baseline, row))
            if len(a) == len(b) and sum(a):
                found = relative_change(a, b)
                low, high = found.interval
                told.append(
                    f"| {name} | {row.method} | {baseline.method} | {found.change:+.1f}% | "
                    f"[{low:+.1f}%, {high:+.1f}%] |"
                )
    if not told:
        return []
    head = [
        "| relative change | method | to | | 95% interval |",
        "| --- | --- | --- | ---: | --- |",
    ]
    note = (
        "The interval is a paired bootstrap over the groups of five sentences that share a "
        "compound, whose errors are means over a method's seeds: it is about other sentences, not "
        "about other seeds.\n"
    )
    return ["\n".join([*head, *sorted(told), ""]), note]


def baseline_of(method: str) -> str:
    """The plain model of a method: with relative positions, as SQ-Transformer's, or without."""
    return "transformer" if method.partition("-")[0] in ("proto", "cat") else "plain"


def _pooled(row: Row, aggregate: bool) -> list[float]:
    """The share of errors in each group, or whether there is one, as a mean over the seeds."""
    seeds = []
    for run in row.runs:
        verdicts = run.found["verdicts"].get("cter instance")
        if verdicts is None:
            return []
        values = unpack(verdicts["bits"], verdicts["of"])
        seeds.append([float(value > 0) for value in values] if aggregate else values)
    return [sum(values) / len(values) for values in zip(*seeds, strict=True)]


def _spread(summary: Summary) -> str:
    return f"{summary.mean:.2f}" + ("" if summary.std is None else f" ± {summary.std:.2f}")


def _mean(values: Iterable[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):,.{digits}f}" if known else ""


def _list(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))
