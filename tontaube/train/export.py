"""Checkpoints of a run → a bundle: fp16 weights, description, voices found in the data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer

from tontaube.backend.network import StageNetwork
from tontaube.backend.weights import save_stage
from tontaube.bundle import (
    CodecPart,
    Description,
    SamplingDefaults,
    Segmentation,
    Silence,
    Streaming,
    VoicePart,
)
from tontaube.codec.build import SpectralConfig
from tontaube.codec.spectral import BINS
from tontaube.codec.tensors import in_int8
from tontaube.recordings import write_codes
from tontaube.train import recipe
from tontaube.train.codes import CodedItem, load
from tontaube.train.corpus import HOP, Item, read
from tontaube.train.tokenizer import build_tokenizer
from tontaube.types import STREAMS, Codes

SHARPENING = 0.25  # of a magnitude's distance (log) from the mean around it
SHARPENED_BINS = 30  # to either side; 25 Hz each
QUIET = 0.1  # of the whole's RMS: a frame below it counts as silent
PROMPT_FRAMES = 100  # 8 s
PROMPT_STYLE = "conversational"
LICENSE_NOTE = """\
These weights were trained from scratch by `python -m tontaube.train` on synthetic speech made with
the hibari-tts package (a distillation of Kokoro-82M) and, where there is more than one voice, with
Kokoro-82M itself (all Apache-2.0). Texts came from Debian packages (`fortunes`, `wesnoth`, word
lists, LibreOffice's help) and from templates; no text is contained in this folder.
The weights are released under the Apache License 2.0, like the code.
"""


@dataclass(frozen=True, slots=True)
class Names:
    """What the exported bundle is called."""

    id: str
    revision: str


def export(run: Path, target: Path, names: Names) -> None:
    """Write the bundle of a finished run to ``target``."""
    codec = SpectralConfig()
    tokenizer = build_tokenizer(recipe.LANGUAGES, recipe.STYLES)
    (target / "tokenizer").mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(target / "tokenizer" / "tokenizer.json"))
    for stage in range(STREAMS):
        network = averaged_stage(run, stage, tokenizer)
        save_stage(network, target / f"cb{stage}", dtype=torch.float16, int8=True)
    save_file(small(sharpened(codec_weights(run))), target / "codec.safetensors")
    items = load(run / "codes")
    voices = write_voices(items, target / "voices")
    spoken = {item.language for item in items}
    description = Description(
        id=names.id,
        revision=names.revision,
        license="Apache-2.0",
        codec=CodecPart(
            kind="spectral",
            weights="codec.safetensors",
            features="logmel",
            config=codec.model_dump(),
        ),
        languages={n: code for n, code in recipe.LANGUAGES.items() if n in spoken},
        styles=recipe.STYLES,
        default_voice=voices[0].id,
        voices=voices,
        segmentation=Segmentation(max_characters=160, lookahead=50),
        sampling=SamplingDefaults(temperature=0.25, top_k=20, top_p=0.9, min_frames=8),
        silence=find_silence(list(read(run / "corpus", ["shard-000", "shard-001"])), items),
        streaming=Streaming(initial_frames=10, withheld_frames=2, growth=1.6, max_frames=50),
        prompt_frames=(150, 100, 75, 50),
        context_tokens=(1600, 1600, 1600, 1600),
    )
    (target / "bundle.json").write_text(description.model_dump_json(indent=2) + "\n", "utf-8")
    (target / "LICENSE.md").write_text(LICENSE_NOTE, "utf-8")


def averaged_stage(run: Path, stage: int, tokenizer: Tokenizer) -> StageNetwork:
    """A stage as its run has it by now."""
    shape = recipe.SHAPES[stage]
    network = StageNetwork(recipe.stage_config(stage, shape, tokenizer, SpectralConfig()))
    network.load_state_dict(_checkpoint(run / f"cb{stage}")["average"])
    return network


def _checkpoint(folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    saved: dict[str, dict[str, torch.Tensor]] = torch.load(
        folder / "checkpoint.pt", weights_only=True
    )
    return saved


def codec_weights(run: Path) -> dict[str, torch.Tensor]:
    """The codec of a run, without what only training needs."""
    polished = (run / "decoder" / "checkpoint.pt").exists()
    saved = _checkpoint(run / ("decoder" if polished else "codec"))["model"]
    return {n.removeprefix("codec."): t for n, t in saved.items() if n.startswith("codec.")}


def sharpened(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The spectral decoder's head with magnitudes that stand out a little more from their
    neighbours': least distances teach means, which are too smooth, and what speaks is heard through
    that as a veil (a formant postfilter, as in statistical synthesis). As magnitudes are linear in
    the head's outputs, it costs nothing later."""
    name = "dac.decoder.head"
    matrix = torch.cat((weights[f"{name}.weight"], weights[f"{name}.bias"][:, None]), 1).float()
    for first in (0, 2 * BINS):  # harmonic and noise; phases lie between them
        rows = matrix[first : first + BINS].t()[None]
        edges = F.pad(rows, (SHARPENED_BINS, SHARPENED_BINS), mode="replicate")
        smooth = F.avg_pool1d(edges, 2 * SHARPENED_BINS + 1, 1)
        matrix[first : first + BINS] = (rows + SHARPENING * (rows - smooth))[0].t()
    return weights | {f"{name}.weight": matrix[:, :-1], f"{name}.bias": matrix[:, -1]}


def small(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """As shipped: matrices in int8, the rest in fp16, but quantizers in fp32, since codes must not
    change."""
    exact = {name: tensor for name, tensor in weights.items() if "quantizers" in name}
    rest = {n: t.half() for n, t in weights.items() if n not in exact}
    return in_int8(rest) | exact


def write_voices(items: list[CodedItem], folder: Path) -> tuple[VoicePart, ...]:
    """The recipe's speakers whose sentences are there, each with a prompt of them; a model that
    knows one speaker needs none."""
    known = {item.speaker for item in items}
    voices = []
    for speaker in recipe.SPEAKERS:
        if speaker.timbre not in known:
            continue
        codes = None
        if len(known) > 1:
            codes = f"{folder.name}/{speaker.id}.safetensors"
            folder.mkdir(exist_ok=True)
            write_codes(folder / f"{speaker.id}.safetensors", prompt(items, speaker))
        voices.append(
            VoicePart(
                id=speaker.id,
                name=speaker.name,
                language=speaker.language,
                style=PROMPT_STYLE,
                codes=codes,
            )
        )
    return tuple(voices)


def prompt(items: list[CodedItem], speaker: recipe.Speaker) -> Codes:
    """Whole sentences [4, T] of a speaker, of the own language and the middle style first, until
    there are PROMPT_FRAMES."""
    wanted = (speaker.language, PROMPT_STYLE)
    own = [item for item in items if item.speaker == speaker.timbre]
    own.sort(
        key=lambda item: ((item.language, item.style) != wanted, -min(80, item.codes.shape[1]))
    )
    chosen, frames = [], 0
    for item in own:
        chosen.append(item.codes)
        frames += item.codes.shape[1]
        if frames >= PROMPT_FRAMES:
            break
    return np.concatenate(chosen, 1)


def find_silence(items: list[Item], coded: list[CodedItem]) -> Silence:
    """Which C0 codes stand for silence: those whose frames are quiet nine times in ten."""
    by_id = {c.id: c for c in coded}
    all_, quiet, firsts, lasts = Counter[int](), Counter[int](), Counter[int](), Counter[int]()
    tails: Counter[tuple[int, ...]] = Counter()
    for item in items:
        code = by_id[item.id].codes
        frames = item.samples[: code.shape[1] * HOP].reshape(-1, HOP).astype(np.float32) / 32768
        silent = (frames**2).mean(1) < QUIET**2 * (frames**2).mean()
        all_.update(code[0].tolist())
        quiet.update(code[0][silent].tolist())
        firsts[int(code[0, 0])] += 1
        lasts[int(code[0, -1])] += 1
        tails[tuple(code[:, -1].tolist())] += 1
    silent_codes = [c for c, n in quiet.most_common(64) if n > 20 and n / all_[c] > 0.9]
    onset, openings = firsts.most_common(1)[0]
    return Silence(
        onset=onset if openings > 0.8 * len(items) else None,  # styles may open differently
        codes=tuple(silent_codes[:10]),
        more_codes=tuple(silent_codes[10:20]),
        trailing=tails.most_common(1)[0][0],
        trailing_frames=3,
    )
