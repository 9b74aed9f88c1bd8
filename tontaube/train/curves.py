"""The curves of a run (``curves.csv`` of each part) → one picture."""

from __future__ import annotations

import csv
import shutil
from collections import defaultdict
from pathlib import Path

PARTS = ("semantic", "codec", "decoder", "cb0", "cb1", "cb2", "cb3")
SHOWN = {  # of a stage: "loss"
    "semantic": ("ph", "free"), "codec": ("rec", "ph", "coh"), "decoder": ("rec", "coh"),
}  # fmt: skip
SMOOTHING = 0.8

Curve = list[tuple[float, float]]  # minutes, value


def read_curves(path: Path) -> dict[str, Curve]:
    """``kind name`` → points."""
    curves: dict[str, Curve] = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            key = f"{row['kind']} {row['name']}"
            curves[key].append((float(row["seconds"]) / 60, float(row["value"])))
    return curves


def smoothed(curve: Curve) -> Curve:
    """An exponential average: single steps are noisy."""
    mean, points = curve[0][1], []
    for minutes, value in curve:
        mean = SMOOTHING * mean + (1 - SMOOTHING) * value
        points.append((minutes, mean))
    return points


def plot(run: Path, target: Path) -> None:
    """Write ``target/curves.png`` and a copy of every part's figures beside it."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    parts = [part for part in PARTS if (run / part / "curves.csv").exists()]
    figure, axes = pyplot.subplots(1, len(parts), figsize=(3.2 * len(parts), 3), squeeze=False)
    target.mkdir(parents=True, exist_ok=True)
    for part, axis in zip(parts, axes[0], strict=True):
        shutil.copy(run / part / "curves.csv", target / f"{part}.csv")
        for name, curve in read_curves(run / part / "curves.csv").items():
            if name.split()[1] not in SHOWN.get(part, ("loss",)):
                continue
            held = name.startswith("held-out")
            points = curve if held else smoothed(curve)
            axis.plot(*zip(*points, strict=True), label=name, marker="." if held else None)
        axis.set_title(part)
        axis.set_xlabel("minutes")
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(target / "curves.png", dpi=110)
