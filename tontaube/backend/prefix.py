"""Keys and values of prompts seen before, so that a voice's prompt is computed once.

Prompts are cut on a fixed grid; a block's key names every id and position up to its end, so
positions that depend on later tokens (split markers) need no salt. It knows no network.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

import numpy as np
import numpy.typing as npt
from torch import Tensor


class PrefixCache:
    """At most ``blocks`` blocks, the least recently used ones leave."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._kept: OrderedDict[bytes, Tensor] = OrderedDict()
        self.hits = 0  # blocks found
        self.misses = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes) -> Tensor | None:
        """The keys and values [layers, 2, block, kv_heads, d] of the block called ``key``."""
        block = self._kept.get(key)
        if block is None:
            self.misses += 1
            return None
        self.hits += 1
        self._kept.move_to_end(key)
        return block

    def put(self, key: bytes, block: Tensor) -> None:
        """Keep ``block``, which the caller never changes again."""
        self._kept[key] = block
        self._kept.move_to_end(key)
        while len(self._kept) > self._blocks:
            self._kept.popitem(last=False)


def block_keys(
    ids: npt.NDArray[np.int64], positions: npt.NDArray[np.int64], block: int
) -> list[bytes]:
    """A key for each whole block of a prompt (int [n] each) that ends before its last token,
    which is always computed: its output is what the prompt is for."""
    digest = hashlib.blake2b(digest_size=16)
    keys = []
    for end in range(block, len(ids), block):
        digest.update(ids[end - block : end].tobytes())
        digest.update(positions[end - block : end].tobytes())
        keys.append(digest.copy().digest())
    return keys
