"""A stage's network for serving: one step's tokens of many sequences → their hidden states.

Keys and values stay in slots, one a sequence. A step is one pass over all its tokens: one per
decoding slot and pieces of prefills; only attention tells them apart. It knows no jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tontaube.backend.linear import PackedLinear
from tontaube.backend.network import Block, RMSNorm, StageNetwork, inverse_frequencies

_SPAN = 64  # decoding looks at whole spans of keys, so that lengths share kernels


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens ``start..stop`` of the sequence in ``slot``: a part of its prefill."""

    slot: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class StepBatch:
    """One step's M tokens: one for each of the slots 0..rows, then the pieces' tokens.

    A row whose slot does not decode writes its token behind the end of the slot, where it
    disturbs nobody: cheaper than gathering the others.
    """

    ids: Tensor  # int [M]
    positions: Tensor  # int [M], logical
    places: Tensor  # int [M], slot · capacity + index: where keys and values go
    lengths: Tensor  # int [rows]: keys each decoding row sees, its own included
    longest: int  # of ``lengths``
    pieces: tuple[Piece, ...]


class CachedNetwork:
    """A StageNetwork's weights, fused and packed, over key-value memory of fixed size."""

    def __init__(
        self,
        network: StageNetwork,
        *,
        slots: int,
        tokens: int,
        max_position: int,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Memory for ``slots`` sequences of at most ``tokens`` tokens each; ``dtype`` is that of
        weights, keys and values. Norms and the residual stream are float32."""
        config = network.config
        self.capacity = -(-(tokens + 1) // _SPAN) * _SPAN  # the last index takes idle rows' tokens
        self._heads, self._kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._head_dim = config.head_dim
        self._dtype = dtype
        # the last axes [token, kv_head, d]: a token is one contiguous write
        self.memory = torch.zeros(
            (config.num_hidden_layers, 2, slots, self.capacity, self._kv_heads, self._head_dim),
            dtype=dtype,
        )
        self._embedding = network.model.embed_tokens.weight.detach().to(dtype)
        self._normalize = _Normalize(config.hidden_size, config.rms_norm_eps)
        self._normalize_head = _Normalize(self._head_dim, config.rms_norm_eps)
        self._layers = [self._fuse(layer) for layer in network.model.layers]
        head, gain = network.audio_head, self._normalize.gain(network.model.norm)
        self._fc1 = PackedLinear((head.fc1.weight.detach() * gain).to(dtype), head.fc1.bias)
        self._fc2 = PackedLinear(head.fc2.weight.to(dtype), head.fc2.bias)
        angles = torch.arange(max_position + 1)[:, None] * inverse_frequencies(config)
        self._cos = torch.cat((angles.cos(), angles.cos()), -1)[:, None]  # [positions, 1, d]
        self._sin = torch.cat((-angles.sin(), angles.sin()), -1)[:, None]

    def run(self, batch: StepBatch) -> Tensor:
        """Write the step's keys and values; give the last block's output, float32 [M, D]."""
        cos, sin = self._cos[batch.positions], self._sin[batch.positions]
        masks = _masks(batch, self._dtype)
        x = F.embedding(batch.ids, self._embedding).float()
        for layer, keys_values in zip(self._layers, self.memory.unbind(0), strict=True):
            qkv = layer.qkv(self._normalize(x).to(self._dtype))
            q, k, v = self._split(qkv, layer, cos, sin)
            _write(keys_values, batch.places, k, v)
            mixed = self._attend(q, keys_values, batch, masks)
            x = x + layer.out(mixed)
            gate, up = layer.gate_up(self._normalize(x).to(self._dtype)).chunk(2, -1)
            x = x + layer.down(F.silu(gate) * up)
        return x

    def logits(self, x: Tensor) -> Tensor:
        """``run``'s rows [R, D] → float32 [R, head_size] in head order."""
        inner = self._fc1(self._normalize(x).to(self._dtype))
        return self._fc2(F.mish(inner)).float()

    def _split(
        self, qkv: Tensor, layer: _FusedBlock, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """[M, (heads + 2·kv_heads)·d] → q [M, heads, d], k and v [M, kv_heads, d]."""
        by_head = qkv.view(qkv.shape[0], -1, self._head_dim)
        qk = by_head[:, : self._heads + self._kv_heads].float()  # normed and turned together
        qk = self._normalize_head(qk) * layer.qk_gain
        qk = torch.addcmul(qk * cos, qk.roll(self._head_dim // 2, -1), sin).to(self._dtype)
        v = by_head[:, self._heads + self._kv_heads :]
        return qk[:, : self._heads], qk[:, self._heads :], v

    def _fuse(self, block: nn.Module) -> _FusedBlock:
        assert isinstance(block, Block)
        attention, mlp = block.self_attn, block.mlp

        def packed(*matrices: Tensor, gain: Tensor | float = 1.0) -> PackedLinear:
            return PackedLinear((torch.cat(matrices).detach() * gain).to(self._dtype))

        qkv = (attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight)
        gate_up = (mlp.gate_proj.weight, mlp.up_proj.weight)
        q_gain = self._normalize_head.gain(attention.q_norm).expand(self._heads, -1)
        k_gain = self._normalize_head.gain(attention.k_norm).expand(self._kv_heads, -1)
        return _FusedBlock(
            qkv=packed(*qkv, gain=self._normalize.gain(block.input_layernorm)),
            qk_gain=torch.cat((q_gain, k_gain)),
            out=packed(attention.o_proj.weight),
            gate_up=packed(*gate_up, gain=self._normalize.gain(block.post_attention_layernorm)),
            down=packed(mlp.down_proj.weight),
        )

    def _attend(
        self, q: Tensor, keys_values: Tensor, batch: StepBatch, masks: list[Tensor]
    ) -> Tensor:
        """q [M, heads, d] over the slots' keys and values → [M, heads·d]."""
        keys, values = keys_values.transpose(2, 3)  # each [slots, kv_heads, capacity, d]
        rows = batch.lengths.shape[0]
        mixed = []
        if rows:
            span = masks[0].shape[-1]
            k, v = keys[:rows, :, :span], values[:rows, :, :span]
            mixed.append(_attention(q[:rows, :, None], k, v, masks[0]).flatten(1))
        first = rows
        for piece, mask in zip(batch.pieces, masks[1:], strict=True):
            last = first + piece.stop - piece.start
            k = keys[piece.slot : piece.slot + 1, :, : piece.stop]
            v = values[piece.slot : piece.slot + 1, :, : piece.stop]
            out = _attention(q[first:last].transpose(0, 1)[None], k, v, mask)
            mixed.append(out[0].transpose(0, 1).flatten(1))
            first = last
        return torch.cat(mixed) if len(mixed) > 1 else mixed[0]


@dataclass(frozen=True, slots=True)
class _FusedBlock:
    """A block's weights as four matrices."""

    qkv: PackedLinear
    qk_gain: Tensor  # [heads + kv_heads, d]
    out: PackedLinear
    gate_up: PackedLinear
    down: PackedLinear


class _Normalize:
    """RMS norm in few kernels: x / hypot(‖x‖, √(n·eps)), which lacks a factor √n.

    That factor and the norm's gain belong to the matrix behind it (``gain``).
    """

    def __init__(self, width: int, eps: float) -> None:
        self._width = width
        self._floor = torch.tensor((width * eps) ** 0.5)

    def __call__(self, x: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x / torch.hypot(length, self._floor)

    def gain(self, norm: RMSNorm) -> Tensor:
        return norm.weight.detach().float() * self._width**0.5


def _write(keys_values: Tensor, places: Tensor, k: Tensor, v: Tensor) -> None:
    """Put k and v [M, kv_heads, d] at ``places`` of [2, slots, capacity, kv_heads, d]."""
    keys, values = keys_values.flatten(1, 2)
    keys.index_copy_(0, places, k)
    values.index_copy_(0, places, v)


def _attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    out: Tensor = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return out


def _masks(batch: StepBatch, dtype: torch.dtype) -> list[Tensor]:
    """Additive masks: first the decoding rows' [rows, 1, 1, span], then each piece's."""
    span = -(-batch.longest // _SPAN) * _SPAN
    seen = torch.arange(span) < batch.lengths[:, None, None, None]
    seens = [seen]
    for piece in batch.pieces:
        queries = torch.arange(piece.start, piece.stop)
        seens.append((torch.arange(piece.stop) <= queries[:, None])[None, None])
    return [torch.zeros(s.shape, dtype=dtype).masked_fill_(~s, float("-inf")) for s in seens]
