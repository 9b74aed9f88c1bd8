"""What steps of the five modules cost: a table for one kind of device, or what a server measured.

The default table is an assumption, not a measurement: an H100 SXM with TontaubeV1 in bf16. A step
of a stage reads its weights without the embeddings (2.97, 0.56, 0.31 and 0.19 GB of 3.35 TB/s, at
two thirds of the bandwidth) and has about 0.4 ms of launches and sampling, then a little for each
further sequence; prompts are read at 400 TFLOP/s. It is checked against the report, which has, on
a device with half the bandwidth, about 200 ms to the first 40 frames; this table gives 170 ms. The
codec's share is from the same place: what eight streams' 50 times real time leaves for it, halved.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tontaube.errors import InvalidRequest

STAGES = ("cb0", "cb1", "cb2", "cb3")


@dataclass(frozen=True, slots=True)
class StageCurve:
    """A stage: seconds of a step by its number of sequences, and of each new token of a prompt."""

    batches: tuple[int, ...]
    seconds: tuple[float, ...]
    token_seconds: float = 0.0

    def __call__(self, batch: int) -> float:
        """Interpolated; beyond the table as steep as at its end."""
        if len(self.batches) == 1 or batch <= self.batches[0]:
            return self.seconds[0]
        right = min(bisect_left(self.batches, batch), len(self.batches) - 1)
        (x0, x1), (y0, y1) = (v[right - 1 : right + 1] for v in (self.batches, self.seconds))
        return y0 + (y1 - y0) * (batch - x0) / (x1 - x0)

    def scaled(self, factor: float) -> Self:
        """Everything ``factor`` times as long."""
        seconds = tuple(factor * second for second in self.seconds)
        return type(self)(self.batches, seconds, factor * self.token_seconds)


@dataclass(frozen=True, slots=True)
class CodecCurve:
    """The codec: seconds of a call, and of each frame in it."""

    call: float
    frame: float

    def __call__(self, frames: int) -> float:
        return self.call + frames * self.frame

    def scaled(self, factor: float) -> Self:
        """Everything ``factor`` times as long."""
        return type(self)(factor * self.call, factor * self.frame)


@dataclass(frozen=True, slots=True)
class Curves:
    """All five modules."""

    stages: tuple[StageCurve, ...]
    codec: CodecCurve

    def fitted(self, measured: Mapping[str, tuple[float, float]], frames: float = 60.0) -> Curves:
        """Each curve scaled to pass through its module's ``(mean batch, seconds of a step)``; the
        codec's call is taken to have had ``frames``. Modules that are missing keep theirs."""
        stages = list(self.stages)
        for number, name in enumerate(STAGES):
            if name in measured:
                batch, seconds = measured[name]
                stages[number] = stages[number].scaled(seconds / stages[number](round(batch) or 1))
        codec = self.codec
        if "codec" in measured:
            codec = codec.scaled(measured["codec"][1] / codec(round(frames)))
        return Curves(tuple(stages), codec)


_BATCHES = (1, 4, 8, 16, 32, 64)
H100 = Curves(
    stages=(
        StageCurve(_BATCHES, (0.0018, 0.0019, 0.0020, 0.0023, 0.0029, 0.0042), 9e-6),
        StageCurve(_BATCHES, (0.0009, 0.00095, 0.0010, 0.00115, 0.0015, 0.0022), 1.4e-6),
        StageCurve(_BATCHES, (0.00060, 0.00062, 0.00065, 0.00075, 0.0010, 0.0015), 0.8e-6),
        StageCurve(_BATCHES, (0.00045, 0.00047, 0.00050, 0.00058, 0.0008, 0.0012), 0.5e-6),
    ),
    codec=CodecCurve(call=0.005, frame=0.00035),
)


def load(path: Path) -> Curves:
    """``{"cb0": {"step_ms": {"1": 1.8, "16": 2.3}, "token_us": 9}, …, "codec": {"call_ms": 5,
    "frame_ms": 0.35}}``. Raises InvalidRequest if that is not in the file."""
    try:
        table: dict[str, Any] = json.loads(path.read_text("utf-8"))
        codec = CodecCurve(table["codec"]["call_ms"] / 1e3, table["codec"]["frame_ms"] / 1e3)
        return Curves(tuple(_stage(table[name]) for name in STAGES), codec)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidRequest(f"{path} has no step times ({error!r})", "curves") from error


def _stage(table: dict[str, Any]) -> StageCurve:
    steps = sorted((int(batch), float(ms) / 1e3) for batch, ms in table["step_ms"].items())
    if not steps or steps[0][1] <= 0:
        raise ValueError("no steps")
    batches, seconds = zip(*steps, strict=True)
    return StageCurve(batches, seconds, float(table.get("token_us", 0)) / 1e6)


_SAMPLE = re.compile(r"^tontaube_(step_seconds|step_batch)\{([^}]*)\} (\S+)$", re.MULTILINE)


def measured(metrics: str) -> dict[str, tuple[float, float]]:
    """A server's ``/metrics`` → ``(mean batch, median seconds of a step)`` of each module that has
    made steps."""
    seconds: dict[str, float] = {}
    batches: dict[str, float] = {}
    for kind, labels, value in _SAMPLE.findall(metrics):
        named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if kind == "step_batch":
            batches[named["module"]] = float(value)
        elif named.get("quantile") == "0.5":
            seconds[named["module"]] = float(value)
    return {name: (batches.get(name, 1.0), value) for name, value in seconds.items() if value > 0}
