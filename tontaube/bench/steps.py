"""``python -m tontaube.bench steps``: what a step of each stage costs, and what it could cost.

Beside it stand the time in which the weights could be read once, and transformers' ``generate``
with the same weights, prompts and tokens. All of them take turns; times are CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tontaube.backend.network import AudioHead, StageNetwork
from tontaube.backend.torch import Capacity, TorchStage
from tontaube.backend.weights import load_stage
from tontaube.config import Settings
from tontaube.footprint import matrix_parameters
from tontaube.sources import open_bundle
from tontaube.tokens import StageConfig, Vocabulary
from tontaube.types import STREAMS, StageInput, StageJob

_PROMPT, _CODES = 120, 50
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A stage with a number of sequences: medians over the rounds, in CPU seconds."""

    stage: int
    sequences: int
    step: float
    floor: float
    generate: float  # transformers, for all codes of all sequences
    ours: float  # likewise
    same: bool

    def line(self) -> str:
        """As printed."""
        return (
            f"cb{self.stage:<4} {self.sequences:>9} {1e3 * self.step:>8.2f} "
            f"{1e3 * self.floor:>9.2f} {self.step / self.floor:>6.1f} "
            f"{self.generate / self.ours:>13.1f} {'yes' if self.same else 'NO':>12}"
        )


HEADER = (
    f"{'stage':<6} {'sequences':>9} {'step ms':>8} {'floor ms':>9} {'times':>6} "
    f"{'transformers':>13} {'same tokens':>12}"
)


class _Logits(nn.Module):
    """A stage's audio head as transformers wants it: over the whole vocabulary."""

    def __init__(self, head: AudioHead, ids: Tensor, size: int) -> None:
        super().__init__()
        self.head, self.ids, self.size = head, ids, size

    def forward(self, hidden: Tensor) -> Tensor:
        logits = hidden.new_full((*hidden.shape[:-1], self.size), float("-inf"))
        logits[..., self.ids] = self.head(hidden)[..., : len(self.ids)]
        return logits


def qwen3_config(config: StageConfig) -> Any:
    """A stage's trunk as transformers describes it."""
    from transformers import Qwen3Config

    return Qwen3Config(
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        num_key_value_heads=config.num_key_value_heads,
        head_dim=config.head_dim,
        intermediate_size=config.intermediate_size,
        vocab_size=config.vocab_size,
        rms_norm_eps=config.rms_norm_eps,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
    )


def _transformers(network: StageNetwork, ids: Tensor) -> Callable[[Tensor], Tensor]:
    """Prompts [n, length] → tokens [n, codes], greedily."""
    from transformers import Qwen3ForCausalLM

    model: Any = Qwen3ForCausalLM(qwen3_config(network.config))
    model.eval()
    model.model.load_state_dict(network.model.state_dict())
    model.lm_head = _Logits(network.audio_head, ids, network.config.vocab_size)

    def generate(prompts: Tensor) -> Tensor:
        tokens: Tensor = model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            do_sample=False,
            min_new_tokens=_CODES,
            max_new_tokens=_CODES,
            pad_token_id=0,
        )
        return tokens[:, prompts.shape[1] :]

    return generate


def _timed(function: Callable[[], Tensor]) -> tuple[Tensor, float]:
    start = time.thread_time()
    result = function()
    return result, time.thread_time() - start


def _ours(stage: TorchStage, prompts: Tensor, steps: list[float]) -> Tensor:
    """The same, as codes; notes what steps without prompts took."""
    positions = tuple(range(prompts.shape[1]))
    for number, ids in enumerate(prompts.tolist()):
        stage.add(
            StageJob(
                id=str(number),
                input=StageInput(tuple(ids), positions, len(ids)),
                max_codes=_CODES,
                min_codes=_CODES,
            )
        )
    codes: list[list[int]] = [[] for _ in prompts]
    while stage.running:
        start = time.thread_time()
        outputs = stage.step()
        if len(outputs) == len(prompts) and codes[0]:
            steps.append(time.thread_time() - start)
        for output in outputs:
            codes[int(output.job_id)] += output.codes
    return torch.tensor(codes)


def measure(network: StageNetwork, sequences: int) -> Row:
    """One stage with ``sequences`` prompts at once."""
    config = network.config
    vocabulary = Vocabulary(config)
    ids = torch.tensor(vocabulary.head_ids())
    ids = ids[: config.head_size - (2 if config.target_codebook == 0 else 0)]
    tokens = _PROMPT + _CODES
    capacity = Capacity(sequences=sequences, tokens=tokens, positions=tokens, prefix_tokens=0)
    stage, generate = TorchStage(network, capacity), _transformers(network, ids)
    weights = torch.ones(matrix_parameters(config))
    generator = torch.Generator().manual_seed(config.target_codebook)
    first = config.audio_token_start_id
    prompts = torch.randint(0, first, (sequences, _PROMPT), generator=generator)
    steps: list[float] = []
    floors, theirs, ours, same = [], [], [], True
    for _ in range(_ROUNDS):
        codes, seconds = _timed(lambda: _ours(stage, prompts, steps))
        ours.append(seconds)
        written, seconds = _timed(lambda: generate(prompts))
        theirs.append(seconds)
        same &= torch.equal(ids[codes], written)
        floors += [_timed(weights.sum)[1] for _ in range(20)]
    return Row(
        stage=config.target_codebook,
        sequences=sequences,
        step=float(np.median(steps)),
        floor=float(np.median(floors)),
        generate=float(np.median(theirs)),
        ours=float(np.median(ours)),
        same=same,
    )


def run(settings: Settings, sequences: tuple[int, ...] = (1, 8)) -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    bundle = open_bundle(settings.model, settings.parts)
    print(HEADER)
    for stage in range(STREAMS):
        network = load_stage(bundle.stage(stage))
        for number in sequences:
            with torch.inference_mode():
                print(measure(network, number).line(), flush=True)
