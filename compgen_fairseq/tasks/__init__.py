"""Tasks: from binarized data to samples, and what validation reports about them."""
