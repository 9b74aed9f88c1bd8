"""safetensors files → the parameters of a module, every name and shape checked before reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from tontaube.errors import BundleError

_NAMED = 5  # tensors named in an error; a wrong file would list hundreds


def load_tensors(
    module: nn.Module,
    path: Path,
    *,
    rename: Callable[[str], str | None] = str,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Fill ``module`` (which may be on the meta device) from a safetensors file, or from the
    folder of a whole or sharded one.

    ``rename`` turns a name in the file into the module's, or into None for a tensor not wanted.
    Raises BundleError naming what is missing, left over, misshapen or damaged.
    """
    tensors = _read(find_tensors(module, path, rename=rename), dtype)
    module.load_state_dict(tensors, assign=True)


def find_tensors(
    module: nn.Module, path: Path, *, rename: Callable[[str], str | None] = str
) -> dict[str, tuple[Path, str]]:
    """Where each of ``module``'s tensors lies: (file, name in it). Only headers are read.

    Raises BundleError as ``load_tensors`` does.
    """
    wanted = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    places: dict[str, tuple[Path, str]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for file in _files(path, rename):
        for stored, shape in _shapes(file).items():
            name = rename(stored)
            if name is not None:
                places[name] = file, stored
                shapes[name] = shape
    _check(path, wanted, shapes)
    return {name: places[name] for name in wanted}


def _files(path: Path, rename: Callable[[str], str | None]) -> list[Path]:
    """The files with tensors that are wanted; other shards of a larger checkpoint may be absent."""
    if path.is_file():
        return [path]
    whole, index = path / "model.safetensors", path / "model.safetensors.index.json"
    if whole.is_file():
        return [whole]
    if not index.is_file():
        raise BundleError(f"{path}: neither {whole.name} nor {index.name} is there")
    try:
        places = json.loads(index.read_text("utf-8"))["weight_map"]
        shards = sorted({shard for name, shard in places.items() if rename(name) is not None})
        files = [path / Path(shard).name for shard in shards]  # shards lie beside their index
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"{index}: not an index of shards ({error!r})") from error
    for file in files:
        if not file.is_file():
            raise BundleError(f"{file}: missing, though {index.name} names it")
    return files


def _shapes(file: Path) -> dict[str, tuple[int, ...]]:
    try:
        with safe_open(file, framework="pt") as opened:
            names = opened.keys()
            return {name: tuple(opened.get_slice(name).get_shape()) for name in names}
    except (SafetensorError, OSError) as error:
        raise BundleError(f"{file}: damaged ({error}); fetch it again") from error


def _read(places: dict[str, tuple[Path, str]], dtype: torch.dtype) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for file in sorted({file for file, _ in places.values()}):
        with safe_open(file, framework="pt") as opened:
            for name, (place, stored) in places.items():
                if place == file:
                    tensors[name] = opened.get_tensor(stored).to(dtype)
    return tensors


def _check(
    path: Path, wanted: dict[str, tuple[int, ...]], found: dict[str, tuple[int, ...]]
) -> None:
    misshapen = [
        f"{name} is {list(found[name])} instead of {list(shape)}"
        for name, shape in wanted.items()
        if name in found and found[name] != shape
    ]
    for problem, names in (
        ("missing tensors", sorted(wanted.keys() - found.keys())),
        ("unknown tensors", sorted(found.keys() - wanted.keys())),
        ("misshapen tensors", misshapen),
    ):
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            raise BundleError(f"{path}: {problem}: {', '.join(names[:_NAMED])}{more}")
