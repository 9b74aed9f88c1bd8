"""A stage's network for vLLM: a Qwen3 trunk at logical positions, an audio head over own codes.

Ids are the engine's (see ``EngineIds``): those the stage can draw come first, so that vLLM's
sampler works on the head's few thousand codes instead of the whole vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from vllm.model_executor.models.qwen3 import Qwen3Model
from vllm.model_executor.models.utils import AutoWeightsLoader, maybe_prefix
from vllm.platforms import current_platform

from tontaube.backend.network import AudioHead
from tontaube.backend.vllm.ids import EngineIds
from tontaube.backend.vllm.plain import keep_plain
from tontaube.backend.vllm.positions import PositionBook
from tontaube.codec.tensors import widened
from tontaube.tokens import StageConfig, Vocabulary

_EMBEDDING = "model.embed_tokens.weight"


class VllmStageNetwork(nn.Module):
    """The weights of one stage; what vLLM calls is named by vLLM.

    Its configuration's ``vocab_size`` is what can be drawn; ``stage`` in it is the stage's own
    configuration, whose vocabulary is embedded.
    """

    packed_modules_mapping = {  # noqa: RUF012  (vLLM reads a plain dict)
        "qkv_proj": ["q_proj", "k_proj", "v_proj"],
        "gate_up_proj": ["gate_proj", "up_proj"],
    }
    supports_mrope = True

    def __init__(self, *, vllm_config: Any, prefix: str = "") -> None:
        super().__init__()
        config = StageConfig.model_validate(vllm_config.model_config.hf_config.stage)
        self.model = Qwen3Model(vllm_config=vllm_config, prefix=maybe_prefix(prefix, "model"))
        self.model.embed_tokens = VocabParallelEmbedding(
            config.vocab_size,
            config.hidden_size,
            padding_size=1,  # no product is taken with it: as many rows as the checkpoint has
            prefix=maybe_prefix(prefix, "model.embed_tokens"),
        )
        if current_platform.is_cpu():
            keep_plain(self)
        self.audio_head = AudioHead(config)
        self.make_empty_intermediate_tensors = self.model.make_empty_intermediate_tensors
        self.positions = PositionBook()
        self._ids = EngineIds(Vocabulary(config), config.vocab_size)

    def embed_input_ids(self, input_ids: Tensor) -> Tensor:
        """int [M] → [M, D]."""
        embedded: Tensor = self.model.embed_input_ids(input_ids)
        return embedded

    def get_mrope_input_positions(
        self, input_tokens: Sequence[int], mm_features: Sequence[object] = ()
    ) -> tuple[Tensor, int]:
        """A prompt's positions int [3, n], three times the same, and the later tokens' delta."""
        positions, delta = self.positions.look_up(input_tokens)
        return torch.tensor(positions).expand(3, -1).contiguous(), delta

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        intermediate_tensors: object = None,
        inputs_embeds: Tensor | None = None,
        **_: object,
    ) -> Tensor:
        """A step's tokens int [M] at positions int [3, M] → normed hidden states [M, D]."""
        hidden: Tensor = self.model(input_ids, positions, intermediate_tensors, inputs_embeds)
        return hidden

    def compute_logits(self, hidden_states: Tensor) -> Tensor:
        """[R, D] → float32 [R, head_size]."""
        logits: Tensor = self.audio_head(hidden_states)
        return logits.float()

    def load_weights(self, weights: Iterable[tuple[str, Tensor]]) -> set[str]:
        """Take a checkpoint's tensors, the embedding's rows in the engine's order."""
        order = torch.from_numpy(self._ids.order)
        ordered = ((name, w[order] if name == _EMBEDDING else w) for name, w in widened(weights))
        loaded: set[str] = AutoWeightsLoader(self).load_weights(ordered)
        return loaded
