"""Vocabulary ids ↔ the engine's: a stage's own codes first, in the order of its head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tontaube.tokens import Vocabulary


class EngineIds:
    """A permutation of one stage's vocabulary. An engine id below the head's size is that row of
    the head: what is drawn is a code as it stands."""

    def __init__(self, vocabulary: Vocabulary, size: int) -> None:
        """``size``: of the whole vocabulary."""
        own = np.array(vocabulary.head_ids(), np.int64)
        self.order = np.concatenate((own, np.setdiff1d(np.arange(size), own)))
        """The vocabulary id of each engine id."""
        self._engine = np.empty(size, np.int64)
        self._engine[self.order] = np.arange(size)

    def translate(self, ids: Sequence[int]) -> tuple[int, ...]:
        """Vocabulary ids → the engine's. Raises IndexError for an id that is none."""
        return tuple(self._engine[np.asarray(ids, np.int64)].tolist())
