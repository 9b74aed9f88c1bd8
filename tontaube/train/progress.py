"""Time budget, learning-rate schedule, checkpoints and curves of one training run."""

from __future__ import annotations

import csv
import math
import time
from pathlib import Path
from typing import Any

import torch

SAVE_EVERY = 180.0  # seconds


class Progress:
    """Counts steps and working seconds across interruptions; everything is kept in ``folder``.

    ``state`` names the objects (modules, optimizers) whose ``state_dict`` makes up a checkpoint.
    """

    def __init__(self, folder: Path, minutes: float, state: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.budget, self._state = folder, minutes * 60, state
        self.step, self.spent = 0, 0.0
        path = folder / "checkpoint.pt"
        if path.exists():
            saved = torch.load(path, weights_only=True)
            for name, part in state.items():
                part.load_state_dict(saved[name])
            self.step, self.spent = saved["step"], saved["spent"]
            print(f"resuming {folder} at step {self.step}, {self.spent / 60:.0f} min")
        self._since = self._saved = time.monotonic()

    @property
    def fraction(self) -> float:
        """How much of the budget is used, 0..1."""
        return min(1.0, self.spent / self.budget)

    @property
    def running(self) -> bool:
        """Whether there is budget left."""
        return self.spent < self.budget

    def advance(self) -> None:
        """One optimizer step is done; saves a checkpoint every few minutes."""
        now = time.monotonic()
        self.spent += now - self._since
        self._since = now
        self.step += 1
        if now - self._saved > SAVE_EVERY or not self.running:
            self.save()

    def save(self) -> None:
        """Write the checkpoint, atomically."""
        saved = {name: part.state_dict() for name, part in self._state.items()}
        saved |= {"step": self.step, "spent": self.spent}
        torch.save(saved, self.folder / "checkpoint.tmp")
        (self.folder / "checkpoint.tmp").rename(self.folder / "checkpoint.pt")
        self._saved = time.monotonic()

    def log(self, kind: str, **figures: float) -> None:
        """Append figures to ``curves.csv`` (long form) and print them."""
        path = self.folder / "curves.csv"
        fresh = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.writer(file)
            if fresh:
                writer.writerow(["step", "seconds", "kind", "name", "value"])
            for name, value in figures.items():
                writer.writerow([self.step, round(self.spent), kind, name, f"{value:.5f}"])
        shown = " ".join(f"{name} {value:.3f}" for name, value in figures.items())
        print(f"{self.step} {self.spent:.0f}s {kind}: {shown}", flush=True)


def cosine(fraction: float, step: int, warmup: int = 100, floor: float = 0.03) -> float:
    """Warm-up, then a cosine from 1 to ``floor`` over the budget."""
    warm = min(1.0, (step + 1) / warmup)
    return warm * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * fraction)))


def linear_after(fraction: float, step: int, hold: float = 0.3, floor: float = 0.02) -> float:
    """Warm-up, constant until ``hold``, then linear to ``floor``."""
    warm = min(1.0, (step + 1) / 100)
    return warm * min(1.0, floor + (1 - floor) * (1 - fraction) / (1 - hold))
