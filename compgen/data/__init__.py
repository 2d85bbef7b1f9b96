"""Data sets: grammars that generate them, and readers of their publishers' files."""
