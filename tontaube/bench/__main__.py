"""``python -m tontaube.bench``: everything that prints a figure."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tontaube.errors import TontaubeError

if TYPE_CHECKING:
    from tontaube.config import Settings


def _voice(args: argparse.Namespace) -> None:
    import torch

    from tontaube.bench import voice
    from tontaube.config import Settings

    torch.set_num_threads(1)
    given = {name: getattr(args, name) for name in ("model", "weights") if getattr(args, name)}
    settings = Settings(**given)
    options = voice.Options(
        language=args.language,
        style=args.style,
        temperature=args.temperature,
        limit=args.limit,
        reference=not args.no_reference and (args.language == "english" or bool(args.kokoro)),
        kokoro=args.kokoro,
        keep=args.keep,
    )
    voice.run(settings, options)


def _speakers(args: argparse.Namespace) -> None:
    from tontaube.bench import speakers

    options = speakers.Options(args.language, args.limit, args.references)
    speakers.run(_on_one_thread(args.model), options)


def _beside(args: argparse.Namespace) -> None:
    from tontaube.bench import beside

    beside.run(args.kokoro, args.model, args.limit)


def _startup(args: argparse.Namespace) -> None:
    from tontaube.bench import startup

    startup.run(args.model)


def _speed(args: argparse.Namespace) -> None:
    from tontaube.bench import speed

    options = speed.Options(args.listeners, args.rounds, args.sentences)
    speed.run(_on_one_thread(args.model), options)


def _length(args: argparse.Namespace) -> None:
    from tontaube.bench import length

    length.run(_on_one_thread(args.model), args.minutes, args.characters)


def _steps(args: argparse.Namespace) -> None:
    from tontaube.bench import steps

    steps.run(_on_one_thread(args.model))


def _on_one_thread(model: str | None) -> Settings:
    """As one program among others, all requests new."""
    import torch

    from tontaube.config import Settings

    torch.set_num_threads(1)
    chosen = {"threads": 1, "adjust_streams": False, "ahead_seconds": 1e6, "phrase_cache_bytes": 0}
    return Settings.model_validate(chosen | ({"model": model} if model else {}))


def _load(args: argparse.Namespace) -> None:
    from tontaube.bench import load

    wanted = load.Load(
        url=args.url,
        rates=args.rates,
        seconds=args.seconds,
        texts=load.read_texts(args.texts or load.TEXTS),
        model=args.model,
        voice=args.voice,
        key=args.key,
        sample_rate=args.sample_rate,
        threshold=args.threshold,
        client_buffer=args.buffer,
        window=args.window,
        seed=args.seed,
    )
    load.run(wanted, args.out, args.plot)


def _sim(args: argparse.Namespace) -> None:
    from tontaube.bench import curves, sim, simulation

    table = curves.load(args.curves) if args.curves else curves.H100
    if args.metrics:
        table = table.fitted(curves.measured(args.metrics.read_text("utf-8")))
    server = simulation.Server(
        curves=table,
        max_streams=args.streams,
        first_limit=args.first_limit or args.streams,
        room=args.room,
        max_batch=args.batch,
    )
    traffic = simulation.Traffic(seconds=args.seconds, seed=args.seed)
    sim.run(server, traffic, args.rates, out=args.out)


def _gpu(args: argparse.Namespace) -> None:
    from tontaube.bench import gpu

    options = gpu.Options(
        small=args.small,
        engine=args.engine,
        device=args.device,
        folder=args.folder,
        repeats=args.repeats,
        streams=args.streams,
    )
    gpu.run(options)


def _numbers(text: str) -> tuple[float, ...]:
    numbers = tuple(float(part) for part in text.split(","))
    if min(numbers) <= 0:
        raise ValueError(text)
    return numbers


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tontaube.bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    step = commands.add_parser("voice", help="word error rate and naturalness on held-out texts")
    step.add_argument("--model", help="a bundle's folder")
    step.add_argument("--weights", choices=("full", "int8"), help="int8: beside the full ones")
    step.add_argument("--language", default="english")
    step.add_argument("--style", default="conversational")
    step.add_argument("--temperature", type=float)
    step.add_argument("--limit", type=int)
    step.add_argument("--no-reference", action="store_true", help="only our own speech")
    step.add_argument("--kokoro", type=Path, help="Kokoro-82M's files: the teacher in any language")
    step.add_argument("--keep", type=Path, help="folder for the wav files")
    step.set_defaults(command=_voice)
    step = commands.add_parser("speakers", help="do styles differ, do clones resemble")
    step.add_argument("--model", help="a bundle's folder")
    step.add_argument("--language", default="english")
    step.add_argument("--limit", type=int, default=12, help="texts")
    step.add_argument("--references", type=Path, help="folder of wav files, one a speaker")
    step.set_defaults(command=_speakers)
    step = commands.add_parser("beside", help="our server and Kokoro-82M, in turns")
    step.add_argument("--model", help="a bundle's folder")
    step.add_argument("--kokoro", type=Path, required=True, help="folder with Kokoro-82M's files")
    step.add_argument("--limit", type=int, default=20, help="texts")
    step.set_defaults(command=_beside)
    step = commands.add_parser("startup", help="from a cold process to the first audio")
    step.add_argument("--model", help="a bundle's folder")
    step.set_defaults(command=_startup)
    _add_local(commands)
    _add_load(commands.add_parser("load", help="listeners of any server, by arrival rate"))
    _add_sim(commands.add_parser("sim", help="policies of the scheduler in virtual time"))
    _add_gpu(commands.add_parser("gpu", help="the released sizes on a GPU, random weights"))
    args = parser.parse_args()
    try:
        args.command(args)
    except TontaubeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _add_local(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Figures of this machine and one bundle."""
    step = commands.add_parser("speed", help="listeners at once: throughput and first audio")
    step.add_argument("--listeners", type=_counts, default=(1, 2, 4, 8))
    step.add_argument("--rounds", type=int, default=3)
    step.add_argument("--sentences", type=int, default=3, help="of each text")
    step.set_defaults(command=_speed)
    step.add_argument("--model", help="a bundle's folder")
    step = commands.add_parser("steps", help="a stage's step beside its floor and transformers")
    step.add_argument("--model", help="a bundle's folder")
    step.set_defaults(command=_steps)
    step = commands.add_parser("length", help="what minute 10 costs, and 40 000 characters")
    step.add_argument("--model", help="a bundle's folder")
    step.add_argument("--minutes", type=int, default=10)
    step.add_argument("--characters", type=int, default=40_000, help="0: only the codec's time")
    step.set_defaults(command=_length)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _numbers(text))


def _add_load(step: argparse.ArgumentParser) -> None:
    step.add_argument("url", help="OpenAI-compatible base URL")
    step.add_argument("--rates", type=_numbers, default=(0.5, 1.0, 2.0), help="requests a second")
    step.add_argument("--seconds", type=float, default=60.0, help="for each rate")
    step.add_argument("--texts", type=Path, help="a file with one text a line")
    step.add_argument("--model", default="tontaube-v1")
    step.add_argument("--voice", default="alloy")
    step.add_argument("--key", help="sent as bearer token")
    step.add_argument("--sample-rate", type=int, default=24_000, help="of the server's pcm, in Hz")
    step.add_argument("--threshold", type=float, default=-40.0, help="audible from here on, dBFS")
    step.add_argument("--buffer", type=float, default=0.0, help="seconds a client keeps first")
    step.add_argument("--window", type=float, default=1.0, help="seconds of audio for one RTF")
    step.add_argument("--seed", type=int, default=0)
    step.add_argument("--out", type=Path, help="JSON file")
    step.add_argument("--plot", type=Path, help="PNG file (needs matplotlib)")
    step.set_defaults(command=_load)


def _add_sim(step: argparse.ArgumentParser) -> None:
    step.add_argument("--rates", type=_numbers, default=(4.0, 8.0, 12.0, 16.0))
    step.add_argument("--seconds", type=float, default=60.0, help="in which requests come")
    step.add_argument("--curves", type=Path, help="JSON table of step times (default: an H100)")
    step.add_argument("--metrics", type=Path, help="a server's saved /metrics to fit them to")
    step.add_argument("--streams", type=int, default=64, help="at once, at most")
    step.add_argument("--first-limit", type=int, help="of streams, before anything was measured")
    step.add_argument("--room", type=int, default=64, help="requests that may wait")
    step.add_argument("--batch", type=int, default=64, help="sequences a stage steps together")
    step.add_argument("--seed", type=int, default=0)
    step.add_argument("--out", type=Path, help="JSON file")
    step.set_defaults(command=_sim)


def _add_gpu(step: argparse.ArgumentParser) -> None:
    step.add_argument("--small", action="store_true", help="a scaled-down model, for any machine")
    step.add_argument("--engine", choices=("auto", "torch", "vllm"), default="vllm")
    step.add_argument("--device", default="auto")
    step.add_argument("--folder", type=Path, help="where the random model is kept (7 GB)")
    step.add_argument("--repeats", type=int, default=5, help="requests that are timed alone")
    step.add_argument("--streams", type=int, default=8, help="that are timed together")
    step.set_defaults(command=_gpu)


if __name__ == "__main__":
    main()
