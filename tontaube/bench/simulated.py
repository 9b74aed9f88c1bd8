"""Stages, a codec and a clock without a model: their steps take virtual time and give codes
that pass every check. Scheduler and pipeline cannot tell the difference.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import Context
from dataclasses import dataclass, field
from typing import TypeVarTuple, Unpack

import numpy as np

from tontaube.bench.curves import CodecCurve, StageCurve
from tontaube.bundle import CodecPart, Description, VoicePart
from tontaube.stages.reading import Grammar, Reading
from tontaube.tokens import StageConfig, TextTokenizer, Vocabulary
from tontaube.train.tokenizer import build_tokenizer
from tontaube.types import STREAMS, Codes, Samples, Sampling, StageJob, StageOutput, Voice

Arguments = TypeVarTuple("Arguments")

RATE = 1_000  # Hz; samples are counted, not heard
HOP = 80
_SPEECH = 20  # the code of every frame
_SEMANTIC, _ACOUSTIC = 64, 32  # codes; fewer than a model has, as nobody draws them


class Clock:
    """Virtual seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers follow the virtual clock. It must never be left idle: whoever
    drives the scheduler moves the clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.awaited = 0
        """Callbacks asked for so far: unchanged after a step, there is nobody to react to it."""

    def time(self) -> float:
        """Virtual seconds."""
        return self.clock.now

    def call_soon(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """As ever, counted."""
        self.awaited += 1
        return super().call_soon(callback, *args, context=context)


@dataclass(slots=True)
class _Sequence:
    """A job in a stage."""

    name: str
    left: int  # codes to come
    finish: str  # how it will end


@dataclass(slots=True)
class SimulatedStage:
    """A StageModule: one code a job and step, at the price of ``curve``.

    ``frames``: how long CB0 makes a segment, by the first two parts of the job's name, the
    stream's and the segment's; without it jobs give as many codes as are asked for.
    """

    curve: StageCurve
    clock: Clock
    frames: Mapping[str, int] | None = None
    _sequences: dict[str, _Sequence] = field(default_factory=dict)
    _unread: int = 0  # tokens of new prompts

    def add(self, job: StageJob) -> None:
        """Admit a job; its prompt is read in the next step."""
        self._unread += len(job.input.ids)
        left, finish = job.max_codes, "length"
        if self.frames is not None:
            wanted = self.frames[".".join(job.id.split(".")[:2])]
            if wanted < left:
                left, finish = wanted, "end_of_speech"
        self._sequences[job.id] = _Sequence(job.id, left, finish)

    def abort(self, job_id: str) -> None:
        """Forget a job."""
        self._sequences.pop(job_id, None)

    @property
    def running(self) -> int:
        """Jobs."""
        return len(self._sequences)

    def step(self) -> list[StageOutput]:
        """A code for every job."""
        self.clock.now += self.curve(len(self._sequences)) + self._unread * self.curve.token_seconds
        self._unread = 0
        outputs = []
        for sequence in list(self._sequences.values()):
            sequence.left -= 1
            finish = None
            if sequence.left <= 0:
                finish = sequence.finish
                del self._sequences[sequence.name]
            outputs.append(StageOutput(sequence.name, (_SPEECH,), finish))
        return outputs


class SimulatedDecoder:
    """Codes → as many samples of nothing, some frames later, at the price of ``curve``."""

    def __init__(self, curve: CodecCurve, clock: Clock, withheld: int) -> None:
        self._curve = curve
        self._clock = clock
        self._withheld = withheld
        self._held = 0

    def push(self, codes: Codes) -> Samples:
        """The next frames."""
        self._clock.now += self._curve(codes.shape[1])
        frames = max(0, self._held + codes.shape[1] - self._withheld)
        self._held += codes.shape[1] - frames
        return np.zeros(frames * HOP, np.float32)

    def finish(self) -> Samples:
        """The withheld ones."""
        self._clock.now += self._curve(self._held)
        return np.zeros(self._held * HOP, np.float32)


def grammar() -> Grammar:
    """The report's segments, pieces and rules over small vocabularies."""
    description = Description(
        id="simulated",
        revision="0",
        license="none",
        codec=CodecPart(kind="spectral", weights="none", features="logmel"),
        languages={"english": "en"},
        styles=("conversational",),
        default_voice="none",
        voices=(VoicePart(id="none", name="", language="english", style="conversational"),),
    )
    tokenizer = build_tokenizer(tuple(description.languages), description.styles)
    vocabulary = tokenizer.get_vocab()
    first = len(vocabulary)
    configs = [
        StageConfig(
            hidden_size=2,
            num_hidden_layers=1,
            num_attention_heads=1,
            num_key_value_heads=1,
            head_dim=2,
            intermediate_size=2,
            vocab_size=first + _SEMANTIC + stage * _ACOUSTIC,
            audio_token_start_id=first,
            target_codebook=stage,
            pad_token_id=vocabulary["<|endoftext|>"],
            eos_token_id=vocabulary["<|end_of_speech|>"],
            audio_marker_token_id=vocabulary["<|audio_split|>"],
            text_marker_token_id=vocabulary["<|text_split|>"],
            semantic_vocab_size=_SEMANTIC,
            acoustic_vocab_size=_ACOUSTIC,
        )
        for stage in range(STREAMS)
    ]
    return Grammar(description, TextTokenizer(tokenizer), tuple(map(Vocabulary, configs)))


def reading(of: Grammar) -> Reading:
    """A voice whose prompt has been read already, as a running server's have."""
    part = of.description.voices[0]
    voice = Voice(part.id, part.name, part.language, part.style, np.zeros((STREAMS, 0), np.int64))
    return Reading(
        grammar=of,
        voice=voice,
        control=of.tokenizer.control(part.language, part.style),
        semantic=Sampling(),
        acoustic=Sampling(),
        tries=1,
    )
