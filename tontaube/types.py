"""The frozen values that cross the boundaries between rooms; they know no model, no server.

On the arrows: ``str → Segment → StageInput → codes int[4, T] → AudioChunk``. Codes are plain
integers inside a stream's own codebook (never vocabulary ids, which only ``tokens`` and
``layout`` handle).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]  # [streams, frames]
Samples = npt.NDArray[np.float32]  # [samples], 24 kHz mono, about -1..1

STREAMS = 4  # C0 semantic, C1..C3 acoustic (report, section 3.1)


@dataclass(frozen=True, slots=True)
class Continuation:
    """Speech to go on from: the text and the codes ``[4, T]`` of its last segment."""

    text: str
    codes: Codes = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechRequest:
    """What somebody wants to hear. ``None`` means: the voice's or the bundle's default.

    ``speed`` changes the tempo at the same pitch; ``initial_seconds`` is the length of the first
    piece that is refined and emitted while the rest is still being written; ``continues`` is what
    was said before, to go on in the same manner.
    """

    text: str
    voice: str | None = None
    language: str | None = None
    style: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    acoustic_temperature: float | None = None
    seed: int | None = None
    initial_seconds: float | None = None
    speed: float = 1.0
    normalize: bool = True
    trim_silence: bool = True
    continues: Continuation | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """A text chunk of a request: its stripped text, and its range in the request's text."""

    index: int
    text: str
    start: int
    end: int
    last: bool


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a stage draws its codes (report defaults are in the bundle's description)."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # 0: all
    seed: int = 0


@dataclass(frozen=True, slots=True)
class StageInput:
    """A serialized stage prompt: vocabulary ids and their logical positions (report, section 4).

    ``next_position`` is the position of the first code to be generated; later ones follow by one.
    ``cache_salt`` is set where positions depend on tokens that come later (split markers), so that
    a prefix cache keyed by ids alone would be wrong.
    """

    ids: tuple[int, ...]
    positions: tuple[int, ...]
    next_position: int
    cache_salt: str | None = None


@dataclass(frozen=True, slots=True)
class StageJob:
    """One sequence for one stage. Codes count in head order: CB0's head has two rows more than its
    codebook, ``end_of_speech`` = size and ``audio_split`` = size + 1; both end the job.

    ``bias`` is added to the logits of the given codes; before ``min_codes`` codes the two
    structural ones are masked. A job ends at ``max_codes`` at the latest.
    """

    id: str
    input: StageInput
    max_codes: int
    min_codes: int = 0
    sampling: Sampling = Sampling()
    bias: Mapping[int, float] = field(default_factory=dict)
    priority: float = 0.0  # smaller is more urgent


@dataclass(frozen=True, slots=True)
class StageOutput:
    """What one step gave one job: its new codes, without structural ones; ``finish`` says how it
    ended (None: it goes on)."""

    job_id: str
    codes: tuple[int, ...]
    finish: str | None = None  # "end_of_speech" | "audio_split" | "length"


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice: reference codes ``[4, T]`` (T may be 0: the model's own voice) and its defaults."""

    id: str
    name: str
    language: str
    style: str
    codes: Codes = field(repr=False)
    preview: str | None = None  # path of an audio file inside the bundle or the data folder


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """A piece of finished audio: samples at 24 kHz, where it starts in the whole (in samples), the
    segment it belongs to, and how many characters of the request's text are spoken by its end (a
    guess inside a segment)."""

    samples: Samples = field(repr=False)
    start: int
    segment: Segment
    text_end: int = 0
