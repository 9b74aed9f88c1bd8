"""How many compiled kernels this process keeps on a CPU.

oneDNN compiles a product for each matrix and number of rows, and both it and torch keep the last
1024: with pieces of speech of all lengths that is hundreds of MiB, reached only after hours.
"""

from __future__ import annotations

import os

KEPT = 128
"""Those of some fifteen lengths; compiling one again takes a millisecond."""

_CAPACITIES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")  # oneDNN's, torch's


def bound_kernels() -> None:
    """Before anything is computed: both are read once. What the operator set stays."""
    for name in _CAPACITIES:
        os.environ.setdefault(name, str(KEPT))
