"""A speech request → a plan: every value checked, every default filled in, nothing queued yet."""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from tontaube.config import Settings
from tontaube.errors import BundleError, InvalidRequest
from tontaube.pipeline import Delivery
from tontaube.stages.quality import FRAMES_PER_SECOND
from tontaube.stages.reading import Grammar, Reading
from tontaube.text.normalize import normalize
from tontaube.text.segments import split
from tontaube.types import STREAMS, Codes, Continuation, Sampling, Segment, SpeechRequest, Voice

T = TypeVar("T")
_SEEDS = 2**63


@dataclass(frozen=True, slots=True)
class Plan:
    """A request that can be served. ``key`` names its audio if that is the same each time."""

    segments: tuple[Segment, ...]  # none: the text is still to come
    reading: Reading
    delivery: Delivery
    language: str
    style: str
    normalize: bool
    key: str | None


class Planner:
    """Knows the model's grammar and the operator's limits."""

    def __init__(self, grammar: Grammar, settings: Settings) -> None:
        self._grammar = grammar
        self._settings = settings

    def plan(self, request: SpeechRequest, voice: Voice, *, dictated: bool = False) -> Plan:
        """Check a request; ``dictated``: its text comes later. Raises InvalidRequest."""
        _check_ranges(request)
        description = self._grammar.description
        language = description.language_named(request.language or voice.language)
        style = description.style_named(request.style or voice.style)
        segments: tuple[Segment, ...] = ()
        if not dictated:
            segments = self.segments(request.text, language, request.normalize)
            if not segments:
                raise InvalidRequest("there is nothing to speak in the text", "text")
        if request.continues is not None:
            self._check_continuation(request.continues)
            segments = tuple(replace(segment, index=segment.index + 1) for segment in segments)
        reading = self._reading(request, voice, (language, style))
        delivery = self._delivery(request)
        key = None
        drawn = reading.semantic.temperature > 0 or reading.acoustic.temperature > 0
        if segments and (request.seed is not None or not drawn):
            key = self._key(segments, reading, delivery)
        return Plan(segments, reading, delivery, language, style, request.normalize, key)

    def segments(self, text: str, language: str, normalized: bool) -> tuple[Segment, ...]:
        """A text as the model will read it; empty if there is nothing to speak. Raises
        InvalidRequest if it is too long or has a character the model cannot read."""
        if len(text) > self._settings.max_characters:
            limit = self._settings.max_characters
            raise InvalidRequest(f"the text is longer than {limit} characters", "text")
        description = self._grammar.description
        source = normalize(text, language) if normalized else text
        segments = tuple(split(source, description.segmentation))
        if not any(c.isalnum() for segment in segments for c in segment.text):
            return ()
        try:
            for segment in segments:
                self._grammar.tokenizer.characters(segment.text)
        except BundleError as error:
            raise InvalidRequest(str(error), "text") from error
        return segments

    def _reading(self, request: SpeechRequest, voice: Voice, label: tuple[str, str]) -> Reading:
        defaults = self._grammar.description.sampling
        seed = secrets.randbelow(_SEEDS) if request.seed is None else request.seed
        semantic = Sampling(
            temperature=_given(request.temperature, defaults.temperature),
            top_p=_given(request.top_p, defaults.top_p),
            top_k=_given(request.top_k, defaults.top_k),
            seed=seed,
        )
        acoustic = replace(
            semantic,
            temperature=_given(request.acoustic_temperature, defaults.acoustic_temperature),
        )
        return Reading(
            grammar=self._grammar,
            voice=voice,
            control=self._grammar.tokenizer.control(*label),
            semantic=semantic,
            acoustic=acoustic,
            tries=self._settings.tries or defaults.tries,
            continues=request.continues,
        )

    def _check_continuation(self, given: Continuation) -> None:
        description = self._grammar.description
        sizes = np.array(self._grammar.vocabularies[-1].sizes)
        codes = given.codes
        if codes.ndim != 2 or codes.shape[0] != STREAMS or (codes < 0).any():
            raise InvalidRequest(f"its codes must be [{STREAMS}, frames]", "continues")
        if not 0 < codes.shape[1] <= description.sampling.max_frames:
            limit = description.sampling.max_frames
            raise InvalidRequest(f"it must have 1 to {limit} frames", "continues")
        if (codes >= sizes[:, None]).any():
            raise InvalidRequest("its codes are not this model's", "continues")
        if not 0 < len(given.text) <= description.segmentation.max_characters:
            limit = description.segmentation.max_characters
            raise InvalidRequest(f"its text must have 1 to {limit} characters", "continues")

    def _delivery(self, request: SpeechRequest) -> Delivery:
        streaming = self._grammar.description.streaming
        initial = streaming.initial_frames
        seconds = request.initial_seconds or self._settings.initial_seconds
        if seconds is not None:
            initial = math.ceil(seconds * FRAMES_PER_SECOND) + streaming.withheld_frames
        return Delivery(
            initial_frames=initial,
            growth=streaming.growth,
            max_frames=streaming.max_frames,
            speed=request.speed,
            trim_silence=request.trim_silence and self._settings.trim_silence,
            trailing_silence=self._settings.trailing_silence,
            sample_rate=self._grammar.description.sample_rate,
        )

    def _key(self, segments: tuple[Segment, ...], reading: Reading, delivery: Delivery) -> str:
        description = self._grammar.description
        voice = _digest(reading.voice.codes)
        before = reading.continues
        parts = (
            (before.text, _digest(before.codes)) if before else None,
            (description.id, description.revision, voice, reading.control),
            (reading.semantic, reading.acoustic, reading.tries),
            (segments, delivery),
        )
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _digest(codes: Codes) -> str:
    return hashlib.sha256(np.ascontiguousarray(codes).tobytes()).hexdigest()


def _given(value: T | None, default: T) -> T:
    return default if value is None else value


def _check_ranges(request: SpeechRequest) -> None:
    """Raises InvalidRequest naming the field; NaN is in no range."""
    ranges: tuple[tuple[str, float | None, float, float], ...] = (
        ("temperature", request.temperature, 0.0, 2.0),
        ("acoustic_temperature", request.acoustic_temperature, 0.0, 2.0),
        ("top_p", request.top_p, 0.01, 1.0),
        ("top_k", request.top_k, 0, 100_000),
        ("seed", request.seed, 0, _SEEDS - 1),
        ("initial_seconds", request.initial_seconds, 0.4, 6.0),
        ("speed", request.speed, 0.25, 4.0),
    )
    for name, value, low, high in ranges:
        if value is not None and not low <= value <= high:
            raise InvalidRequest(f"{name} must be between {low:g} and {high:g}", name)
