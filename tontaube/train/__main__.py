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


def _codec(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig
    from tontaube.train import codec

    corpus, trained = args.run / "corpus", args.run / "codec"
    if args.polish:
        source = codec.Polish(corpus, args.run / "codes", trained, args.gain)
        codec.polish(source, args.run / "decoder", SpectralConfig(), args.minutes)
    else:
        codec.train(corpus, trained, SpectralConfig(), codec.Plan(args.minutes))


def _codes(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig, build_spectral
    from tontaube.train import codes

    network = build_spectral(SpectralConfig())
    if args.semantic:
        network.load_state_dict(torch.load(args.run / "codec/semantic.pt", weights_only=True))
        codes.extract(args.run / "corpus", network, args.run / "codes-semantic", streams=1)
    else:
        saved = torch.load(args.run / "codec/checkpoint.pt", weights_only=True)["model"]
        kept = {k.removeprefix("codec."): v for k, v in saved.items() if k.startswith("codec.")}
        network.load_state_dict(kept)
        codes.extract(args.run / "corpus", network, args.run / "codes")


def _stage(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig
    from tontaube.tokens import TextTokenizer
    from tontaube.train import recipe, stages
    from tontaube.train.tokenizer import build_tokenizer

    tokenizer = build_tokenizer(recipe.LANGUAGES, recipe.STYLES)
    config = recipe.stage_config(args.stage, recipe.SHAPES[args.stage], tokenizer, SpectralConfig())
    codes = args.run / ("codes-semantic" if args.stage == 0 else "codes")
    plan = stages.Plan(args.minutes, args.tokens)
    stages.train(config, TextTokenizer(tokenizer), codes, args.run / f"cb{args.stage}", plan)


def _export(args: argparse.Namespace) -> None:
    from tontaube.train import export

    export.export(args.run, args.target, export.Names(args.id, args.revision), args.input_gain)


def _curves(args: argparse.Namespace) -> None:
    from tontaube.train import curves

    curves.plot(args.run, args.target)


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "data": _data,
    "codec": _codec,
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
    step = commands.add_parser("codec", parents=[common], help="train the codec")
    step.add_argument("--minutes", type=float, default=60)
    step.add_argument("--polish", action="store_true", help="only the decoder; codes are final")
    step.add_argument("--gain", type=float, default=1.0, help="of the decoder over the corpus")
    step = commands.add_parser("codes", parents=[common], help="encode the corpus")
    step.add_argument("--semantic", action="store_true", help="only C0, once it is frozen")
    step = commands.add_parser("stage", parents=[common], help="train CB0..CB3")
    step.add_argument("stage", type=int, choices=range(4))
    step.add_argument("--minutes", type=float, default=60)
    step.add_argument("--tokens", type=int, default=8192, help="tokens a step")
    step = commands.add_parser("curves", parents=[common], help="draw the curves of a run")
    step.add_argument("--target", type=Path, default=Path("docs/training"))
    step = commands.add_parser("export", parents=[common], help="write the bundle")
    step.add_argument("--target", type=Path, default=Path("tontaube/bundles/mini"))
    step.add_argument("--id", default="tontaube-mini")
    step.add_argument("--revision", default="1")
    step.add_argument("--input-gain", type=float, default=1.0, help="1 / --gain of the decoder")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    COMMANDS[args.command](args)


if __name__ == "__main__":
    main()
