"""``python -m tontaube.bench voice``: how well the shipped voice is understood, and how it sounds.

Held-out texts are spoken through ``Engine.stream``; beside them stand the teacher, and the teacher
through the codec alone, so that one sees where errors come from.
"""

from __future__ import annotations

import asyncio
import time
import wave
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tontaube.bench.measures import NaturalnessPredictor, Recogniser
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.types import Samples, SpeechRequest

TEXTS = Path(__file__).parent / "texts"
RATE = 24_000


@dataclass(slots=True)
class Row:
    """One system over all texts."""

    name: str
    word_edits: int = 0
    words: int = 0
    character_edits: int = 0
    characters: int = 0
    scores: list[float] = field(default_factory=list)
    seconds: float = 0.0
    worst: list[tuple[float, str, str]] = field(default_factory=list)

    def line(self) -> str:
        """As printed."""
        return (
            f"{self.name:<16} {len(self.scores):>4} {100 * self.word_edits / self.words:>6.1f} "
            f"{100 * self.character_edits / self.characters:>6.1f} "
            f"{np.mean(self.scores):>10.2f} {self.seconds:>7.1f}"
        )


@dataclass(frozen=True, slots=True)
class Measuring:
    """The two judges, loaded once."""

    recogniser: Recogniser
    naturalness: NaturalnessPredictor

    def row(self, name: str, audio: dict[str, Samples], language: str) -> Row:
        """Judge every text's audio."""
        row = Row(name)
        for text, samples in audio.items():
            heard = self.recogniser(samples, RATE, text, language)
            row.word_edits += heard.word_edits
            row.words += heard.words
            row.character_edits += heard.character_edits
            row.characters += heard.characters
            row.scores.append(self.naturalness(samples, RATE))
            row.seconds += len(samples) / RATE
            row.worst.append((heard.word_edits / heard.words, text, heard.text))
        return row


async def speak(engine: Engine, texts: list[str], make: Callable[[str, int], SpeechRequest]
                ) -> tuple[dict[str, Samples], float]:  # fmt: skip
    """Speak texts one after the other; their audio, and the wall time."""
    started = time.perf_counter()
    audio = {}
    for number, text in enumerate(texts):
        async with engine.stream(make(text, number)) as stream:
            audio[text] = await stream.samples()
    return audio, time.perf_counter() - started


def teacher_audio(texts: list[str], options: Options) -> dict[str, Samples]:
    """The teacher's own speech: for English of the hibari package, or by Kokoro's files with a
    voice of the language."""
    from tontaube.train.teacher import STYLES, Hibari, Line

    style = STYLES[options.style]
    if options.kokoro is None:
        voice = Hibari()
        spoken = {text: voice(text, style, seed=0) for text in texts}
    else:
        from tontaube.train.kokoro import MANNERS, Kokoro

        speaker, language = Kokoro(options.kokoro), options.language
        timbre = MANNERS[language][0]
        spoken = {text: speaker(Line(text, language, timbre), style, seed=0) for text in texts}
    return {
        text: np.divide(u.samples, 32768, dtype=np.float32)
        for text, u in spoken.items()
        if u is not None
    }


def through_codec(model: str, audio: dict[str, Samples], streams: int = 4) -> dict[str, Samples]:
    """Audio encoded and decoded by the bundle's codec with its first ``streams`` streams."""
    import torch

    from tontaube.assembly import open_codec
    from tontaube.codec.base import Request, Window
    from tontaube.sources import open_bundle

    network, _ = open_codec(open_bundle(model), torch.device("cpu"))
    decoded = {}
    for text, samples in audio.items():
        codes = network.encode(samples)[:streams]
        whole = Request(codes, Window(0, 0, codes.shape[1], True), network.initial_state())
        decoded[text] = network.decode_windows([whole])[0][0].numpy()
    return decoded


def write_wavs(folder: Path, audio: dict[str, Samples]) -> None:
    """Keep the audio for listening."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, samples in enumerate(audio.values()):
        with wave.open(str(folder / f"{number:03d}.wav"), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure."""

    language: str = "english"
    style: str = "conversational"
    temperature: float | None = None
    limit: int | None = None
    reference: bool = True  # the teacher and the codec alone, too
    kokoro: Path | None = None  # that teacher's files, for other languages than English
    keep: Path | None = None


def run(settings: Settings, options: Options) -> list[Row]:
    """Measure and print."""
    path = TEXTS / f"{options.language}.txt"
    texts = path.read_text("utf-8").splitlines()[: options.limit]
    judges = Measuring(Recogniser(), NaturalnessPredictor())

    def make(text: str, seed: int) -> SpeechRequest:
        return SpeechRequest(
            text=text, language=options.language, style=options.style, seed=seed,
            temperature=options.temperature,
        )  # fmt: skip

    async def generate(settings: Settings) -> tuple[dict[str, Samples], float, str]:
        engine = await Engine.load(settings)
        try:
            await engine.warm_up()
            return *(await speak(engine, texts, make)), engine.description.languages[
                options.language
            ]
        finally:
            await engine.close()

    systems, walls, code = {}, {}, ""
    for name, chosen in variants(settings).items():
        systems[name], walls[name], code = asyncio.run(generate(chosen))
    if options.reference:
        teacher = teacher_audio(texts, options)
        systems |= {
            "teacher": teacher,
            "codec, C0..C3": through_codec(settings.model, teacher),
            "codec, C0 only": through_codec(settings.model, teacher, 1),
        }
    print(f"{'system':<16} {'n':>4} {'WER %':>6} {'CER %':>6} {'DistillMOS':>10} {'seconds':>7}")
    rows = []
    for name, spoken in systems.items():
        if options.keep:
            write_wavs(options.keep / name.replace(" ", "").replace(",", "-"), spoken)
        rows.append(judges.row(name, spoken, code))
        print(rows[-1].line(), flush=True)
    for row in rows:
        if row.name in walls:
            print(f"real-time factor, {row.name}: {walls[row.name] / row.seconds:.3f}")
    for share, text, heard in sorted(rows[0].worst, reverse=True)[:8]:
        if share:
            print(f"  {100 * share:3.0f} %  {text}\n         {heard}")
    return rows


def variants(settings: Settings) -> dict[str, Settings]:
    """What to speak with: int8 weights never without the full ones beside them."""
    full = settings.model_copy(update={"weights": "full"})
    return {"tontaube": full} | ({"tontaube, int8": settings} if settings.weights == "int8" else {})
