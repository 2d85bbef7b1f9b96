"""Metrics: pure functions over strings, and the parser of fairseq-generate's log."""
