"""RESULTS.md: the tables of a folder of results, beside the papers' figures."""

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compgen.reporting.choice import told
from compgen.reporting.comparison import pooled
from compgen.reporting.outcomes import NoOutcomes, outcomes
from compgen.reporting.report import Row, decoded, span
from compgen.reporting.runs import CHECKPOINTS, DATA, Run, ScoreName, read_result
from compgen.text import files_below

PAPERS = "papers.toml"
HELD_OUT = ("train20", "last20")  # validation sets of the training distribution's own data
VERSION = re.compile(r"\|version:.*")  # the end of a signature
UNTRAINED = 10.0  # percent
DOWN = " ↓"  # behind the name of a score whose best value is the lowest
INTRODUCTION = """\
# Results

Scores are percentages over whole test sets. *Mean ± std*, *median* and *worst* are over seeds, of
the checkpoint that validation chose; *last checkpoint* is mean ± std of the last one. *Paper* is
the paper's own figure, *ours* a method of no paper. A seed in brackets is left out of the scores.
"""


@dataclass(frozen=True)
class Trained:
    """The runs of one method in one setting, and those that are left out of the mean."""

    setting: str
    row: Row
    left_out: tuple[Run, ...]


def untrained(run: Run) -> bool:
    """Whether a result is of a Syntactic Attention that has not learned its training set.

    The paper leaves out runs with at most 10% training accuracy. What is known here is the
    accuracy on the part that was held out from the training set.
    """
    chosen = run.record["chosen"]
    by_accuracy = chosen["metric"] == "exact_match" and chosen["value"] is not None
    held_out = by_accuracy and chosen["from"] in HELD_OUT
    return run.label.startswith("syntactic") and held_out and chosen["value"] <= UNTRAINED


def tables(folder: Path | str) -> str:
    """RESULTS.md.

    Raises:
        ValueError: if a file cannot be read, or results of one setting cannot be compared.
    """
    papers, places = _papers(Path(folder) / PAPERS), _places(Path(folder))
    text = [INTRODUCTION, papers["introduction"]]
    for data in sorted(places, key=lambda name: ([*papers, name].index(name), name)):
        paper = papers.get(data, {})
        text.append(f"## {paper.get('title', data)}\n")
        if "source" in paper:
            text.append(f"Paper: {paper['source']}.\n")
        text += _tables(places[data], paper, papers["ours"])
    return "\n".join(text).rstrip("\n") + "\n"


def headlines(folder: Path | str) -> str:
    """The README's table: the rows that papers.toml names, as far as there are results.

    Raises:
        ValueError: see :func:`tables`.
    """
    papers, places = _papers(Path(folder) / PAPERS), _places(Path(folder))
    lines = ["| data | score | baseline | published method | ours |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for place, score, *names in papers["headlines"]:
        data, _, setting = place.partition("/")
        paper = papers.get(data, {})
        runs = places.get(data, {}).get(setting, [])
        rows = {one.row.label: one for one in _methods(setting, runs, ()) if one.row.runs}
        name = ScoreName(score, "best")
        if rows.keys() & set(names):
            cells = [_headline(one, name, rows, paper.get(score, {})) for one in names]
            title = f"{score.replace('_', ' ')}{DOWN if name.lower_is_better else ''}"
            where = f"{paper.get('title', data)}, `{setting}`"
            lines.append(f"| {where} | {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _headline(
    method: str, score: ScoreName, rows: dict[str, Trained], figures: dict[str, str]
) -> str:
    """A cell of the README's table."""
    found = rows[method].row.summary(score) if method in rows else None
    left_out = f", {len(rows[method].left_out)} left out" if found and rows[method].left_out else ""
    here = f"`{method}` {found.spread} (n = {found.n}{left_out})" if found else ""
    there = f"paper {figures[method]}" if method in figures else ""
    return "; ".join(filter(None, [here, there]))


def _places(folder: Path) -> dict[str, dict[str, list[Run]]]:
    """The results in a folder by data set and setting."""
    places: dict[str, dict[str, list[Run]]] = {}
    for file in files_below(folder, "*.json"):
        run, place = read_result(file), file.relative_to(folder).parts
        if len(place) != 3:
            raise ValueError(f"{file}: a result's place is {folder}/DATA/SETTING")
        places.setdefault(place[0], {}).setdefault(place[1], []).append(run)
    return places


def _papers(file: Path) -> dict[str, Any]:
    """What papers.toml says, figures as texts.

    Raises:
        ValueError: if it cannot be read; or a key has another kind of value, which is named.
    """
    found: dict[str, Any] = {"introduction": "", "ours": [], "headlines": []}
    of_all = tuple(found)
    try:
        found |= tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return found
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{file}: {error}") from None

    def must(right: bool, key: str, what: str) -> None:
        if not right:
            raise ValueError(f"{file}: {key} must be {what}")

    def texts(value: Any) -> bool:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)

    rows = found["headlines"]
    five = isinstance(rows, list) and all(texts(row) and len(row) == 5 for row in rows)
    must(isinstance(found["introduction"], str), "introduction", "a text")
    must(texts(found["ours"]), "ours", "a list of methods")
    must(five, "headlines", "rows of five texts")
    for data in [name for name in found if name not in of_all]:
        must(isinstance(found[data], dict), data, "a table")
        for key, value in found[data].items():
            if key in ("title", "source"):
                must(isinstance(value, str), f"{data}.{key}", "a text")
                continue
            kinds = set(map(type, value.values())) if isinstance(value, dict) else {None}
            must(kinds <= {str, int, float}, f"{data}.{key}", "a table of texts or numbers")
            found[data][key] = {method: str(figure) for method, figure in value.items()}
    return found


def _tables(
    settings: dict[str, list[Run]], paper: dict[str, Any], ours: Sequence[str]
) -> list[str]:
    """A table for each score of a data set, and what is to be said below them."""
    figures = {name: found for name, found in paper.items() if isinstance(found, dict)}
    order = [method for found in figures.values() for method in found]
    methods: list[Trained] = []
    for setting, runs in settings.items():
        _must_agree(runs, "data", lambda run: run.settings[DATA])
        _must_agree([run for run in runs if decoded(run) is not None], "ways to decode", decoded)
        methods += _methods(setting, runs, order)
    runs = [run for runs in settings.values() for run in runs]
    names = dict.fromkeys(score.name for run in runs for score in run.scores)
    shown = [name for name in figures or names if name in names]
    text = []
    for name in shown:
        rows = [_row(method, name, figures.get(name, {}), ours) for method in methods]
        title = f"{name.replace('_', ' ')}{DOWN if ScoreName(name, 'best').lower_is_better else ''}"
        head = "method | seeds | mean ± std | median | worst | last checkpoint | paper | updates"
        lines = [f"### {title}\n", f"| setting | {head} | epochs | parameters |"]
        lines += ["| --- | --- | --- | " + " | ".join(8 * ["---:"]) + " |", *filter(None, rows)]
        text.append("\n".join([*lines, ""]))
    return [*text, *_notes(runs, methods, shown)]


def _row(method: Trained, name: str, figures: dict[str, str], ours: Sequence[str]) -> str:
    """A line of a score's table; nothing if the method was not given it."""
    row = method.row
    seeds = [str(run.seed) for run in row.runs] + [f"({run.seed})" for run in method.left_out]
    cells = [method.setting, f"{row.label} (ours)" if row.label in ours else row.label]
    cells += [", ".join(seeds)]
    if not row.runs:
        return f"| {' | '.join(cells)} |{8 * ' |'}"
    best, last = (row.summary(ScoreName(name, checkpoint)) for checkpoint in CHECKPOINTS)
    if best is None or last is None:
        return ""
    cells += [best.spread, f"{best.median:.2f}", f"{best.worst:.2f}", last.spread]
    cells += [figures.get(row.label, ""), span([run.updates for run in row.runs])]
    epochs = [n for run in row.runs if (n := run.record["epochs"]) is not None]
    cells += [f"{sum(epochs) / len(epochs):,.0f}" if epochs else ""]
    cells += [span([run.record["parameters"] for run in row.runs])]
    return f"| {' | '.join(cells)} |"


def _methods(setting: str, runs: Sequence[Run], order: Iterable[str]) -> list[Trained]:
    """The runs of a setting by method, in the papers' order."""
    methods = []
    for label in dict.fromkeys([*order, *(run.label for run in runs)]):
        alike = sorted((run for run in runs if run.label == label), key=lambda run: run.seed)
        if alike:
            _must_agree(alike, "settings", lambda run: run.settings["settings"])
            _must_agree(alike, "scores", lambda run: sorted(map(" of ".join, run.scores)))
            _must_agree(alike, "ways to score", _signatures)
            row = Row(label, tuple(run for run in alike if not untrained(run)))
            methods.append(Trained(setting, row, tuple(filter(untrained, alike))))
    return methods


def _signatures(run: Run) -> list[str]:
    """How the run was scored, but for the versions."""
    return sorted({VERSION.sub("", score.signature) for score in run.scores.values()})


def _must_agree(runs: Sequence[Run], what: str, value: Callable[[Run], Any]) -> None:
    """Refuse results of one setting that differ in what must be the same."""
    for run in runs[1:]:
        if value(run) != value(runs[0]):
            raise ValueError(
                f"{runs[0].path} and {run.path} are of one setting but differ in their {what} "
                f"({value(runs[0])} and {value(run)})"
            )


def _notes(runs: Sequence[Run], methods: Sequence[Trained], shown: Sequence[str]) -> list[str]:
    stamps = dict.fromkeys(
        f"`{found.signature}`"
        for run in runs
        for score, found in run.scores.items()
        if score.name in shown
    )
    left_out = (
        f"Left out: at most {UNTRAINED:.0f}% of the pairs held out from training right (in the "
        "paper: of the training pairs). "
    )
    said = left_out if any(method.left_out for method in methods) else ""
    return [
        *_changes(methods),
        f"{said}{told(run.record['chosen'] for run in runs)}\n",
        f"{', '.join(stamps)}\n",
    ]


def _changes(methods: Sequence[Trained]) -> list[str]:
    """The relative change of CTER between each method and its baseline."""
    from compgen.scoring.significance import relative_change

    rows = {(one.setting, one.row.label): one.row for one in methods if one.row.runs}
    told = []
    for (setting, label), row in rows.items():
        baseline = rows.get((setting, baseline_of(label)))
        if baseline is None or label in ("plain", "transformer"):
            continue
        for name in ("cter instance", "cter aggregate"):
            a, b = (_pooled(one, ScoreName(name, "best")) for one in (baseline, row))
            if len(a) == len(b) and any(a):
                change, (low, high) = relative_change(a, b)
                told.append(
                    f"| {name} | {setting} | {label} | {baseline.label} | {change:+.1f}% | "
                    f"[{low:+.1f}%, {high:+.1f}%] |"
                )
    if not told:
        return []
    head = [
        "| relative change | setting | method | to | | 95% interval |",
        "| --- | --- | --- | --- | ---: | --- |",
    ]
    note = (
        "The interval is a paired bootstrap over groups of sentences that share a compound; a "
        "group's error is its mean over the method's seeds. It covers other sentences, not other "
        "seeds.\n"
    )
    return ["\n".join([*head, *sorted(told), ""]), note]


def baseline_of(method: str) -> str:
    """The plain model of a method: with relative positions, as SQ-Transformer's, or without."""
    return "transformer" if method.partition("-")[0] in ("proto", "cat") else "plain"


def _pooled(row: Row, score: ScoreName) -> list[float]:
    """The value of each group of sentences as a mean over the seeds; nothing if one is not kept."""
    try:
        return pooled([outcomes(run, score) for run in row.runs])
    except NoOutcomes:
        return []
