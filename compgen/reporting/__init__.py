"""Evaluated runs: reading what their folders hold, putting seeds together, and showing it."""
