"""``python -m tontaube.train``: from texts to a bundle, one resumable step at a time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tontaube.bundle import MINI
from tontaube.errors import TontaubeError

if TYPE_CHECKING:  # imported where they are used: each step starts at once
    from tontaube.train.codec import Source
    from tontaube.train.table import CodeTable

TABLE = "table.npy"
TEXTS = Path(__file__).parents[1] / "bench" / "texts"


def _data(args: argparse.Namespace) -> None:
    from tontaube.train import data

    lines = data.collect(args.fortunes, args.dialogue, _held_out())
    data.build(lines[: args.limit], args.run / "corpus", *_part(args))


def _table(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig
    from tontaube.train import codes
    from tontaube.train.table import CodeTable

    if not (args.run / TABLE).exists():
        table = CodeTable.of(codes.triples(args.run), SpectralConfig().semantic_codes)
        table.save(args.run / TABLE)
    codes.write_c0(args.run, _code_table(args.run), args.run / "codes-semantic")


def _code_table(run: Path) -> CodeTable:
    from tontaube.train.table import CodeTable

    return CodeTable.load(run / TABLE)


def _semantic(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig
    from tontaube.train import codec

    start = args.start and args.start / "decoder/checkpoint.pt"
    plan = codec.Plan(args.minutes, start)
    codec.semantic(_source(args.run), args.run / "semantic", SpectralConfig(), plan)


def _codec(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig
    from tontaube.train import codec

    plan = codec.Plan(args.minutes, args.run / "semantic/checkpoint.pt")
    codec.train(_source(args.run), args.run / "codec", SpectralConfig(), plan)


def _source(run: Path) -> Source:
    from tontaube.train.codec import Source

    return Source(run / "corpus", _code_table(run))


def _decoder(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig
    from tontaube.train import decoder

    folders = (args.run / name for name in ("corpus", "codes", "codes-predicted", "codec"))
    decoder.polish(decoder.Polish(*folders), args.run / "decoder", SpectralConfig(), args.minutes)


def _predict(args: argparse.Namespace) -> None:
    from tontaube.tokens import TextTokenizer
    from tontaube.train import predict, recipe
    from tontaube.train.export import averaged_stage
    from tontaube.train.tokenizer import build_tokenizer

    tokenizer = build_tokenizer(recipe.LANGUAGES, recipe.STYLES)
    networks = [averaged_stage(args.run, stage, tokenizer) for stage in (1, 2, 3)]
    predictor = predict.Predictor(networks, TextTokenizer(tokenizer))
    predict.predict(args.run / "codes", args.run / "codes-predicted", predictor, args.shards)


def _codes(args: argparse.Namespace) -> None:
    from tontaube.codec.build import SpectralConfig, build_spectral
    from tontaube.train import codes

    network = build_spectral(SpectralConfig())
    saved = torch.load(args.run / "codec/checkpoint.pt", weights_only=True)["model"]
    kept = {k.removeprefix("codec."): v for k, v in saved.items() if k.startswith("codec.")}
    network.load_state_dict(kept)
    codes.extract(args.run / "corpus", _code_table(args.run), network, args.run / "codes")


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


def _languages(args: argparse.Namespace) -> None:
    from tontaube.train import codes, languages
    from tontaube.train.kokoro import MANNERS, Kokoro

    teacher = Kokoro(args.kokoro)
    part, parts = _part(args)
    shards = range(part, args.shards, parts)
    if args.labels:
        found = languages.sentences(args.dialogue, _held_out(), args.words, args.pages)
        read = languages.lines(found, MANNERS.__getitem__)
        languages.label(teacher.phonemes, read, args.run / codes.LABELS, shards)
        return
    timbres = languages.speakers(args.kokoro / "voices")
    spoken = languages.lines(
        languages.sentences(args.dialogue, _held_out()), lambda language: timbres
    )
    languages.build(teacher, spoken, args.run / "corpus", shards)


def _part(args: argparse.Namespace) -> tuple[int, int]:
    part, parts = (int(n) for n in args.part.split("/"))
    return part, parts


def _finetune(args: argparse.Namespace) -> None:
    from tontaube.sources import open_bundle
    from tontaube.train import finetune
    from tontaube.train.finetune_data import Labels

    bundle = open_bundle(args.bundle)
    known = bundle.description
    labels = Labels(
        args.language or next(iter(known.languages)), args.style or known.styles[0], args.speaker
    )
    shares = (args.minutes * share for share in (0.5, 0.2, 0.15, 0.15))
    plan = finetune.Plan(tuple(shares), args.tokens, 0 if args.full else args.rank)
    finetune.finetune(bundle, args.data, labels, args.target, plan)


def _all(args: argparse.Namespace) -> None:
    from tontaube.train import recipe

    shared = ["--threads", str(args.threads)]
    texts = ["--fortunes", str(args.fortunes)]
    texts += ["--dialogue", str(args.dialogue)] if args.dialogue else []
    for words in recipe.command_lines(str(args.run), str(args.target), quick=args.quick):
        print(f"== {' '.join(words)}", flush=True)
        step = parser().parse_args([*words, *shared, *(texts if words[0] == "data" else [])])
        COMMANDS[step.command](step)


def _held_out() -> set[str]:
    """Texts that measure the result: no training text may be one of them."""
    lines = (path.read_text("utf-8").splitlines() for path in TEXTS.glob("*.txt"))
    return {line.casefold() for text in lines for line in text}


COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "all": _all,
    "data": _data,
    "table": _table,
    "semantic": _semantic,
    "codec": _codec,
    "decoder": _decoder,
    "codes": _codes,
    "predict": _predict,
    "stage": _stage,
    "export": _export,
    "curves": _curves,
    "languages": _languages,
    "finetune": _finetune,
}


def _add_finetune(step: argparse.ArgumentParser) -> None:
    step.add_argument("--bundle", default=str(MINI), help="a bundle's folder or hub id")
    step.add_argument("--data", type=Path, required=True, help="folder with recordings, list.tsv")
    step.add_argument("--target", type=Path, required=True, help="folder of the new bundle")
    step.add_argument("--minutes", type=float, default=60, help="for all four stages")
    step.add_argument("--tokens", type=int, default=2048, help="tokens a step")
    step.add_argument("--rank", type=int, default=16, help="of the changes to each matrix (LoRA)")
    step.add_argument("--full", action="store_true", help="train every weight instead")
    step.add_argument("--speaker", default="My voice", help="the new voice's name")
    step.add_argument("--language", help="where list.tsv does not say")
    step.add_argument("--style", help="where list.tsv does not say")


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    made = argparse.ArgumentParser(prog="python -m tontaube.train", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--run", type=Path, default=Path("runs/english"))
    common.add_argument("--threads", type=int, default=1)
    commands = made.add_subparsers(dest="command", required=True)
    texts = argparse.ArgumentParser(add_help=False)
    texts.add_argument("--fortunes", type=Path, default=Path("/usr/share/games/fortunes"))
    texts.add_argument("--dialogue", type=Path, help="folder with gettext catalogues")
    step = commands.add_parser("all", parents=[common, texts], help="every step up to a bundle")
    step.add_argument("--quick", action="store_true", help="a toy, in a few minutes")
    step.add_argument("--target", type=Path, required=True, help="folder of the new bundle")
    part_help = "i/n: this process takes every n-th shard"
    step = commands.add_parser("data", parents=[common, texts], help="speak the training texts")
    step.add_argument("--limit", type=int)
    step.add_argument("--part", default="0/1", help=part_help)
    commands.add_parser("table", parents=[common], help="say what C0 means; write it")
    step = commands.add_parser("semantic", parents=[common], help="train what hears C0")
    step.add_argument("--minutes", type=float, default=20)
    step.add_argument("--start", type=Path, help="an earlier run to start from")
    step = commands.add_parser("codec", parents=[common], help="train the rest of the codec")
    step.add_argument("--minutes", type=float, default=60)
    step = commands.add_parser("decoder", parents=[common], help="polish it; codes are final")
    step.add_argument("--minutes", type=float, default=60)
    commands.add_parser("codes", parents=[common], help="encode the corpus")
    step = commands.add_parser("predict", parents=[common], help="codes as CB1..CB3 say them")
    step.add_argument("--shards", type=int, default=1_000, help="of the corpus")
    step = commands.add_parser("stage", parents=[common], help="train CB0..CB3")
    step.add_argument("stage", type=int, choices=range(4))
    step.add_argument("--minutes", type=float, default=60)
    step.add_argument("--tokens", type=int, default=4096, help="tokens a step")
    step.add_argument("--start", type=Path, help="an earlier run, with other codes, to start from")
    step = commands.add_parser(
        "languages", parents=[common], help="speak texts in seven languages, many speakers"
    )
    step.add_argument("--kokoro", type=Path, required=True, help="folder with Kokoro-82M's files")
    step.add_argument("--dialogue", type=Path, required=True, help="folder with gettext catalogues")
    step.add_argument("--labels", action="store_true", help="only label them, for C0: no speech")
    step.add_argument("--words", type=Path, help="folder with word lists (Debian's w* packages)")
    step.add_argument("--pages", type=Path, help="folder with help pages by language")
    step.add_argument("--shards", type=int, default=100, help="of 1000 sentences")
    step.add_argument("--part", default="0/1", help=part_help)
    _add_finetune(
        commands.add_parser("finetune", parents=[common], help="fit a bundle to recordings")
    )
    step = commands.add_parser("curves", parents=[common], help="draw the curves of a run")
    step.add_argument("--target", type=Path, default=Path("docs/training"))
    step = commands.add_parser("export", parents=[common], help="write the bundle")
    step.add_argument("--target", type=Path, default=Path("tontaube/bundles/mini"))
    step.add_argument("--id", default="tontaube-mini")
    step.add_argument("--revision", default="1")
    return made


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(args.threads)
    try:
        COMMANDS[args.command](args)
    except TontaubeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
