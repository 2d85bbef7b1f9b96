"""Data sets as fairseq reads them during a training."""
