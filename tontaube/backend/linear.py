"""A weight matrix laid out for this CPU → products with a few rows at a time.

oneDNN's packed product serves two needs at once. It is the fastest one here for the handful of rows
of a decoding step, and in float32 a row's result does not depend on how many rows are multiplied
with it, which the BLAS does not promise; batch-invariant serving rests on that. Where oneDNN is
missing the plain product is used.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_TYPICAL_ROWS = 8  # what the packing is tuned for; other counts work as well


def fastest_dtype() -> torch.dtype:
    """bfloat16 where the CPU multiplies it in hardware tiles (AMX), else float32."""
    return torch.bfloat16 if torch.cpu._is_amx_tile_supported() else torch.float32


class PackedLinear:
    """``x [rows, in] → x @ weight.T + bias [rows, out]`` in ``weight``'s type, for inference."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        weight = weight.detach().contiguous()
        self._bias = bias.detach().to(weight.dtype) if bias is not None else None
        self._packed = _can_pack(weight)
        if self._packed:
            weight = torch.ops.mkldnn._reorder_linear_weight(weight, _TYPICAL_ROWS)
        self._weight = weight

    def __call__(self, x: Tensor) -> Tensor:
        if not self._packed:
            return F.linear(x, self._weight, self._bias)
        out: Tensor = torch.ops.mkldnn._linear_pointwise.default(
            x, self._weight, self._bias, "none", [], ""
        )
        return out


def _can_pack(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or not torch._C._has_mkldnn:
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32
