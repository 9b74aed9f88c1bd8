"""``python -m tontaube.bench``: everything that prints a figure."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from tontaube.config import Settings


def _voice(args: argparse.Namespace) -> None:
    from tontaube.bench import voice

    settings = Settings(model=args.model) if args.model else Settings()
    options = voice.Options(
        args.language, args.style, args.temperature, args.limit, not args.no_reference, args.keep
    )
    voice.run(settings, options)


def _startup(args: argparse.Namespace) -> None:
    from tontaube.bench import startup

    startup.run(args.model)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tontaube.bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    step = commands.add_parser("voice", help="word error rate and naturalness on held-out texts")
    step.add_argument("--model", help="a bundle's folder")
    step.add_argument("--language", default="english")
    step.add_argument("--style", default="conversational")
    step.add_argument("--temperature", type=float)
    step.add_argument("--limit", type=int)
    step.add_argument("--no-reference", action="store_true", help="only our own speech")
    step.add_argument("--keep", type=Path, help="folder for the wav files")
    step.set_defaults(command=_voice)
    step = commands.add_parser("startup", help="from a cold process to the first audio")
    step.add_argument("--model", help="a bundle's folder")
    step.set_defaults(command=_startup)
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.command(args)


if __name__ == "__main__":
    main()
