"""The models: one file per method."""
