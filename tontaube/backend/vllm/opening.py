"""Four stages' folders and what the operator decided → four engines that share one device."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tontaube.backend.base import StageModule
from tontaube.backend.vllm.capacity import GIB, Beside, Memory, StageSize, plan
from tontaube.backend.vllm.installation import prepare_environment
from tontaube.tokens import StageConfig

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Sizing:
    """How large the engines may be."""

    contexts: Sequence[int]  # tokens of a stage's longest sequence, by stage
    sequences: int  # at most, that a stage runs at once
    codec_working: int  # bytes that the codec, which is loaded, works in
    profile: str = "auto"


def open_stages(
    folders: Sequence[Path], sizing: Sizing, dtype: torch.dtype, device: torch.device
) -> list[StageModule]:
    """Raises BundleError, and Unavailable for too little memory."""
    on_gpu = device.type == "cuda"
    sizes = [
        StageSize.of(StageConfig.read(folder), context, dtype)
        for folder, context in zip(folders, sizing.contexts, strict=True)
    ]
    capacities = plan(
        sizes,
        Memory.of(device),
        # all that this process has on the GPU so far is the codec
        Beside(torch.cuda.memory_reserved(device) if on_gpu else 0, sizing.codec_working),
        profile=sizing.profile,
        sequences=sizing.sequences,
        on_gpu=on_gpu,
    )
    prepare_environment()
    from tontaube.backend.vllm.stage import VllmStage  # vllm is installed where it is asked for

    stages: list[StageModule] = []
    for folder, capacity in zip(folders, capacities, strict=True):
        # on a CPU, compiling takes minutes and gains little
        stages.append(VllmStage.open(folder, capacity, dtype, eager=not on_gpu))
        log.info(
            "%s: %s in vLLM on %s, %d sequences, %.2f GiB of KV memory",
            *(folder.name, dtype, device, capacity.sequences, capacity.kv_bytes / GIB),
        )
    return stages
