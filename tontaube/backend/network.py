"""A stage's network: vocabulary ids and explicit logical positions → hidden states → head logits.

A Qwen3 trunk (report, section 3.2) whose LM head is replaced by a two-layer audio head over the
stage's own codes. It knows neither sampling nor serving; ``cached`` runs its weights for those.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tontaube.tokens import StageConfig

# q [B, heads, T, d], k and v [B, kv_heads, T, d] → [B, heads, T, d], causal
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def written_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention as two matmuls and a softmax.

    On a CPU its backward pass is faster than the fused kernel's at the lengths trained here.
    """
    batch, heads, length, width = q.shape
    kv_heads = k.shape[1]
    folded = q.reshape(batch, kv_heads, -1, width)  # a KV head's query heads, one after another
    scores = (folded @ k.transpose(-1, -2)).float() * width**-0.5  # [B, kv_heads, rep·T, T]
    future = torch.full((length, length), float("-inf"), device=q.device).triu(1)
    scores = scores.view(batch, kv_heads, -1, length, length) + future
    weights = scores.softmax(-1).to(v.dtype).view(batch, kv_heads, -1, length)
    return torch.matmul(weights, v).view(batch, heads, length, width)


def fused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention in torch's fused kernel: less memory, faster on GPUs and for inference."""
    out: Tensor = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return out


def inverse_frequencies(config: StageConfig, device: torch.device | None = None) -> Tensor:
    """RoPE's angle per position of each pair of channels: ``[head_dim / 2]`` float32."""
    channels = torch.arange(0, config.head_dim, 2, device=device, dtype=torch.float32)
    return 1.0 / config.rope_theta ** (channels / config.head_dim)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE: channel i and i + d/2 of ``[..., d]`` turn together; ``cos``/``sin`` end in d/2."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class RMSNorm(nn.Module):
    """Root-mean-square norm over the last axis."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), self.eps)


class SelfAttention(nn.Module):
    """Grouped-query attention with normed queries and keys."""

    def __init__(self, config: StageConfig, attention: Attention) -> None:
        super().__init__()
        width, d = config.hidden_size, config.head_dim
        heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.q_proj = nn.Linear(width, heads * d, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * d, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * d, bias=False)
        self.o_proj = nn.Linear(heads * d, width, bias=False)
        self.q_norm = RMSNorm(d, config.rms_norm_eps)
        self.k_norm = RMSNorm(d, config.rms_norm_eps)
        self.head_dim = d
        self.attention = attention

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        by_head = (*x.shape[:2], -1, self.head_dim)  # [B, T, heads, d]
        q = self.q_norm(self.q_proj(x).view(by_head)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(by_head)).transpose(1, 2)
        v = self.v_proj(x).view(by_head).transpose(1, 2)
        # float32 angles would lift q and k out of autocast's type
        q, k = rotate(q, cos, sin).to(v.dtype), rotate(k, cos, sin).to(v.dtype)
        mixed = self.attention(q, k, v)
        out: Tensor = self.o_proj(mixed.transpose(1, 2).flatten(2))
        return out


class FeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, config: StageConfig) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class Block(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, config: StageConfig, attention: Attention, dropout: float) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = SelfAttention(config, attention)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = FeedForward(config)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.dropout(self.self_attn(self.input_layernorm(x), cos, sin))
        out: Tensor = x + self.dropout(self.mlp(self.post_attention_layernorm(x)))
        return out


class Trunk(nn.Module):
    """Embeddings, blocks, final norm: everything that Qwen3 calls ``model``."""

    def __init__(self, config: StageConfig, attention: Attention, dropout: float) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            Block(config, attention, dropout) for _ in range(config.num_hidden_layers)
        )
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, ids: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = self.embed_tokens(ids)  # [B, T, D]
        for layer in self.layers:
            x = layer(x, cos, sin)
        out: Tensor = self.norm(x)
        return out


class AudioHead(nn.Module):
    """hidden → Mish → one logit per code of the stage (CB0: and its two structural ones)."""

    def __init__(self, config: StageConfig) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.hidden_size, config.audio_head_hidden)
        self.fc2 = nn.Linear(config.audio_head_hidden, config.head_size)

    def forward(self, hidden: Tensor) -> Tensor:
        out: Tensor = self.fc2(F.mish(self.fc1(hidden)))
        return out


class StageNetwork(nn.Module):
    """One of the four models; its state dict has the released checkpoints' names.

    ``forward`` is for training and as an oracle: whole sequences, no cache.
    """

    def __init__(
        self,
        config: StageConfig,
        *,
        attention: Attention = written_attention,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.config = config
        self.model = Trunk(config, attention, dropout)
        self.audio_head = AudioHead(config)
        self.apply(_initialize)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """``ids`` and ``positions`` int [B, T] → hidden states [B, T, D].

        Token t sees tokens 0..t whatever their positions, so batches may be padded on the right.
        """
        angles = positions[:, None, :, None] * inverse_frequencies(self.config, ids.device)
        hidden: Tensor = self.model(ids, angles.cos(), angles.sin())  # angles [B, 1, T, d/2]
        return hidden

    def head(self, hidden: Tensor) -> Tensor:
        """Hidden states [..., D] → logits [..., head_size] in head order."""
        logits: Tensor = self.audio_head(hidden)
        return logits


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
