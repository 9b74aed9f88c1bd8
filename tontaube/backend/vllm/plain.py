"""A network's layers on a CPU → torch's own products with the weights as they were loaded.

vLLM would pack every matrix for oneDNN, the embedding too, with which nothing is multiplied, and
compile a kernel for each matrix and number of rows. It keeps 32 of each matrix, a quarter of a MiB
apiece, so that a server grew by hundreds of MiB while prompts of all lengths came.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.vocab_parallel_embedding import (
    UnquantizedEmbeddingMethod,
    VocabParallelEmbedding,
)


def keep_plain(network: nn.Module) -> None:
    """Before its weights are loaded."""
    for layer in network.modules():
        if isinstance(layer, LinearBase):
            layer.quant_method = _PlainLinear()
        elif isinstance(layer, VocabParallelEmbedding):
            layer.quant_method = _PlainEmbedding()


class _PlainLinear(UnquantizedLinearMethod):  # type: ignore[misc]  # it has no types
    """What vLLM calls is named by vLLM."""

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        """Nothing is packed."""

    def apply(self, layer: Any, x: Tensor, bias: Tensor | None = None) -> Tensor:
        return F.linear(x, layer.weight, bias)


class _PlainEmbedding(UnquantizedEmbeddingMethod):  # type: ignore[misc]
    def process_weights_after_loading(self, layer: nn.Module) -> None:
        """Nothing is packed."""
