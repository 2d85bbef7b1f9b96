"""Says in one line how a number came about, in sacreBLEU's manner."""

from importlib import metadata


def signature(metric: str, n: int, **settings: str) -> str:
    """A line like ``metric:exact_match|case:mixed|n:7706|version:0.1.0``.

    Args:
        metric: the name of the metric.
        n: the number of sentences that were scored.
        settings: what else the number depends on, such as ``rules="strict"``; put before ``n``.
    """
    stated = {"metric": metric, "case": "mixed", **settings, "n": n, "version": version()}
    return "|".join(f"{key}:{value}" for key, value in stated.items())


def version() -> str:
    """The installed version of this package."""
    try:
        return metadata.version("compgen_fairseq")
    except metadata.PackageNotFoundError:  # used through --user-dir without being installed
        return "uninstalled"
