"""Building blocks: tensors in, tensors out."""
