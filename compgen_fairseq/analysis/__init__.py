"""Pictures and tables from checkpoints and outputs: one module per kind of ``compgen-analyze``."""
