"""Encoder states -> sample per type -> k-means -> table of prototypes."""
