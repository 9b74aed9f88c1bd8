"""A bundle and somebody's recordings → a bundle that knows their voice.

Each stage learns low-rank changes of its matrices (LoRA, Hu et al. 2021), or all of them; the codec
stays as it is, so codes keep their meaning.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from tontaube.assembly import open_codec, open_grammar
from tontaube.backend.network import StageNetwork
from tontaube.backend.weights import load_stage, save_stage
from tontaube.bundle import OWN, Bundle, Description, VoicePart
from tontaube.codec.tensors import find_tensors
from tontaube.errors import BundleError
from tontaube.recordings import free_id, write_codes
from tontaube.tokens import StageConfig, TextTokenizer
from tontaube.train.codes import CodedItem
from tontaube.train.finetune_data import DataError, Labels, code_folder
from tontaube.train.progress import Progress, linear_after
from tontaube.train.rows import RowMaker
from tontaube.train.stages import Batch, StageTraining, cut, validate
from tontaube.types import STREAMS

LICENSE = "LICENSE.md"
STAGES = ("cb0", "cb1", "cb2", "cb3")
POOL = 128  # examples drawn at a time, then sorted by length
LEAST = 8  # recordings
HELD_OUT = 0.05  # of the recordings, two at least
LORA_RATE, FULL_RATE = 2e-3, 2e-4
PROMPT_SECONDS = 8  # of reference codes that the new voice ships with


@dataclass(frozen=True, slots=True)
class Plan:
    """Minutes a stage, tokens a step, rank of the changes (0: every weight is trained), and at
    most so many steps a stage."""

    minutes: tuple[float, float, float, float]
    tokens: int = 2048
    rank: int = 16
    seed: int = 0
    steps: int = 1_000_000


class LowRank(nn.Module):
    """A matrix W [out, in] as W + B A, of which only A [rank, in] and B [out, rank] learn.

    B starts at zero: before its first step the network is what it was.
    """

    def __init__(self, weight: Tensor, rank: int) -> None:
        super().__init__()
        out, width = weight.shape
        self.a = nn.Parameter(torch.randn(rank, width, device=weight.device) / width**0.5)
        self.b = nn.Parameter(torch.zeros(out, rank, device=weight.device))

    def forward(self, weight: Tensor) -> Tensor:
        """The changed matrix."""
        changed: Tensor = weight + self.b @ self.a
        return changed


def adapt(network: StageNetwork, rank: int) -> list[nn.Parameter]:
    """Make a network's linear layers low-rank trainable; returns what learns (rank 0: all)."""
    if rank == 0:
        return list(network.parameters())
    network.requires_grad_(False)
    learning: list[nn.Parameter] = []
    for module in list(network.modules()):
        if isinstance(module, nn.Linear):
            change = LowRank(module.weight, rank)
            parametrize.register_parametrization(module, "weight", change)
            learning += [change.a, change.b]
    return learning


def merge(network: StageNetwork) -> None:
    """Fold the changes into the matrices: the network has its plain shape again."""
    for module in network.modules():
        if isinstance(module, nn.Linear) and parametrize.is_parametrized(module, "weight"):
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)


class Data:
    """Batches of one stage, drawn from few recordings for as long as they are asked for."""

    def __init__(
        self, config: StageConfig, tokenizer: TextTokenizer, items: list[CodedItem], plan: Plan
    ) -> None:
        count = max(2, round(len(items) * HELD_OUT))
        shuffled = random.Random(plan.seed).sample(items, len(items))
        self._held_out, self._items = shuffled[:count], shuffled[count:]
        self._config, self._tokenizer, self._plan = config, tokenizer, plan

    def _maker(self, items: list[CodedItem], seed: int) -> RowMaker:
        return RowMaker(self._config, self._tokenizer, items, longest=200, seed=seed)

    def held_out(self) -> list[Batch]:
        """Always the same batches of recordings that no step sees."""
        maker = self._maker(self._held_out, 0)
        examples = [maker.example(item) for item in self._held_out]
        return cut(examples, self._plan.tokens, random.Random(0))

    def __iter__(self) -> Iterator[Batch]:
        rng = random.Random()
        maker = self._maker(self._items, rng.randrange(1 << 30))
        while True:
            pool = [maker.example(item) for item in rng.choices(self._items, k=POOL)]
            yield from cut(pool, self._plan.tokens, rng)


def train_stage(
    network: StageNetwork, data: Data, folder: Path, plan: Plan, minutes: float
) -> None:
    """Fit ``network``, a loaded stage, within ``minutes``; resumes what ``folder`` holds."""
    device = next(network.parameters()).device
    learning = adapt(network, plan.rank)
    peak = LORA_RATE if plan.rank else FULL_RATE
    optimizer = torch.optim.AdamW(learning, lr=peak, betas=(0.9, 0.98), weight_decay=0.01)
    checks = [batch.to(device) for batch in data.held_out()]
    progress = Progress(folder, minutes, {"network": network, "optimizer": optimizer})
    model = StageTraining(network, compiled=False)
    if progress.step == 0:
        loss_, right_ = validate(network, checks)
        progress.log("held-out", loss=loss_, accuracy=right_)
    for batch in data:
        if not progress.running or progress.step >= plan.steps:
            break
        for group in optimizer.param_groups:
            group["lr"] = peak * linear_after(progress.fraction, progress.step)
        network.train()
        loss, _ = model(batch.to(device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
        progress.advance()
    progress.save()
    merge(network)
    loss_, right_ = validate(network, checks)
    progress.log("held-out", loss=loss_, accuracy=right_)


def finetune(bundle: Bundle, source: Path, labels: Labels, target: Path, plan: Plan) -> None:
    """Write to ``target`` a bundle whose stages were fitted to the recordings in ``source``.

    It has one voice more for every speaker, and the first of them is its default. Raises
    BundleError for a bundle and DataError for recordings that cannot be used.
    """
    if target.resolve() == bundle.root.resolve():
        raise DataError(f"{target}: is the bundle to start from; choose another folder")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    grammar = open_grammar(bundle)
    codec, _ = open_codec(bundle, device)
    items = code_folder(
        source, labels, bundle.description, lambda samples: codec.encode(samples).cpu().numpy()
    )
    if len(items) < LEAST:
        raise DataError(f"{source}: {len(items)} recordings; at least {LEAST} are needed")
    seconds = sum(item.codes.shape[1] for item in items) * codec.hop / codec.sample_rate
    print(f"{len(items)} recordings, {seconds / 60:.1f} minutes", flush=True)
    for stage in range(STREAMS):  # before any of them is trained for hours
        with torch.device("meta"):
            network = StageNetwork(StageConfig.read(bundle.stage(stage)))
        find_tensors(network, bundle.stage(stage))
    for stage in range(STREAMS):
        network = load_stage(bundle.stage(stage)).to(device)
        data = Data(network.config, grammar.tokenizer, items, plan)
        train_stage(network, data, target / "training" / STAGES[stage], plan, plan.minutes[stage])
        save_stage(network, target / STAGES[stage], dtype=_dtype(bundle.stage(stage)))
    _copy_the_rest(bundle, target)
    description = _described(bundle.description, items)
    for voice in description.voices[len(bundle.description.voices) :]:
        spoken = [item.codes for item in items if item.speaker == voice.name]
        prompt = np.concatenate(spoken, 1)[:, : PROMPT_SECONDS * codec.sample_rate // codec.hop]
        (target / "voices").mkdir(exist_ok=True)
        write_codes(target / str(voice.codes), prompt)
    (target / "bundle.json").write_text(description.model_dump_json(indent=2) + "\n", "utf-8")


def _described(known: Description, items: list[CodedItem]) -> Description:
    """The bundle's description with stages of its own and a voice for each speaker."""
    taken = {voice.id for voice in known.voices}
    voices = []
    for speaker in dict.fromkeys(item.speaker for item in items):
        kinds = Counter((i.language, i.style) for i in items if i.speaker == speaker)
        (language, style), _ = kinds.most_common(1)[0]
        id_ = free_id(speaker, taken)
        taken.add(id_)
        codes = f"voices/{id_}.safetensors"
        voices.append(VoicePart(id=id_, name=speaker, language=language, style=style, codes=codes))
    return known.model_copy(
        update={
            "id": f"{known.id}-{voices[0].id}",
            "stages": STAGES,
            "voices": (*known.voices, *voices),
            "default_voice": voices[0].id,
        }
    )


def _copy_the_rest(bundle: Bundle, target: Path) -> None:
    """The bundle's own files but its stages; those of its sources are still fetched from there."""
    known = bundle.description
    for want in known.wants():
        if want.source != OWN or want.folder in known.stages:
            continue
        for file in (bundle.root / want.folder).iterdir() if want.weights else ():
            _copy(bundle.root, target, want.name(file.name))
        for name in want.files:
            _copy(bundle.root, target, want.name(name))
    if (bundle.root / LICENSE).exists():
        _copy(bundle.root, target, LICENSE)


def _copy(root: Path, target: Path, name: str) -> None:
    (target / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(root / name, target / name)


def _dtype(folder: Path) -> torch.dtype:
    """As the stage's own checkpoint says."""
    name = json.loads((folder / "config.json").read_text("utf-8")).get("torch_dtype", "bfloat16")
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise BundleError(f"{folder / 'config.json'}: torch_dtype {name!r} is no type of torch")
    return dtype
