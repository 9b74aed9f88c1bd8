"""C0 by definition: which code stands for which three phonemes.

A frame's code follows from its phonemes alone, so that CB0 can learn from labels without speech and
never from an encoder's doubts. The codes are the commonest triples; any other is written as the
nearest of them. The codec's encoder learns to hear them (``codec.semantic``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tontaube.train.phonemes import PER_FRAME
from tontaube.train.teacher import PHONEMES

Triples = npt.NDArray[np.int64]
LOST, FOREIGN = 2, 3  # costs, beside 1 for a third that differs


class CodeTable:
    """Triples of phonemes [T, 3] ↔ codes [T]."""

    def __init__(self, triples: Triples) -> None:
        """``triples`` [N, 3]: what each code stands for."""
        self.triples = triples
        self._known = np.full(PHONEMES**PER_FRAME, -1, np.int32)
        self._known[_numbers(triples)] = np.arange(len(triples))

    @classmethod
    def of(cls, spoken: Iterable[tuple[str, Triples]], size: int) -> CodeTable:
        """The ``size`` commonest triples of ``(language, triples)``, languages counted alike."""
        counts: dict[str, npt.NDArray[np.float64]] = defaultdict(
            lambda: np.zeros(PHONEMES**PER_FRAME)
        )
        for language, triples in spoken:
            np.add.at(counts[language], _numbers(triples), 1)
        shares = np.sum([c / c.sum() for c in counts.values()], 0)
        found = np.argsort(-shares, kind="stable")[:size]
        return cls(np.stack(np.unravel_index(found, (PHONEMES,) * PER_FRAME), 1))

    @classmethod
    def load(cls, path: Path) -> CodeTable:
        """What ``save`` wrote."""
        return cls(np.load(path).astype(np.int64))

    def save(self, path: Path) -> None:
        """Write the triples."""
        np.save(path, self.triples.astype(np.uint8))

    def codes(self, triples: Triples) -> npt.NDArray[np.int64]:
        """Triples [T, 3] → codes [T]."""
        numbers = _numbers(triples)
        for unknown in np.unique(numbers[self._known[numbers] < 0]):
            triple = np.array(np.unravel_index(unknown, (PHONEMES,) * PER_FRAME))
            self._known[unknown] = self._nearest(triple)
        found: npt.NDArray[np.int64] = self._known[numbers].astype(np.int64)
        return found

    def _nearest(self, triple: npt.NDArray[np.int64]) -> int:
        """A boundary may move before a phoneme is lost, and none may come in if it can be helped;
        of equals the commonest."""
        differ = (self.triples != triple).sum(1)
        lost = sum(~(self.triples == phoneme).any(1) for phoneme in set(triple.tolist()))
        foreign = (~np.isin(self.triples, triple)).sum(1)
        return int(np.argmin(differ + LOST * lost + FOREIGN * foreign))


def _numbers(triples: Triples) -> npt.NDArray[np.int64]:
    number: npt.NDArray[np.int64] = np.ravel_multi_index(
        tuple(triples.T), (PHONEMES,) * PER_FRAME
    ).astype(np.int64)
    return number
