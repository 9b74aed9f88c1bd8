"""``python -m tests.vllm.steps``: what a step of CB0 takes if the sampler works on the stage's own
codes, and if it works on the whole vocabulary of 168 057 entries; the trunk is small.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from vllm import ModelRegistry
from vllm.v1.engine.llm_engine import LLMEngine

from tests.test_network import released_config
from tests.tiny import tiny_job
from tontaube.backend.network import StageNetwork
from tontaube.backend.vllm.capacity import Capacity, StageSize
from tontaube.backend.vllm.engine import arguments, open_engine
from tontaube.backend.vllm.installation import prepare_environment
from tontaube.backend.vllm.model import VllmStageNetwork
from tontaube.backend.vllm.stage import VllmStage
from tontaube.backend.weights import save_stage
from tontaube.tokens import StageConfig
from tontaube.types import Sampling

DRAWING = {
    "greedy": Sampling(temperature=0.0),
    "temperature 0.8, top-p 0.95, top-k 50": Sampling(0.8, 0.95, 50, seed=1),
}


class WholeVocabulary(VllmStageNetwork):
    """Gives a logit for every id of the vocabulary, most of them impossible."""

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        self._size = int(vllm_config.model_config.hf_config.vocab_size)

    def compute_logits(self, hidden_states: Tensor) -> Tensor:
        own = super().compute_logits(hidden_states)
        return F.pad(own, (0, self._size - own.shape[-1]), value=float("-inf"))


def write_stage(folder: Path) -> StageConfig:
    """CB0 with the released vocabulary and head, and two narrow blocks."""
    narrow = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64}
    small = released_config(0, blocks=2, width=256, inner=512)
    config = small.model_copy(update=narrow | {"audio_head_hidden": 256})
    torch.manual_seed(0)
    save_stage(StageNetwork(config), folder, dtype=torch.float32)
    return config


def whole(folder: Path, config: StageConfig, capacity: Capacity) -> VllmStage:
    """The stage as it would be without an order of its own for ids."""
    ModelRegistry.register_model("WholeVocabulary", WholeVocabulary)
    asked = arguments(folder, capacity, torch.float32, eager=True)
    asked.hf_overrides |= {"architectures": ["WholeVocabulary"], "vocab_size": config.vocab_size}
    return VllmStage(LLMEngine.from_engine_args(asked), config, capacity)


def milliseconds(stage: VllmStage, sampling: Sampling, batch: int, steps: int) -> float:
    """A decoding step of ``batch`` sequences takes at its best (a tenth are faster); the thread's
    own time, as others may use the machine."""
    for i in range(batch):
        stage.add(tiny_job(f"{i}", 40, steps + 12, min_codes=steps + 12, sampling=sampling))
    for _ in range(10):
        stage.step()
    spent = []
    for _ in range(steps):
        start = time.thread_time()
        stage.step()
        spent.append(time.thread_time() - start)
    while stage.running:
        stage.step()
    return 1e3 * float(np.quantile(spent, 0.1))


def measure(batches: Sequence[int], steps: int) -> None:
    prepare_environment()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_stage(folder)
        size = StageSize.of(config, 400, torch.float32)
        capacity = Capacity(
            sequences=max(batches), tokens=400, kv_bytes=size.kv_bytes(max(batches))
        )
        engine = open_engine(folder, capacity, torch.float32, eager=True)
        own = VllmStage(engine, config, capacity)
        before = whole(folder, config, capacity)
        print(
            f"{config.vocab_size} ids, of which {config.head_size} are drawn; milliseconds a step"
        )
        print(f"{'':<40}{'sequences':>10}{'whole':>8}{'own':>8}{'ratio':>7}")
        for name, sampling in DRAWING.items():
            for batch in batches:
                slow, fast = (milliseconds(s, sampling, batch, steps) for s in (before, own))
                print(f"{name:<40}{batch:>10}{slow:>8.2f}{fast:>8.2f}{slow / fast:>7.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.vllm.steps", description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    torch.set_num_threads(1)
    measure((1, 8, 16), args.steps)


if __name__ == "__main__":
    main()
