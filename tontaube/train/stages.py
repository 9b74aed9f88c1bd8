"""Trains one stage on coded sentences: compiled steps, Muon for the blocks' matrices."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tontaube.backend.network import StageNetwork
from tontaube.tokens import StageConfig, TextTokenizer, Vocabulary
from tontaube.train.codes import CodedItem, load
from tontaube.train.corpus import is_held_out, lot
from tontaube.train.progress import Progress, linear_after
from tontaube.train.rows import IGNORED, Example, RowMaker

CHECKED = 200  # held-out sentences that are measured
POOL = 768  # examples drawn at a time, then sorted by length
REFRESH = 8  # pools between two looks at the corpus
ROUND = 32  # lengths are padded to multiples of this
MUON_RATE, ADAM_RATE = 0.02, 3e-3
AVERAGING = 0.998  # decay of the averaged weights, which are what is validated and exported
EVALUATE_EVERY = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """How a stage is trained: minutes of work, tokens a step, dropout, longest chunk, weights to
    start from, the largest share of a row's own codes that are ``mistaken``."""

    minutes: float
    tokens: int = 4096
    dropout: float = 0.05
    longest: int = 200  # characters of a chunk
    start: Mapping[str, Tensor] | None = None
    mistakes: float = 0.3


@dataclass(frozen=True, slots=True)
class Batch:
    """Right-padded ids, positions and labels, each int64 [B, T]."""

    ids: Tensor
    positions: Tensor
    labels: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        return Batch(self.ids.to(device), self.positions.to(device), self.labels.to(device))


def collate(examples: list[Example]) -> Batch:
    """Pad to a common length, a multiple of ROUND."""
    longest = -(-max(len(e.ids) for e in examples) // ROUND) * ROUND

    def padded(rows: list[list[int]], value: int) -> Tensor:
        return torch.tensor([row + [value] * (longest - len(row)) for row in rows])

    return Batch(
        padded([list(e.ids) for e in examples], 0),
        padded([list(e.positions) for e in examples], 0),
        padded([list(e.labels) for e in examples], IGNORED),
    )


def cut(pool: list[Example], tokens: int, rng: random.Random) -> list[Batch]:
    """Batches of about ``tokens`` tokens of similar length, in random order."""
    pool = sorted(pool, key=lambda e: len(e.ids))
    groups: list[list[Example]] = [[]]
    for example in pool:
        width = -(-len(example.ids) // ROUND) * ROUND
        if groups[-1] and (len(groups[-1]) + 1) * width > tokens:
            groups.append([])
        groups[-1].append(example)
    rng.shuffle(groups)
    return [collate(group) for group in groups]


def weights(items: Sequence[CodedItem]) -> list[float]:
    """How often each is drawn: a language with four times the sentences is heard twice as often."""
    counts = Counter(item.language for item in items)
    return [counts[item.language] ** -0.5 for item in items]


def mistaken(batch: Batch, vocabulary: Vocabulary, most: float) -> Batch:
    """The batch with some of the codes that rows go on from replaced by other codes of the batch,
    in each row a share of 0..``most``; labels stay.

    What was just said foretells the next code so well that a stage hardly learns to look at the
    text, and one mistake of its own then leads to the next.
    """
    first = vocabulary.starts[vocabulary.stage]
    written = (batch.ids >= first) & (batch.ids < first + vocabulary.sizes[vocabulary.stage])
    written &= batch.labels != IGNORED  # prompts are never mistaken
    share = most * torch.rand(len(batch.ids), 1)
    wrong = written & (torch.rand(batch.ids.shape) < share)
    codes = batch.ids[written]
    ids = batch.ids.clone()
    ids[wrong] = codes[torch.randint(len(codes), (int(wrong.sum()),))]
    return replace(batch, ids=ids)


class StageTraining(nn.Module):
    """A stage's network and its loss over the labelled tokens only."""

    def __init__(self, network: StageNetwork, compiled: bool = True) -> None:
        super().__init__()
        self.network = network
        self._trunk = torch.compile(network, dynamic=True) if compiled else network

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Mean cross-entropy and accuracy."""
        wanted = batch.labels != IGNORED
        with torch.autocast(batch.ids.device.type, dtype=torch.bfloat16):
            hidden = self._trunk(batch.ids, batch.positions)
            logits = self.network.head(hidden[wanted]).float()
        labels = batch.labels[wanted]
        return F.cross_entropy(logits, labels), (logits.argmax(-1) == labels).float().mean()


def optimizers(network: StageNetwork) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of the blocks, AdamW for everything else."""
    named = list(network.named_parameters())
    matrices = [p for name, p in named if ".layers." in name and p.dim() == 2]
    others = [p for name, p in named if not (".layers." in name and p.dim() == 2)]
    return [
        torch.optim.Muon(matrices, lr=MUON_RATE, momentum=0.95, weight_decay=0.05),
        torch.optim.AdamW(others, lr=ADAM_RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True),
    ]


@torch.no_grad()
def validate(network: StageNetwork, batches_: list[Batch]) -> tuple[float, float]:
    """Cross-entropy and accuracy over held-out batches."""
    network.eval()
    model = StageTraining(network, compiled=False)
    scored = [(int((b.labels != IGNORED).sum()), *model(b)) for b in batches_]
    total = sum(n for n, _, _ in scored)
    return (
        sum(n * loss.item() for n, loss, _ in scored) / total,
        sum(n * right.item() for n, _, right in scored) / total,
    )


class Data:
    """Coded sentences, looked up anew now and then: the corpus may grow while a stage trains."""

    def __init__(self, codes: Path, config: StageConfig, tokenizer: TextTokenizer, plan: Plan):
        self._codes, self._config, self._tokenizer, self._plan = codes, config, tokenizer, plan
        self._rng = random.Random()

    def _maker(self, items: list[CodedItem], seed: int) -> RowMaker:
        return RowMaker(self._config, self._tokenizer, items, self._plan.longest, seed)

    def _items(self) -> list[CodedItem]:
        return load(self._codes, self._config.target_codebook + 1)

    def held_out(self) -> list[Batch]:
        """Always the same batches, as long as the corpus stays the same."""
        known = (item for item in self._items() if is_held_out(item.id))
        items = sorted(known, key=lambda item: lot(item.id))[:CHECKED]
        maker = self._maker(items, seed=0)
        return cut([maker.example(i) for i in items], self._plan.tokens, random.Random(0))

    def __iter__(self) -> Iterator[Batch]:
        while True:
            items = [item for item in self._items() if not is_held_out(item.id)]
            print(f"{len(items)} sentences", flush=True)
            maker = self._maker(items, self._rng.randrange(1 << 30))
            shares = list(accumulate(weights(items)))
            for _ in range(REFRESH):
                drawn = self._rng.choices(items, cum_weights=shares, k=POOL)
                pool = [maker.example(item) for item in drawn]
                yield from cut(pool, self._plan.tokens, self._rng)


def train(
    config: StageConfig, tokenizer: TextTokenizer, codes: Path, folder: Path, plan: Plan
) -> StageNetwork:
    """Train within the plan's minutes, resuming what ``folder`` holds; returns averaged weights."""
    network = StageNetwork(config, dropout=plan.dropout)
    if plan.start is not None:
        network.load_state_dict(plan.start)
    average = StageNetwork(config)
    average.load_state_dict(network.state_dict())
    opts = optimizers(network)
    state = {"network": network, "average": average, "muon": opts[0], "adam": opts[1]}
    progress = Progress(folder, plan.minutes, state)
    data = Data(codes, config, tokenizer, plan)
    checks = data.held_out()
    model = StageTraining(network)
    vocabulary = Vocabulary(config)
    peak = (MUON_RATE, ADAM_RATE)
    for batch in data:
        scale = linear_after(progress.fraction, progress.step)
        for opt, rate in zip(opts, peak, strict=True):
            for group in opt.param_groups:
                group["lr"] = rate * scale
        network.train()
        loss, right = model(mistaken(batch, vocabulary, plan.mistakes))
        for opt in opts:
            opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        for opt in opts:
            opt.step()
        with torch.no_grad():
            decay = min(AVERAGING, 1 - 1 / (progress.step + 1))
            for mean, now in zip(average.parameters(), network.parameters(), strict=True):
                mean.lerp_(now, 1 - decay)
        progress.advance()
        if progress.step % 100 == 0:
            progress.log("train", loss=loss.item(), accuracy=right.item(), rate=scale)
        if progress.step % EVALUATE_EVERY == 0 or not progress.running:
            loss_, right_ = validate(average, checks)
            progress.log("held-out", loss=loss_, accuracy=right_)
        if not progress.running:
            return average
    raise AssertionError("batches never end")
