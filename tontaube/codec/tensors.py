"""safetensors files → the parameters of a module, every name and shape checked before reading.

A small bundle may keep a matrix in int8 with a scale for each row, in ``<name>.scales``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from tontaube.errors import BundleError

SCALES = ".scales"
_LARGEST = 127  # of int8, the same to both sides of zero
_SMALLEST_SCALE = 1e-12  # of rows that are all zero
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


def to_int8(rows: Tensor) -> tuple[Tensor, Tensor]:
    """``rows [n, k]`` ≈ ``whole · scales``: int8 [n, k] and float32 [n, 1], symmetric, by rows."""
    rows = rows.float()
    scales = rows.abs().amax(1, keepdim=True).clamp_min(_SMALLEST_SCALE) / _LARGEST
    return (rows / scales).round().to(torch.int8), scales


def in_int8(tensors: dict[str, Tensor], least: int = 4096) -> dict[str, Tensor]:
    """Tensors as ``load_tensors`` reads them back, those of ``least`` values or more in int8: half
    the size of fp16, off by at most 1/254 of a row's largest value."""
    kept: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.dim() < 2 or tensor.numel() < least:
            kept[name] = tensor.contiguous()
            continue
        whole, scales = to_int8(tensor.flatten(1))
        kept[name] = whole.view(tensor.shape)
        kept[name + SCALES] = scales[:, 0]
    return kept


def widened(tensors: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """A file's tensors, in any order, those in int8 times their scales and in float32.

    Raises BundleError naming one without its scales.
    """
    halves: dict[str, Tensor] = {}  # int8 tensors and scales whose other half is to come
    for name, tensor in tensors:
        owner = name.removesuffix(SCALES)
        if tensor.dtype != torch.int8 and owner == name:
            yield name, tensor
            continue
        other = halves.pop(owner, None)
        if other is None:
            halves[owner] = tensor
        else:
            yield owner, _wide(*((tensor, other) if owner == name else (other, tensor)))
    for name in halves:
        raise BundleError(f"{name} is kept in int8 without {name}{SCALES}")


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
        stored_shapes = _shapes(file)
        for stored, shape in stored_shapes.items():
            if stored.endswith(SCALES) and stored.removesuffix(SCALES) in stored_shapes:
                continue
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
                    tensors[name] = _tensor(opened, stored).to(dtype)
    return tensors


def _tensor(opened: Any, name: str) -> Tensor:
    tensor: Tensor = opened.get_tensor(name)
    if tensor.dtype != torch.int8:
        return tensor
    if name + SCALES not in opened.keys():
        raise BundleError(f"{name} is kept in int8 without {name}{SCALES}")
    return _wide(tensor, opened.get_tensor(name + SCALES))


def _wide(whole: Tensor, scales: Tensor) -> Tensor:
    return whole * scales.view(-1, *(1 for _ in whole.shape[1:]))


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
