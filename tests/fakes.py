"""Stages, a codec and a clock without a model: quick, deterministic, and counting what they hold.

A fake stage's codes depend on its job's input and seed alone, as a real one's; its steps take
virtual time.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from tokenizers import Tokenizer

from tontaube.bundle import (
    CodecPart,
    Description,
    SamplingDefaults,
    Segmentation,
    Silence,
    Streaming,
    VoicePart,
)
from tontaube.stages.reading import Grammar, Reading
from tontaube.tokens import StageConfig, TextTokenizer, Vocabulary
from tontaube.train.tokenizer import build_tokenizer
from tontaube.types import STREAMS, Codes, Samples, Sampling, StageJob, StageOutput, Voice

SEMANTIC, ACOUSTIC = 64, 16
ONSET = 5
RATE, HOP = 24_000, 1_920


class Clock:
    """Virtual seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def by_text(job: StageJob) -> int:
    """A length for CB0: about as long as the input, at least the minimum."""
    return max(job.min_codes, min(job.max_codes - 1, len(job.input.ids)))


@dataclass
class FakeStage:
    """A StageModule: one code a job and step; ``seconds`` is what a step of n jobs takes."""

    clock: Clock = field(default_factory=Clock)
    seconds: Callable[[int], float] = lambda batch: 0.004
    length: Callable[[StageJob], int] = by_text
    semantic: bool = False
    fail_at_step: int | None = None
    jobs: list[StageJob] = field(default_factory=list)
    aborted: list[str] = field(default_factory=list)
    ended: set[str] = field(default_factory=set)
    batches: list[int] = field(default_factory=list)
    _running: dict[str, tuple[StageJob, int]] = field(default_factory=dict)

    def add(self, job: StageJob) -> None:
        assert job.id not in self._running
        self.jobs.append(job)
        self._running[job.id] = (job, 0)

    def abort(self, job_id: str) -> None:
        self.aborted.append(job_id)
        self._running.pop(job_id, None)

    @property
    def running(self) -> int:
        return len(self._running)

    def step(self) -> list[StageOutput]:
        self.batches.append(len(self._running))
        self.clock.now += self.seconds(len(self._running))
        if self.fail_at_step is not None and len(self.batches) > self.fail_at_step:
            raise MemoryError("the fake device is full")
        outputs = []
        for job_id, (job, given) in list(self._running.items()):
            limit = min(self.length(job), job.max_codes) if self.semantic else job.max_codes
            if given == limit and self.semantic and limit < job.max_codes:
                outputs.append(StageOutput(job_id, (), "end_of_speech"))
                self.ended.add(job_id)
                del self._running[job_id]
                continue
            finish = "length" if given + 1 == job.max_codes else None
            outputs.append(StageOutput(job_id, (self._code(job, given),), finish))
            self._running[job_id] = (job, given + 1)
            if finish:
                self.ended.add(job_id)
                del self._running[job_id]
        return outputs

    def _code(self, job: StageJob, index: int) -> int:
        """Depends on what stands before it: the input's ids and the index after them."""
        size = SEMANTIC if self.semantic else ACOUSTIC
        text = repr((job.input.ids[:4], job.input.ids[-1], job.sampling, index))
        return 8 + int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest()) % (
            size - 8
        )


class FakeDecoder:
    """Each frame becomes ``HOP`` samples that tell its codes; one frame is withheld."""

    def __init__(self, clock: Clock | None = None, seconds_per_frame: float = 0.001) -> None:
        self._clock = clock or Clock()
        self._cost = seconds_per_frame
        self._held = np.zeros((STREAMS, 0), np.int64)
        self.finished = False

    def push(self, codes: Codes) -> Samples:
        assert not self.finished
        self._clock.now += self._cost * codes.shape[1]
        held = np.concatenate((self._held, codes), axis=1)
        self._held = held[:, -1:]
        return audio_of(held[:, :-1])

    def finish(self) -> Samples:
        self.finished = True
        return audio_of(self._held)


def audio_of(codes: Codes) -> Samples:
    """Codes [4, T] → samples [T * HOP]: a loud square whose level is a digest of the frame."""
    weights = np.array([1, 100, 2_000, 40_000])
    level = 0.2 + (weights @ codes) / 1e6
    sign = np.where(np.arange(HOP) % 96 < 48, 1.0, -1.0)
    return np.outer(level, sign).reshape(-1).astype(np.float32)


def description(**changes: object) -> Description:
    """A bundle's description with small segments and quick pieces."""
    fields: dict[str, object] = {
        "id": "fake",
        "revision": "1",
        "license": "Apache-2.0",
        "codec": CodecPart(kind="spectral", weights="none", features="logmel"),
        "languages": {"english": "en", "german": "de"},
        "styles": ("audiobook", "conversational"),
        "default_voice": "anna",
        "voices": (
            VoicePart(id="anna", name="Anna", language="english", style="audiobook"),
            VoicePart(id="ben", name="Ben", language="german", style="conversational"),
        ),
        "segmentation": Segmentation(max_characters=40, lookahead=10),
        "sampling": SamplingDefaults(tries=3),
        "silence": Silence(
            onset=ONSET, codes=(ONSET, 1, 2), trailing=(3, 0, 0, 0), trailing_frames=2
        ),
        "streaming": Streaming(initial_frames=10, withheld_frames=1, growth=1.5, max_frames=24),
    }
    return Description.model_validate(fields | changes)


def grammar(about: Description | None = None) -> Grammar:
    """Small vocabularies over the small tokenizer."""
    about = about or description()
    tokenizer = _tokenizer(tuple(about.languages), about.styles)
    ids = {name: tokenizer.token_to_id(name) for name in tokenizer.get_vocab()}
    first = max(ids.values()) + 1
    configs = [
        StageConfig(
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=8,
            intermediate_size=16,
            vocab_size=first + SEMANTIC + stage * ACOUSTIC,
            audio_token_start_id=first,
            target_codebook=stage,
            pad_token_id=ids["<|endoftext|>"],
            eos_token_id=ids["<|end_of_speech|>"],
            audio_marker_token_id=ids["<|audio_split|>"],
            text_marker_token_id=ids["<|text_split|>"],
            semantic_vocab_size=SEMANTIC,
            acoustic_vocab_size=ACOUSTIC,
        )
        for stage in range(STREAMS)
    ]
    return Grammar(about, TextTokenizer(tokenizer), tuple(map(Vocabulary, configs)))


@functools.cache
def _tokenizer(languages: tuple[str, ...], styles: tuple[str, ...]) -> Tokenizer:
    return build_tokenizer(languages, styles)


def reading(of: Grammar, seed: int = 0, tries: int = 3) -> Reading:
    """A voice without a prompt."""
    voice = Voice("anna", "Anna", "english", "audiobook", np.zeros((STREAMS, 0), np.int64))
    return Reading(
        grammar=of,
        voice=voice,
        control=of.tokenizer.control("english", "audiobook"),
        semantic=Sampling(temperature=0.8, top_p=0.95, top_k=50, seed=seed),
        acoustic=Sampling(seed=seed),
        tries=tries,
    )


def fake_stages(clock: Clock) -> list[FakeStage]:
    """CB0..CB3."""
    return [FakeStage(clock=clock, semantic=stage == 0) for stage in range(STREAMS)]
