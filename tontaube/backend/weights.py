"""A stage's folder (``config.json`` and safetensors, whole or sharded) ↔ a StageNetwork.

Every name and shape is checked before anything is read; nothing is ever unpickled.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from tontaube.backend.network import Attention, StageNetwork, written_attention
from tontaube.errors import BundleError
from tontaube.tokens import StageConfig

_WHOLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_NAMED = 5  # tensors named in an error; a wrong file would list hundreds


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
    with torch.device("meta"):  # shapes only
        network = StageNetwork(config, attention=attention)
    expected = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    files = _files(folder)
    found = {name: shape for file in files for name, shape in _shapes(file).items()}
    _check(folder, expected, found)
    tensors: dict[str, Tensor] = {}
    for file in files:
        with safe_open(file, framework="pt") as opened:
            for name in opened.keys():
                tensors[name] = opened.get_tensor(name).to(dtype)
    network.load_state_dict(tensors, assign=True)
    return network.eval()


def save_stage(network: StageNetwork, folder: Path, *, dtype: torch.dtype = torch.bfloat16) -> None:
    """Write a stage in the released format, in ``dtype``."""
    folder.mkdir(parents=True, exist_ok=True)
    config = network.config
    description = {
        "architectures": ["TontaubeStage"],
        "model_type": "qwen3",
        "tie_word_embeddings": False,
        "torch_dtype": str(dtype).removeprefix("torch."),
        **config.model_dump(),
    }
    (folder / "config.json").write_text(json.dumps(description, indent=2) + "\n", "utf-8")
    tensors = {
        name: tensor.detach().to("cpu", dtype).contiguous()
        for name, tensor in network.state_dict().items()
    }
    save_file(tensors, folder / _WHOLE, metadata={"format": "pt"})


def _files(folder: Path) -> list[Path]:
    """The safetensors files of a stage."""
    index = folder / _INDEX
    if not index.is_file():
        if (folder / _WHOLE).is_file():
            return [folder / _WHOLE]
        raise BundleError(f"{folder}: neither {_WHOLE} nor {_INDEX} is there")
    try:
        shards = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
        files = [folder / Path(shard).name for shard in shards]  # shards lie beside their index
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"{index}: not an index of shards ({error!r})") from error
    for file in files:
        if not file.is_file():
            raise BundleError(f"{file}: missing, though {_INDEX} names it")
    return files


def _shapes(file: Path) -> dict[str, tuple[int, ...]]:
    try:
        with safe_open(file, framework="pt") as opened:
            names = opened.keys()
            return {name: tuple(opened.get_slice(name).get_shape()) for name in names}
    except SafetensorError as error:
        raise BundleError(f"{file}: damaged ({error}); fetch it again") from error


def _check(
    folder: Path, expected: dict[str, tuple[int, ...]], found: dict[str, tuple[int, ...]]
) -> None:
    misshapen = [
        f"{name} is {list(found[name])} instead of {list(shape)}"
        for name, shape in expected.items()
        if name in found and found[name] != shape
    ]
    for problem, names in (
        ("missing tensors", sorted(expected.keys() - found.keys())),
        ("unknown tensors", sorted(found.keys() - expected.keys())),
        ("misshapen tensors", misshapen),
    ):
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            listed = ", ".join(names[:_NAMED])
            raise BundleError(f"{folder}: {problem} for its config.json: {listed}{more}")
