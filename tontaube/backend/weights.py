"""A stage's folder (``config.json`` and safetensors, whole or sharded) ↔ a StageNetwork."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from tontaube.backend.network import Attention, StageNetwork, written_attention
from tontaube.codec.tensors import in_int8, load_tensors
from tontaube.tokens import StageConfig


def load_stage(
    folder: Path,
    *,
    dtype: torch.dtype = torch.float32,
    attention: Attention = written_attention,
) -> StageNetwork:
    """Read a stage as a network in ``dtype``, ready for inference.

    Raises BundleError naming the file or the tensors that are missing, unknown or misshapen.
    """
    config = StageConfig.read(folder)
    with torch.device("meta"):  # no memory and no random numbers for weights about to be read
        network = StageNetwork(config, attention=attention)
    load_tensors(network, folder, dtype=dtype)
    return network.eval()


def save_stage(
    network: StageNetwork,
    folder: Path,
    *,
    dtype: torch.dtype = torch.bfloat16,
    int8: bool = False,
) -> None:
    """Write a stage in the released format, in ``dtype``.

    ``int8``: its matrices in int8 with scales, which only this project reads.
    """
    write_config(network.config, folder, dtype)
    tensors = {
        name: tensor.detach().to("cpu", dtype).contiguous()
        for name, tensor in network.state_dict().items()
    }
    tensors = in_int8(tensors) if int8 else tensors
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def write_config(config: StageConfig, folder: Path, dtype: torch.dtype) -> None:
    """Write a stage's ``config.json``, as a checkpoint in ``dtype`` has it."""
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "architectures": ["TontaubeStage"],
        "model_type": "qwen3",
        "tie_word_embeddings": False,
        "torch_dtype": str(dtype).removeprefix("torch."),
        **config.model_dump(),
    }
    (folder / "config.json").write_text(json.dumps(description, indent=2) + "\n", "utf-8")
