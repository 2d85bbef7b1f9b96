"""Says in one line how a number came about, in sacreBLEU's manner."""

from importlib import metadata


def signature(metric: str, n: int) -> str:
    """A line like ``metric:exact_match|case:mixed|n:7706|version:0.1.0``.

    Args:
        metric: the name of the metric.
        n: the number of sentences that were scored.
    """
    try:
        version = metadata.version("compgen_fairseq")
    except metadata.PackageNotFoundError:  # used through --user-dir without being installed
        version = "uninstalled"
    return f"metric:{metric}|case:mixed|n:{n}|version:{version}"
