"""What the benchmark of voices says of clones."""

from __future__ import annotations

import numpy as np

from tontaube.bench.speakers import likeness_lines

A, B, C = np.eye(3, dtype=np.float32)


def test_clones_are_compared_with_all_references() -> None:
    mixed = np.array([0.6, 0.8, 0], np.float32)  # nearer to B than to A
    lines = likeness_lines({"a": [A, mixed], "b": [B]}, {"a": A, "b": B, "c": C}, lambda x: x)
    assert lines == [
        "a clone and its reference: 0.867 (0.600..1.000, 3 pairs)",
        "different references: 0.000 (0.000..0.000, 3 pairs)",
        "nearest to its own reference: 2 of 3",
    ]


def test_one_reference_has_no_other_to_be_compared_with() -> None:
    lines = likeness_lines({"a": [A]}, {"a": A}, lambda x: x)
    assert lines[1] == "different references: none"
