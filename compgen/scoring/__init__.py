"""Metrics: pure functions over strings, and the fairseq scorers and parsers around them."""
