"""``python -m tontaube.bench speakers``: whether styles and voices can be told apart, and whether a
cloned voice resembles its reference more than one speaker resembles another.

Similarity is the cosine of Resemblyzer's speaker embeddings; pitch is librosa's (pYIN).
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import soxr

from tontaube.bench.measures import INSTALL, SPEECH_RATE
from tontaube.bench.voice import RATE, TEXTS
from tontaube.codec.reference import read_reference
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.errors import Unavailable
from tontaube.types import Samples, SpeechRequest

LOWEST, HIGHEST = 60.0, 450.0  # Hz
CLONED = 3  # texts that each clone speaks

Embed = Callable[[Samples], Samples]


@dataclass(frozen=True, slots=True)
class Options:
    """What to speak, and recordings of one speaker each to clone."""

    language: str = "english"
    limit: int = 12  # texts
    references: Path | None = None


class SpeakerEncoder:
    """Speech → its speaker, a unit vector."""

    def __init__(self) -> None:
        try:
            from resemblyzer import VoiceEncoder, preprocess_wav
        except ImportError as error:
            raise Unavailable(f"resemblyzer is not installed ({error}): {INSTALL}") from error
        self._encoder, self._prepare = VoiceEncoder("cpu", verbose=False), preprocess_wav

    def __call__(self, samples: Samples) -> Samples:
        audio = soxr.resample(samples, RATE, SPEECH_RATE).astype(np.float32)
        prepared = self._prepare(audio, source_sr=SPEECH_RATE)
        embedding: Samples = self._encoder.embed_utterance(prepared)
        return embedding


def pitch(samples: Samples) -> tuple[float, float]:
    """Median pitch in Hz and its spread (10th to 90th percentile) in semitones."""
    import librosa

    curve, voiced, _ = librosa.pyin(samples, fmin=LOWEST, fmax=HIGHEST, sr=RATE)
    spoken = curve[voiced & ~np.isnan(curve)]
    if not len(spoken):
        return float("nan"), float("nan")
    low, middle, high = np.percentile(spoken, (10, 50, 90))
    return float(middle), float(12 * np.log2(high / low))


Speech = Mapping[str, Sequence[Samples]]  # by style or speaker, the same texts in each


def style_lines(spoken: Speech) -> list[str]:
    """One line a style: duration, pitch and its spread, and what they are to the first style's,
    text by text: median and quartiles."""
    measured = {
        name: np.array([(len(samples) / RATE, *pitch(samples)) for samples in audio])
        for name, audio in spoken.items()
    }
    first = next(iter(measured))
    lines = [f"{'style':<16} {'seconds':>8} {'pitch Hz':>9} {'spread st':>9}   ÷ {first}'s"]
    for name, rows in measured.items():
        ratios = np.nanpercentile(rows / measured[first], (25, 50, 75), axis=0).T
        against = ", ".join(f"{mid:.2f} ({low:.2f}..{high:.2f})" for low, mid, high in ratios)
        seconds, middle, spread = np.nanmedian(rows, axis=0)
        lines.append(f"{name:<16} {seconds:>8.2f} {middle:>9.0f} {spread:>9.1f}   {against}")
    return lines


def likeness_lines(cloned: Speech, references: Mapping[str, Samples], embed: Embed) -> list[str]:
    """How near each clone's speech is to its own reference, and different references to each other;
    and how often a clone is nearest to its own of all."""
    known = {name: embed(samples) for name, samples in references.items()}
    own, right = [], 0
    for name, audio in cloned.items():
        for samples in audio:
            said = embed(samples)
            near = {other: float(said @ vector) for other, vector in known.items()}
            own.append(near[name])
            right += max(near, key=near.__getitem__) == name
    between = [float(a @ b) for a, b in itertools.combinations(known.values(), 2)]
    return [
        _spread("a clone and its reference", own),
        _spread("different references", between),
        f"nearest to its own reference: {right} of {len(own)}",
    ]


def _spread(name: str, values: Sequence[float]) -> str:
    if not values:
        return f"{name}: none"
    low, high = min(values), max(values)
    return f"{name}: {np.mean(values):.3f} ({low:.3f}..{high:.3f}, {len(values)} pairs)"


async def _speak(settings: Settings, options: Options) -> tuple[Speech, Speech]:
    """The texts in every style; three of them in a clone of each reference."""
    lines = (TEXTS / f"{options.language}.txt").read_text("utf-8").splitlines()
    texts = lines[: options.limit]
    engine = await Engine.load(settings)

    async def say(asked: SpeechRequest) -> Samples:
        async with engine.stream(replace(asked, language=options.language, seed=0)) as stream:
            return await stream.samples()

    try:
        in_style = {
            style: [await say(SpeechRequest(text=text, style=style)) for text in texts]
            for style in engine.description.styles
        }
        cloned = {}
        for file in _recordings(options.references):
            voice = await engine.voices.add(file.stem, file.read_bytes(), "measured, not kept")
            cloned[file.stem] = [
                await say(SpeechRequest(text=text, voice=voice.id)) for text in texts[:CLONED]
            ]
    finally:
        await engine.close()
    return in_style, cloned


def _recordings(folder: Path | None) -> list[Path]:
    return sorted(folder.glob("*.wav")) if folder else []


def run(settings: Settings, options: Options) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:  # clones are not kept
        chosen = settings.model_copy(update={"data_dir": Path(folder)})
        in_style, cloned = asyncio.run(_speak(chosen, options))
    print(*style_lines(in_style), sep="\n")
    if cloned:
        files = _recordings(options.references)
        known = {f.stem: read_reference(f.read_bytes(), sample_rate=RATE) for f in files}
        print(*likeness_lines(cloned, known, SpeakerEncoder()), sep="\n")
