"""Other batches than those of one length: lengths mixed."""

import numpy as np
from fairseq.data import BaseWrapperDataset


class MixedLengthsDataset(BaseWrapperDataset):
    """A parallel corpus whose batches hold sentences of any length, drawn anew each epoch.

    Sorted by length, sentences of one template lie side by side, and a batch says little about the
    others.  ``--max-tokens`` counts padding, so mixed ones hold two to three times fewer sentences.
    """

    def ordered_indices(self) -> np.ndarray:
        return np.random.permutation(len(self))  # seeded by fairseq with seed and epoch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return False
