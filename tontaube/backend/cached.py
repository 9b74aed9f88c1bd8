"""A stage's network for serving: one step's tokens of many sequences → their hidden states.

Keys and values stay in slots, one a sequence. A step is one pass over all its tokens: one per
decoding slot and pieces of prefills; only attention tells them apart. It knows no jobs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tontaube.backend.attention import SPAN, Piece, StepAttention, row_attention
from tontaube.backend.linear import Product, pack
from tontaube.backend.network import Block, RMSNorm, StageNetwork, inverse_frequencies
from tontaube.tokens import StageConfig


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
        int8: bool = False,
    ) -> None:
        """Memory for ``slots`` sequences of at most ``tokens`` tokens each; ``dtype`` is that of
        weights, keys and values, ``int8`` keeps matrices in int8. Norms and the residual stream are
        float32."""
        config = network.config
        self.capacity = -(-(tokens + 1) // SPAN) * SPAN  # the last index takes idle rows' tokens
        self._heads, self._kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._head_dim = config.head_dim
        self._dtype, self._int8 = dtype, int8
        self._config = config
        self._attend = row_attention(self._heads // self._kv_heads, self._head_dim, dtype)
        self._room = _Rows(config, max(2, slots))
        self._rows: dict[int, _Rows] = {}  # views of it
        # the last axes [token, kv_head, d]: a token is one contiguous write
        self.memory = torch.zeros(
            (config.num_hidden_layers, 2, slots, self.capacity, self._kv_heads, self._head_dim),
            dtype=dtype,
        )
        # the same memory as [2 · layers, slots, kv_heads, capacity, d], and place by place
        self._by_head = self.memory.transpose(3, 4).flatten(0, 1)
        self._places = [m.flatten(0, 1) for m in self.memory.flatten(0, 1).unbind()]
        self._embedding = network.model.embed_tokens.weight.detach().to(dtype)
        self._normalize = _Normalize(config.hidden_size, config.rms_norm_eps)
        self._normalize_head = _Normalize(self._head_dim, config.rms_norm_eps)
        self._layers = [self._fuse(layer) for layer in network.model.layers]
        head, gain = network.audio_head, self._normalize.gain(network.model.norm)
        fc1 = (head.fc1.weight.detach() * gain).to(dtype)
        self._fc1 = pack(fc1, head.fc1.bias, int8=int8)
        self._fc2 = pack(head.fc2.weight.to(dtype), head.fc2.bias, int8=int8)
        angles = torch.arange(max_position + 1)[:, None] * inverse_frequencies(config)
        self._turns = torch.polar(torch.ones_like(angles), angles)[:, None]  # [positions, 1, d/2]

    def run(self, batch: StepBatch) -> Tensor:
        """Write the step's keys and values; give the last block's output, float32 [M, D]."""
        ids, positions, places = batch.ids, batch.positions, batch.places
        alone = len(ids) == 1
        if alone:  # products keep rows apart from two on; the second one is the first again
            ids, positions, places = (x.expand(2) for x in (ids, positions, places))
        rows = self._rows_of(len(ids))
        turns = self._turns.index_select(0, positions)
        attention = StepAttention(
            self._by_head, batch.lengths, batch.longest, batch.pieces, self._attend
        )
        x = F.embedding(ids, self._embedding).float()
        for i, layer in enumerate(self._layers):
            layer.qkv.into(self._normalize(x, rows.normed, rows.length), rows.qkv)
            self._normalize_head(rows.qk, rows.qk, rows.lengths)
            rows.qk.mul_(layer.qk_gain)
            rows.pairs.mul_(turns)
            self._places[2 * i].index_copy_(0, places, rows.k.to(self._dtype))
            self._places[2 * i + 1].index_copy_(0, places, rows.v.to(self._dtype))
            mixed = attention(i, rows.q.to(self._dtype))
            layer.out.add_to(x, torch.cat((mixed, mixed)) if alone else mixed)
            layer.gate_up.into(self._normalize(x, rows.normed, rows.length), rows.gate_up)
            torch.mul(F.silu(rows.gate, inplace=True), rows.up, out=rows.inner)
            layer.down.add_to(x, rows.inner)
        return x[:1] if alone else x

    def logits(self, x: Tensor) -> Tensor:
        """``run``'s rows [R, D] → float32 [R, head_size] in head order."""
        inner = self._fc1(self._normalize(x, torch.empty_like(x), x.new_empty(len(x), 1)))
        return self._fc2(F.mish(inner))

    def _rows_of(self, count: int) -> _Rows:
        """Room for a step's rows: that of decoding steps is there, a prompt's is made for it."""
        if count > len(self._room.normed):
            return _Rows(self._config, count)
        rows = self._rows.get(count)
        if rows is None:
            rows = self._rows[count] = _Rows(self._config, count, self._room)
        return rows

    def _fuse(self, block: nn.Module) -> _FusedBlock:
        assert isinstance(block, Block)
        attention, mlp = block.self_attn, block.mlp
        paired = self._paired

        def packed(*matrices: Tensor, gain: Tensor | float = 1.0) -> Product:
            fused = (torch.cat(matrices).detach() * gain).to(self._dtype)
            return pack(fused, int8=self._int8)

        qkv = (
            paired(attention.q_proj.weight),
            paired(attention.k_proj.weight),
            attention.v_proj.weight,
        )
        q_gain = paired(self._normalize_head.gain(attention.q_norm)).expand(self._heads, -1)
        k_gain = paired(self._normalize_head.gain(attention.k_norm)).expand(self._kv_heads, -1)
        return _FusedBlock(
            qkv=packed(*qkv, gain=self._normalize.gain(block.input_layernorm)),
            qk_gain=torch.cat((q_gain, k_gain)),
            out=packed(attention.o_proj.weight),
            gate_up=packed(
                mlp.gate_proj.weight,
                mlp.up_proj.weight,
                gain=self._normalize.gain(block.post_attention_layernorm),
            ),
            down=packed(mlp.down_proj.weight),
        )

    def _paired(self, weight: Tensor) -> Tensor:
        """Put channels i and i + d/2, which RoPE turns together, side by side: a turn is then one
        complex product. Queries and keys are permuted alike, so their products stay the same."""
        halves = weight.view(-1, 2, self._head_dim // 2, *weight.shape[1:])
        return halves.transpose(1, 2).flatten(0, 2)


@dataclass(frozen=True, slots=True)
class _FusedBlock:
    """A block's weights as four matrices."""

    qkv: Product
    qk_gain: Tensor  # [heads + kv_heads, d]
    out: Product
    gate_up: Product
    down: Product


class _Rows:
    """What M rows of a step work in, and the views that it is looked at through: making both anew
    for every block takes longer than the arithmetic of a small network."""

    def __init__(self, config: StageConfig, count: int, room: _Rows | None = None) -> None:
        """In memory of their own, or in the first rows of ``room``."""
        d, heads, kv_heads = config.head_dim, config.num_attention_heads, config.num_key_value_heads
        both, inner = heads + kv_heads, config.intermediate_size
        self.parts: list[Tensor]
        widths = (config.hidden_size, 1, (both + kv_heads) * d, both, 2 * inner, inner)
        whole = [torch.zeros(count, width) for width in widths] if room is None else room.parts
        self.parts = [part[:count] for part in whole]
        self.normed, self.length, self.qkv, lengths, self.gate_up, self.inner = self.parts
        by_head = self.qkv.view(count, both + kv_heads, d)
        self.qk = by_head[:, :both]  # queries and keys are normed and turned alike
        self.lengths = lengths.unsqueeze(2)
        self.pairs = torch.view_as_complex(by_head.view(count, -1, d // 2, 2))[:, :both]
        self.q, self.k = by_head[:, :heads], by_head[:, heads:both]  # [M, heads, d]
        self.v = by_head[:, both:]
        self.gate, self.up = self.gate_up[:, :inner], self.gate_up[:, inner:]


class _Normalize:
    """RMS norm in few kernels: x / hypot(‖x‖, √(n·eps)), which lacks a factor √n.

    That factor and the norm's gain belong to the matrix behind it (``gain``).
    """

    def __init__(self, width: int, eps: float) -> None:
        self._scale = math.sqrt(width)
        self._floor = torch.tensor(math.sqrt(width * eps))

    def __call__(self, x: Tensor, out: Tensor, length: Tensor) -> Tensor:
        """``x`` [..., n] → ``out``, by way of ``length`` [..., 1]."""
        torch.linalg.vector_norm(x, dim=-1, keepdim=True, out=length)
        torch.hypot(length, self._floor, out=length)
        return torch.div(x, length, out=out)

    def gain(self, norm: RMSNorm) -> Tensor:
        return norm.weight.detach().float() * self._scale
