"""Puts runs of one method with several seeds together, and refuses what is not comparable."""

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from compgen.reporting.flags import decoding
from compgen.reporting.runs import (
    DATA,
    DECODING,
    Run,
    ScoreName,
    differences,
    named,
    read_runs,
    short,
)
from compgen.text import read_json

COGS = ScoreName("cogs", "best")

# What must be the same for every run of a report, as far as both runs of a pair have it.
COMMON = frozenset(
    f"{DATA} {DECODING} max_update max_epoch stop_time_hours max_tokens batch_size update_freq "
    "best_checkpoint_metric dropout label_smoothing "
    "encoder_layers encoder_embed_dim encoder_ffn_embed_dim encoder_attention_heads "
    "decoder_layers decoder_embed_dim decoder_ffn_embed_dim decoder_attention_heads".split()
)


@dataclass(frozen=True)
class Summary:
    """One score over the seeds of a row.

    Args:
        values: the score of each run, in the order of the seeds.
        lower_is_better: whether the lowest is the best.
    """

    values: tuple[float, ...]
    lower_is_better: bool

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def std(self) -> float | None:
        """Standard deviation of the sample (n - 1); None for one run."""
        return statistics.stdev(self.values) if self.n > 1 else None

    @property
    def spread(self) -> str:
        """Mean and standard deviation, as ``12.34 ± 0.56``; of one run the mean alone."""
        return f"{self.mean:.2f}" + ("" if self.std is None else f" ± {self.std:.2f}")

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def best(self) -> float:
        return min(self.values) if self.lower_is_better else max(self.values)

    @property
    def worst(self) -> float:
        return max(self.values) if self.lower_is_better else min(self.values)

    def numbers(self) -> dict[str, float | None]:
        """All that sums the values up, by name."""
        names = ("n", "mean", "std", "median", "best", "worst")
        return {name: getattr(self, name) for name in names}


def cases_of(run: Run) -> dict[str, Any]:
    """Exact match of the chosen checkpoint by case, as the file of its score has it; or nothing.

    Raises:
        ValueError: if the file cannot be read.
    """
    return read_json(run.scores[COGS].file).get("cases", {}) if COGS in run.scores else {}


@dataclass(frozen=True)
class Row:
    """Runs that differ in nothing but their seed.

    Args:
        label: what to call them.
        runs: in the order of their seeds; all have the same scores.
    """

    label: str
    runs: tuple[Run, ...]

    @property
    def settings(self) -> dict[str, Any]:
        return self.runs[0].settings

    def summary(self, score: ScoreName) -> Summary | None:
        """A score over the seeds, or None where these runs were not given it."""
        if score not in self.runs[0].scores:
            return None
        return Summary(tuple(run.scores[score].value for run in self.runs), score.lower_is_better)

    def cases(self) -> dict[str, Summary]:
        """Exact match over the seeds by case, of the chosen checkpoints; empty without cases.

        Raises:
            ValueError: if a file of scores cannot be read.
        """
        found = list(map(cases_of, self.runs))
        return {
            case: Summary(tuple(cases[case]["score"] for cases in found), lower_is_better=False)
            for case in found[0]
            if all(case in cases for cases in found)
        }


@dataclass(frozen=True)
class Report:
    """Comparable rows.

    Args:
        rows: in the order in which their first run was given.
        differing: the settings in which rows differ, as ``section.option``.
    """

    rows: tuple[Row, ...]
    differing: tuple[str, ...]

    @property
    def scores(self) -> list[ScoreName]:
        """The names of all scores, sorted, the chosen checkpoint before the last."""
        return sorted({score for row in self.rows for score in row.runs[0].scores})

    def signature(self, score: ScoreName) -> str:
        """How a score was counted: in one way for all runs, unless that was allowed to differ."""
        rows = (row for row in self.rows if score in row.runs[0].scores)
        found = {run.scores[score].signature for row in rows for run in row.runs}
        return "; ".join(sorted(found))


def report(runs: Sequence[Run], may_differ: frozenset[str] = frozenset()) -> Report:
    """Group runs into rows and check that they may stand in one table.

    A row is made of runs whose settings are all the same but for the seed.  All runs must agree in
    the data, the budget (updates, batch size, size of the model, dropout), the updates reached and
    how scores were counted.

    Args:
        runs: from :func:`~compgen.reporting.runs.read_run`, in the order of the table.
        may_differ: names of settings, ``updates`` and ``signature`` among them, that may differ
            between rows; runs that differ in one of the settings are never one row.

    Raises:
        ValueError: if there are no runs, if two are not comparable, or if one row would have a
            seed twice.
    """
    if not runs:
        raise ValueError("there are no runs to report")
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(json.dumps(run.settings, sort_keys=True, default=str), []).append(run)
    rows = list(map(_row, groups.values()))
    _check_settings(rows, may_differ)
    _check_facts(runs, may_differ)
    differing = {n for a, b in combinations(rows, 2) for n in differences(a.settings, b.settings)}
    order = dict.fromkeys(name for row in rows for name in row.settings)
    return Report(tuple(_tell_apart(rows)), tuple(name for name in order if name in differing))


def report_of(folders: Iterable[str], allowed: str) -> Report:
    """:func:`report` of runs, results or folders of results; ``allowed``: names with commas.

    Raises:
        ValueError: if a run cannot be read, or as :func:`report`.
    """
    may_differ = frozenset(filter(None, allowed.split(",")))
    runs = [run for folder in folders for run in read_runs(folder, may_differ)]
    return report(runs, may_differ)


def _check_settings(rows: list[Row], may_differ: frozenset[str]) -> None:
    """Rows of one name must be one row; all must agree in data and budget."""
    for a, b in combinations(rows, 2):
        one_name = a.label == b.label
        in_both = a.settings.keys() & b.settings
        found = [
            option
            for option in differences(a.settings, b.settings)
            if (one_name or (option in in_both and short(option) in COMMON))
            and not named(option, may_differ)
        ]
        if found:
            _refuse(a.runs[0], b.runs[0], found, a.label if one_name else None)


def _check_facts(runs: Sequence[Run], may_differ: frozenset[str]) -> None:
    """All runs must have got equally far and have been scored in one way."""
    first = runs[0]
    for run in runs[1:]:
        if run.updates != first.updates and not named("updates", may_differ):
            raise ValueError(
                f"{first.path} was trained for {first.updates} updates and {run.path} for "
                f"{run.updates}; if that is meant, say --allow-differences updates"
            )
    for a_run, b_run in combinations(runs, 2):
        ways = [decoded(run) for run in (a_run, b_run)]
        if None not in ways and ways[0] != ways[1] and not named(DECODING, may_differ):
            raise ValueError(
                f"{a_run.path} and {b_run.path} were not decoded in the same way ({ways[0]} and "
                f"{ways[1]}); if that is meant, say --allow-differences {DECODING}"
            )
        for score in a_run.scores.keys() & b_run.scores.keys():
            signatures = [run.scores[score].signature for run in (a_run, b_run)]
            if signatures[0] != signatures[1] and not named("signature", may_differ):
                raise ValueError(
                    f"{score.name} of {a_run.path} and {b_run.path} was not counted in the same "
                    f"way ({' and '.join(signatures)}); if that is meant, say "
                    "--allow-differences signature"
                )


def decoded(run: Run) -> str | None:
    """The flags of a result's decoding that a score depends on; None if it does not tell."""
    flags = run.record.get(DECODING)
    return None if flags is None else decoding(flags.split("; "))


def _refuse(a: Run, b: Run, options: list[str], label: str | None) -> None:
    both = f"both are {label!r} but" if label else "cannot be compared: they"
    unset, names = "not set", ",".join(map(short, options))
    told = ", ".join(
        f"{short(option)} ({a.settings.get(option, unset)} and {b.settings.get(option, unset)})"
        for option in options
    )
    raise ValueError(
        f"{a.path} and {b.path} {both} differ in {told}; "
        f"if that is meant, say --allow-differences {names}"
    )


def _row(runs: list[Run]) -> Row:
    ordered = sorted(runs, key=lambda run: run.seed)
    for a, b in pairwise(ordered):
        if a.seed == b.seed:
            raise ValueError(
                f"{a.path} and {b.path} have the same settings and the same seed, {a.seed}"
            )
    for run in ordered[1:]:
        apart = ordered[0].scores.keys() ^ run.scores.keys()
        if apart:
            score = min(apart)
            without, with_it = sorted((ordered[0], run), key=lambda run: score in run.scores)
            raise ValueError(
                f"{without.path} has no {score.name} of checkpoint_{score.checkpoint}.pt, unlike "
                f"{with_it.path}; evaluate it again"
            )
    return Row(" / ".join(dict.fromkeys(run.label for run in runs)), tuple(ordered))


def _tell_apart(rows: list[Row]) -> list[Row]:
    """Add to labels that stand for several rows the settings in which those differ."""
    told = []
    for row in rows:
        others = [other for other in rows if other is not row and other.label == row.label]
        names = {n for other in others for n in differences(row.settings, other.settings)}
        told_by = described(row, sorted(names))
        told.append(Row(f"{row.label} ({told_by})" if told_by else row.label, row.runs))
    return told


def described(row: Row, settings: Iterable[str]) -> str:
    """``lr=0.001, dropout=0.1``; the rate, which fairseq has in three sections, once."""
    values = {short(name): row.settings.get(name, "not set") for name in settings}
    one = {n: v[0] if isinstance(v, list) and len(v) == 1 else v for n, v in values.items()}
    return ", ".join(f"{name}={value}" for name, value in one.items())


def span(numbers: Sequence[int]) -> str:
    """``9,000``, or ``9,000 to 10,000``."""
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
