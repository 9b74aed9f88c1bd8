"""A stage's folder and its capacity → a vLLM engine in this process, ready for steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from vllm import EngineArgs, ModelRegistry
from vllm.exceptions import VLLMError
from vllm.platforms import current_platform
from vllm.v1.engine.llm_engine import LLMEngine

from tontaube.backend.network import StageNetwork
from tontaube.backend.vllm.capacity import BLOCK, Capacity
from tontaube.backend.vllm.installation import prepare_environment
from tontaube.backend.vllm.model import VllmStageNetwork
from tontaube.codec.tensors import find_tensors
from tontaube.errors import Unavailable
from tontaube.tokens import StageConfig

_ARCHITECTURE = "TontaubeStage"
_CPU_WORKER = "tontaube.backend.vllm.worker.StageWorker"

# Empty. Without one vLLM takes ``eos_token_id``, a vocabulary id, from a stage's config.json and
# masks the code of that number wherever it masks the stops of a job.
_GENERATION = Path(__file__).parent / "generation"


def open_engine(folder: Path, capacity: Capacity, dtype: torch.dtype, *, eager: bool) -> Any:
    """Load a stage into an ``LLMEngine``; with ``eager`` nothing is compiled and no graph captured.

    Raises BundleError naming tensors that are missing, unknown or misshapen, Unavailable if vLLM
    cannot start.
    """
    check_weights(folder, StageConfig.read(folder))
    prepare_environment()
    ModelRegistry.register_model(_ARCHITECTURE, VllmStageNetwork)
    try:
        return LLMEngine.from_engine_args(arguments(folder, capacity, dtype, eager=eager))
    except (RuntimeError, ValueError, VLLMError) as error:
        raise Unavailable(
            f"vLLM cannot run {folder}: {error} (TONTAUBE_PROFILE and TONTAUBE_MAX_BATCH say how "
            "much memory it takes; TONTAUBE_ENGINE=torch does without vLLM)"
        ) from error


def arguments(folder: Path, capacity: Capacity, dtype: torch.dtype, *, eager: bool) -> EngineArgs:
    """How vLLM is asked to run a stage."""
    return EngineArgs(
        model=str(folder),
        hf_overrides=_overrides(StageConfig.read(folder)),
        skip_tokenizer_init=True,
        generation_config=str(_GENERATION),
        dtype=str(dtype).removeprefix("torch."),
        seed=0,
        max_model_len=capacity.tokens + 1,  # the last code is never read, but counted
        max_num_seqs=capacity.sequences,
        max_num_batched_tokens=max(capacity.prefill_tokens, capacity.sequences),
        block_size=BLOCK,
        kv_cache_memory_bytes=capacity.kv_bytes,
        gpu_memory_utilization=capacity.memory_share,
        enable_prefix_caching=True,
        enable_chunked_prefill=True,
        scheduling_policy="priority",
        async_scheduling=False,  # a step's codes are given at its end; an abort frees at once
        enforce_eager=eager,
        disable_log_stats=True,
        distributed_executor_backend="uni",
        worker_cls=_CPU_WORKER if current_platform.is_cpu() else "auto",
    )


def check_weights(folder: Path, config: StageConfig) -> None:
    """Raise BundleError unless ``folder`` holds exactly the tensors of a stage, by their headers:
    vLLM itself would leave out what is missing in silence."""
    with torch.device("meta"):
        network = StageNetwork(config)
    find_tensors(network, folder)


def _overrides(config: StageConfig) -> dict[str, Any]:
    """What vLLM is to read in place of a stage's ``config.json``."""
    return {
        "architectures": [_ARCHITECTURE],
        "vocab_size": config.head_size,  # what can be drawn
        "stage": config.model_dump(),
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": config.rope_theta,
            "mrope_section": _sections(config.head_dim),
        },
    }


def _sections(head_dim: int) -> list[int]:
    """M-RoPE's three parts of the pairs of channels. All parts get the same positions, so that any
    division gives plain RoPE at explicit positions."""
    third = head_dim // 2 // 3
    return [head_dim // 2 - 2 * third, third, third]
