"""``python -m tontaube.train``: from texts to a bundle, one resumable step at a time."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch

TEXTS = Path(__file__).parents[1] / "bench" / "texts"


def _data(args: argparse.Namespace) -> None:
    from tontaube.train import data

    held_out = {
        line.casefold()
        for path in TEXTS.glob("*.txt")
        for line in path.read_text("utf-8").splitlines()
    }
    lines = data.collect(args.fortunes, args.dialogue, held_out)
    part, parts = (int(n) for n in args.part.split("/"))
    data.build(lines[: args.limit], args.run / "corpus", part, parts)


def _semantic(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig
    from tontaube.train import codec

    start = args.start and args.start / "decoder/checkpoint.pt"
    plan = codec.Plan(args.minutes, start)
    codec.semantic(args.run / "corpus", args.run / "semantic", SpectralConfig(), plan)


def _codec(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig
    from tontaube.train import codec

    plan = codec.Plan(args.minutes, args.run / "semantic/checkpoint.pt")
    codec.train(args.run / "corpus", args.run / "codec", SpectralConfig(), plan)


def _decoder(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig
    from tontaube.train import decoder

    source = decoder.Polish(args.run / "corpus", args.run / "codes", args.run / "codec")
    decoder.polish(source, args.run / "decoder", SpectralConfig(), args.minutes)


def _codes(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig, build_spectral
    from tontaube.train import codes

    source = "semantic" if args.semantic else "codec"
    network = build_spectral(SpectralConfig())
    saved = torch.load(args.run / source / "checkpoint.pt", weights_only=True)["model"]
    kept = {k.removeprefix("codec."): v for k, v in saved.items() if k.startswith("codec.")}
    network.load_state_dict(kept)
    folder, streams = ("codes-semantic", 1) if args.semantic else ("codes", 4)
    codes.extract(args.run / "corpus", network, args.run / folder, streams)


def _stage(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig
    from tontaube.tokens import TextTokenizer
    from tontaube.train import recipe, recode, stages
    from tontaube.train.tokenizer import build_tokenizer

    tokenizer = build_tokenizer(recipe.LANGUAGES, recipe.STYLES)
    config = recipe.stage_config(args.stage, recipe.SHAPES[args.stage], tokenizer, SpectralConfig())
    codes = args.run / ("codes-semantic" if args.stage == 0 else "codes")
    folder, start = args.run / f"cb{args.stage}", None
    if args.start and not (folder / "checkpoint.pt").exists():
        earlier = recode.Earlier(args.start / f"cb{args.stage}", args.start / "codes")
        start = recode.recoded(earlier, config, codes)
    plan = stages.Plan(args.minutes, args.tokens, start=start)
    stages.train(config, TextTokenizer(tokenizer), codes, folder, plan)


def _export(args: argparse.Namespace) -> None:
    from tontaube.train import export

    export.export(args.run, args.target, export.Names(args.id, args.revision))


def _curves(args: argparse.Namespace) -> None:
    from tontaube.train import curves

    curves.plot(args.run, args.target)


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "data": _data,
    "semantic": _semantic,
    "codec": _codec,
    "decoder": _decoder,
    "codes": _codes,
    "stage": _stage,
    "export": _export,
    "curves": _curves,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tontaube.train", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--run", type=Path, default=Path("runs/english"))
    common.add_argument("--threads", type=int, default=1)
    commands = parser.add_subparsers(dest="command", required=True)
    step = commands.add_parser("data", parents=[common], help="speak the training texts")
    step.add_argument("--fortunes", type=Path, default=Path("/usr/share/games/fortunes"))
    step.add_argument("--dialogue", type=Path, help="folder with gettext catalogues")
    step.add_argument("--limit", type=int)
    step.add_argument("--part", default="0/1", help="i/n: this process takes every n-th shard")
    step = commands.add_parser("semantic", parents=[common], help="train what makes C0")
    step.add_argument("--minutes", type=float, default=20)
    step.add_argument("--start", type=Path, help="an earlier run to start from")
    step = commands.add_parser("codec", parents=[common], help="train the rest of the codec")
    step.add_argument("--minutes", type=float, default=60)
    step = commands.add_parser("decoder", parents=[common], help="polish it; codes are final")
    step.add_argument("--minutes", type=float, default=60)
    step = commands.add_parser("codes", parents=[common], help="encode the corpus")
    step.add_argument("--semantic", action="store_true", help="only C0: the rest may still train")
    step = commands.add_parser("stage", parents=[common], help="train CB0..CB3")
    step.add_argument("stage", type=int, choices=range(4))
    step.add_argument("--minutes", type=float, default=60)
    step.add_argument("--tokens", type=int, default=4096, help="tokens a step")
    step.add_argument("--start", type=Path, help="an earlier run, with other codes, to start from")
    step = commands.add_parser("curves", parents=[common], help="draw the curves of a run")
    step.add_argument("--target", type=Path, default=Path("docs/training"))
    step = commands.add_parser("export", parents=[common], help="write the bundle")
    step.add_argument("--target", type=Path, default=Path("tontaube/bundles/mini"))
    step.add_argument("--id", default="tontaube-mini")
    step.add_argument("--revision", default="1")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    COMMANDS[args.command](args)


if __name__ == "__main__":
    main()
