"""What this process keeps of memory that it does not use: bounded, so that a server stays as large
as it is after its first minutes.

oneDNN compiles a product for each matrix and number of rows, and both it and torch keep the last
1024: with pieces of speech of all lengths that is hundreds of MiB, reached only after hours. And
glibc gives every thread free lists of its own, which hold what one thread freed from the others.
"""

from __future__ import annotations

import ctypes
import os
import sys

KERNELS = 128
"""Those of some fifteen lengths; compiling one again takes a millisecond."""

_CAPACITIES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")  # oneDNN's, torch's
_ARENAS = "MALLOC_ARENA_MAX"  # by which glibc would be told before the process starts
_M_ARENA_MAX = -8  # malloc.h


def bound_memory() -> None:
    """Before anything is computed: all is read once. What the operator set stays."""
    for name in _CAPACITIES:
        os.environ.setdefault(name, str(KERNELS))
    if sys.platform == "linux" and _ARENAS not in os.environ:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's; others have one list
        if mallopt is not None:
            mallopt(_M_ARENA_MAX, 1)
