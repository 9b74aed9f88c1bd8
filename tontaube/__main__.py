"""``python -m tontaube``: the command line. Each command is a function over the engine."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from tontaube.config import Settings
from tontaube.errors import TontaubeError
from tontaube.types import AudioChunk, Samples, SpeechRequest

_BAR = 30  # characters


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the process's exit status."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level="DEBUG" if options.verbose else "WARNING")
    try:
        return int(options.command(options))
    except (TontaubeError, ValidationError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tontaube", description="Text to speech.")
    parser.add_argument("--verbose", action="store_true", help="say what happens")
    commands = parser.add_subparsers(required=True, metavar="command")
    say = commands.add_parser("say", help="speak a text into a wav file")
    say.add_argument("text", help="what to say; - reads it from the standard input")
    say.add_argument("-o", "--output", type=Path, default=Path("speech.wav"), help="a wav file")
    say.add_argument("--model", help="a bundle's folder, or a hub id: owner/name[@revision]")
    say.add_argument("--voice")
    say.add_argument("--language")
    say.add_argument("--style")
    say.add_argument("--temperature", type=float)
    say.add_argument("--seed", type=int)
    say.add_argument("--speed", type=float, default=1.0)
    say.set_defaults(command=_say)
    doctor = commands.add_parser("doctor", help="check the model and this machine, load nothing")
    doctor.add_argument("--model", help="a bundle's folder, or a hub id: owner/name[@revision]")
    doctor.add_argument("--fetch", action="store_true", help="fetch what is not here yet")
    doctor.set_defaults(command=_doctor)
    return parser


def _say(options: argparse.Namespace) -> int:
    """``say``: speak, showing progress."""
    text = sys.stdin.read() if options.text == "-" else options.text
    request = SpeechRequest(
        text=text,
        voice=options.voice,
        language=options.language,
        style=options.style,
        temperature=options.temperature,
        seed=options.seed,
        speed=options.speed,
    )
    settings = Settings(model=options.model) if options.model else Settings()
    asyncio.run(_speak(settings, request, options.output))
    print(options.output)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    """``doctor``: print the plan and what was found; 1 if something is wrong."""
    from tontaube.doctor import examine

    settings = Settings(model=options.model) if options.model else Settings()
    problems = 0
    for finding in examine(settings, fetch=options.fetch):
        print(finding, flush=True)
        problems += finding.problem
    return 1 if problems else 0


async def _speak(settings: Settings, request: SpeechRequest, path: Path) -> None:
    from tontaube.engine import Engine  # after the arguments were found to be good: it is heavy

    engine = await Engine.load(settings)
    rate = engine.description.sample_rate
    progress = Progress(len(request.text), rate)
    try:
        async with engine.stream(request) as stream:
            with wave.open(str(path), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(rate)
                async for chunk in stream:
                    file.writeframes(pcm16(chunk.samples))
                    progress.show(chunk)
    finally:
        progress.end()
        await engine.close()


def pcm16(samples: Samples) -> bytes:
    """Float samples → 16-bit little-endian."""
    return (np.clip(samples, -1.0, 1.0) * 32_767).round().astype("<i2").tobytes()


class Progress:
    """A bar on the standard error, if somebody watches."""

    def __init__(self, characters: int, sample_rate: int) -> None:
        self._characters = max(1, characters)
        self._rate = sample_rate
        self._start = time.monotonic()
        self._shown = False

    def show(self, chunk: AudioChunk) -> None:
        """After ``chunk``."""
        if not sys.stderr.isatty():
            return
        share = min(1.0, chunk.text_end / self._characters)
        bar = "█" * round(share * _BAR)
        seconds = (chunk.start + len(chunk.samples)) / self._rate
        pace = seconds / max(1e-3, time.monotonic() - self._start)
        line = f"\r{bar:░<{_BAR}} {share:4.0%}  {seconds:.1f} s of speech, {pace:.1f}× real time"
        print(line, end="", file=sys.stderr, flush=True)
        self._shown = True

    def end(self) -> None:
        """Leave the line."""
        if self._shown:
            print(file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
