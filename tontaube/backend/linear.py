"""A weight matrix laid out for this CPU → products with a few rows at a time.

In float32 a row's result must not depend on how many rows are multiplied with it: batch-invariant
serving rests on that. The BLAS does not promise it, but for small matrices, laid out input by
output and given two rows or more, it is so, and quick; whether it is so on this machine is tried
with each shape. Otherwise oneDNN's packed product is taken, which keeps two rows or more apart at
any size, and is the quickest for large matrices. In int8 sums are whole numbers: nothing to try.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from tontaube.codec.tensors import to_int8

_TYPICAL_ROWS = 8  # what the packing is tuned for; other counts work as well
_SMALL = 2**21  # elements of a matrix that the BLAS may multiply
_TRIED = (*range(2, 18), 24, 33, 64, 65, 129, 257)  # rows


class Product(ABC):
    """``x [rows, in] → x @ weight.T + bias [rows, out]``, for inference; all of it float32, however
    the weight is kept."""

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Into new memory."""

    def into(self, x: Tensor, out: Tensor) -> None:
        """Into ``out`` [rows, out]."""
        out.copy_(self(x))

    def add_to(self, rest: Tensor, x: Tensor) -> None:
        """``rest`` [rows, out] grows by the product."""
        rest.add_(self(x))


def pack(weight: Tensor, bias: Tensor | None = None, *, int8: bool = False) -> Product:
    """The product with a matrix in its own type, or in int8."""
    if int8:
        return Int8Linear(weight, bias)
    small = weight.device.type == "cpu" and weight.dtype == torch.float32
    if small and weight.numel() <= _SMALL and _keeps_rows_apart(*weight.shape):
        return SmallLinear(weight, bias)
    return PackedLinear(weight, bias)


class SmallLinear(Product):
    """By the BLAS, in float32."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._weight = weight.detach().t().contiguous()
        self._bias = None if bias is None else bias.detach().float()

    def __call__(self, x: Tensor) -> Tensor:
        if len(x) == 1:  # a single row would be summed in another order
            return self(torch.cat((x, x)))[:1]
        if self._bias is None:
            return torch.mm(x, self._weight)
        return torch.addmm(self._bias, x, self._weight)

    def into(self, x: Tensor, out: Tensor) -> None:
        if len(x) == 1 or self._bias is not None:
            super().into(x, out)
        else:
            torch.mm(x, self._weight, out=out)

    def add_to(self, rest: Tensor, x: Tensor) -> None:
        if len(x) == 1 or self._bias is not None:
            super().add_to(rest, x)
        else:
            rest.addmm_(x, self._weight)


@lru_cache(maxsize=256)
def _keeps_rows_apart(out: int, width: int) -> bool:
    """Whether the BLAS's product with a matrix of this shape gives a row the same bits in any
    company of two rows or more. Another order of summation shows in nearly every element."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn((width, out), generator=generator)
    x = torch.randn((_TRIED[-1], width), generator=generator)
    whole = x @ weight
    rest = torch.randn((len(x), out), generator=generator)
    added = torch.addmm(rest, x, weight)
    return all(
        torch.equal(x[-rows:] @ weight, whole[-rows:])
        and torch.equal(torch.addmm(rest[-rows:], x[-rows:], weight), added[-rows:])
        for rows in _TRIED
    )


class PackedLinear(Product):
    """By oneDNN, or plainly where that is missing, in the weight's type."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        weight = weight.detach().contiguous()
        self._bias = bias.detach().to(weight.dtype) if bias is not None else None
        self._dtype = weight.dtype
        self._packed = _can_pack(weight)
        if self._packed:
            weight = torch.ops.mkldnn._reorder_linear_weight(weight, _TYPICAL_ROWS)
        self._weight = weight

    def __call__(self, x: Tensor) -> Tensor:
        if len(x) == 1 and self._dtype == torch.float32:  # for some sizes summed in another order
            return self(torch.cat((x, x)))[:1]
        x = x.to(self._dtype)
        if not self._packed:
            return F.linear(x, self._weight, self._bias).float()
        out: Tensor = torch.ops.mkldnn._linear_pointwise.default(
            x, self._weight, self._bias, "none", [], ""
        )
        return out.float()


class Int8Linear(Product):
    """With the matrix kept in int8, a scale for each of its rows.

    The rows of ``x`` are rounded likewise for the product and no longer: that takes the CPU's
    integer instructions, which are several times as fast as converting the matrix each time.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self._bias = bias.detach().float() if bias is not None else None
        whole, scales = to_int8(weight.detach())
        self._scales = scales[:, 0].contiguous()  # [out]
        self._packed = whole.device.type == "cpu" and torch._C._has_mkldnn
        if self._packed:
            self._zeros = torch.zeros(len(whole), dtype=torch.int64)
            whole = torch.ops.onednn.qlinear_prepack(whole, [_TYPICAL_ROWS, whole.shape[1]])
        self._weight = whole

    def __call__(self, x: Tensor) -> Tensor:
        if (
            self._packed and len(x) == 1
        ):  # for some widths oneDNN has only a slow product of one row
            return self(x.expand(2, -1))[:1]
        whole, scales = to_int8(x)
        if self._packed:
            out: Tensor = torch.ops.onednn.qlinear_pointwise(
                *(whole, 1.0, 0, self._weight, self._scales, self._zeros),
                *(None, 1.0, 0, torch.float32, "none", [], ""),
            )
        else:
            out = F.linear(whole.float(), self._weight.float()) * self._scales
        out = out * scales
        return out if self._bias is None else out + self._bias


def _can_pack(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or not torch._C._has_mkldnn:
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32
