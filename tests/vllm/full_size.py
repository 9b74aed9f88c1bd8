"""``python -m tests.vllm.full_size 3 2 1 0``: stages of the released sizes, random weights in the
released format, loaded by the same code as real ones; prints what that takes.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tests.tiny import tiny_job
from tests.vllm.requests import Results, run
from tontaube.backend.vllm.capacity import GIB, Capacity, StageSize
from tontaube.backend.vllm.installation import prepare_environment
from tontaube.bench.random_model import RELEASED, write_random_stage
from tontaube.tokens import StageConfig
from tontaube.types import StageJob

if TYPE_CHECKING:
    from tontaube.backend.vllm.stage import VllmStage

TOKENS = 200
JOBS = [tiny_job(name, length, 6, min_codes=6) for name, length in (("short", 3), ("long", 90))]


@dataclass(frozen=True)
class Loaded:
    """A stage in vLLM, and what its loading took."""

    stage: VllmStage
    config: StageConfig
    parameters: int  # of the network that vLLM runs
    stored: int  # bytes
    seconds: float

    def speak(self, jobs: list[StageJob] | None = None) -> Results:
        return run(self.stage, jobs or JOBS, together=2)


def write(which: int, folder: Path) -> StageConfig:
    """CB{which} as it is released: bfloat16, in shards of 2 GB."""
    config = RELEASED.stage(which)
    write_random_stage(config, folder)
    return config


def load(which: int, folder: Path, dtype: torch.dtype) -> Loaded:
    """Through ``VllmStage``'s own parts, as the engine is wanted here, too."""
    prepare_environment()
    from tontaube.backend.vllm.engine import open_engine
    from tontaube.backend.vllm.stage import VllmStage

    config = write(which, folder)
    size = StageSize.of(config, TOKENS, dtype)
    capacity = Capacity(sequences=2, tokens=TOKENS, kv_bytes=size.kv_bytes(2))
    start = time.perf_counter()
    engine = open_engine(folder, capacity, dtype, eager=True)
    seconds = time.perf_counter() - start
    (parameters,) = engine.apply_model(_parameters)
    stored = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    stage = VllmStage(engine, config, capacity)
    return Loaded(stage, config, parameters, stored, seconds)


def _parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.vllm.full_size", description=__doc__)
    parser.add_argument("stages", type=int, nargs="+", choices=range(4))
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'':<5}{'parameters':>15}{'file, GiB':>11}{'load, s':>9}{'process at most, GiB':>22}")
    kept = []
    for which in args.stages:
        with tempfile.TemporaryDirectory() as folder:
            loaded = load(which, Path(folder), torch.bfloat16)
            assert all(len(codes) == 6 for codes, _ in loaded.speak().values())
        kept.append(loaded)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB
        print(
            f"cb{which:<3}{loaded.parameters:>15,}{loaded.stored / GIB:>11.2f}"
            f"{loaded.seconds:>9.1f}{most:>22.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
