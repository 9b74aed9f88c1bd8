"""A model's sizes and what runs beside each other → the memory it takes: arithmetic, no tensors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from tontaube.tokens import StageConfig

_ROOM = 1.1  # activations and what the libraries take


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes."""

    weights: int
    cache: int = 0  # keys and values

    @property
    def need(self) -> int:
        """With what comes on top."""
        return round(_ROOM * (self.weights + self.cache))

    def __add__(self, other: Footprint) -> Footprint:
        return Footprint(self.weights + other.weights, self.cache + other.cache)


@dataclass(frozen=True, slots=True)
class Storage:
    """How stages are kept."""

    dtype: torch.dtype
    int8: bool = False  # the matrices
    sequences: int = 1  # that run at once


def matrix_parameters(config: StageConfig) -> int:
    """Those that int8 weights make smaller: of projections and the audio head, without biases."""
    width, inner = config.hidden_size, config.intermediate_size
    heads = 2 * config.num_attention_heads + 2 * config.num_key_value_heads
    block = width * heads * config.head_dim + 3 * width * inner
    head = config.audio_head_hidden * (width + config.head_size)
    return config.num_hidden_layers * block + head


def stage_parameters(config: StageConfig) -> int:
    """All of a stage."""
    width, layers = config.hidden_size, config.num_hidden_layers
    norms = layers * (2 * width + 2 * config.head_dim) + width
    biases = config.audio_head_hidden + config.head_size
    return matrix_parameters(config) + config.vocab_size * width + norms + biases


def token_bytes(config: StageConfig, dtype: torch.dtype) -> int:
    """Keys and values of one token."""
    width = config.num_key_value_heads * config.head_dim
    return 2 * config.num_hidden_layers * width * dtype.itemsize


def stage_footprint(config: StageConfig, tokens: int, storage: Storage) -> Footprint:
    """One stage; ``tokens`` are those of one sequence. Scales of int8 rows are too few to count."""
    size = storage.dtype.itemsize
    weights = stage_parameters(config) * size
    if storage.int8:
        weights -= matrix_parameters(config) * (size - 1)
    cache = token_bytes(config, storage.dtype) * tokens * storage.sequences
    return Footprint(weights, cache)


def stages_footprint(
    configs: Iterable[StageConfig], tokens: tuple[int, int, int, int], storage: Storage
) -> Footprint:
    """All stages; ``tokens`` by codebook (``Description.context_tokens``)."""
    parts = (stage_footprint(c, tokens[c.target_codebook], storage) for c in configs)
    return sum(parts, Footprint(0))


def codec_footprint(parameters: int) -> Footprint:
    """Networks around the codec: float32 everywhere (see ``numerics``)."""
    return Footprint(parameters * torch.float32.itemsize)
