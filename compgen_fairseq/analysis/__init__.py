"""Pictures and tables from checkpoints and outputs: one module per kind of ``compgen-analyze``."""


class AnalysisError(ValueError):
    """What cannot be analysed; the message is one sentence that names the file, flag or word."""
