"""Compositional generalization on text: data sets, scores, comparisons and reports.

Nothing here imports PyTorch or fairseq, but for what binarises labelled sentences.
"""
