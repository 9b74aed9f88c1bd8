"""Sizes → a model bundle with random weights in the released format: it costs what a trained one
costs, says noise, and speaks for as long as it is told to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import save_torch_state_dict
from safetensors.torch import save_file
from torch import Tensor

from tontaube.backend.network import StageNetwork
from tontaube.backend.weights import write_config
from tontaube.bundle import (
    CodecPart,
    Description,
    JoinPart,
    SamplingDefaults,
    Segmentation,
    Streaming,
    VoicePart,
)
from tontaube.codec.dac_codec import DacConfig, build_dac
from tontaube.tokens import StageConfig
from tontaube.train.tokenizer import build_tokenizer, stage_ids
from tontaube.types import STREAMS

_LANGUAGES = {"english": "en"}
_STYLES = ("conversational",)
_SPARE = 8  # rows of the embedding that no id uses (contract, section 3)
_SHARD = "2GB"
_NUMBERS = 1_000_003  # random ones, said again and again; a prime, so that no two rows are alike
_CERTAIN = 1_000.0  # added to a logit


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of a model, and how long it speaks: ``frames`` of 80 ms a segment."""

    blocks: tuple[int, int, int, int]
    widths: tuple[int, int, int, int]
    inner: tuple[int, int, int, int]
    heads: int
    kv_heads: int
    head_dim: int
    head_hidden: int
    text_ids: int  # of the vocabulary, before the codes
    semantic_codes: int
    acoustic_codes: int
    codec: DacConfig = field(default_factory=DacConfig)
    join: dict[str, Any] = field(default_factory=dict)  # that differ from VibeVoice's own sizes
    frames: int
    initial_frames: int
    contexts: tuple[int, int, int, int]

    def stage(self, stage: int) -> StageConfig:
        """CB{stage}'s configuration, with the ids of Qwen's tokenizer."""
        first = self.text_ids
        return StageConfig(
            hidden_size=self.widths[stage],
            num_hidden_layers=self.blocks[stage],
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.head_dim,
            intermediate_size=self.inner[stage],
            vocab_size=first + self.semantic_codes + stage * self.acoustic_codes + _SPARE,
            audio_token_start_id=first,
            target_codebook=stage,
            audio_head_hidden=self.head_hidden,
            pad_token_id=first - 22,
            eos_token_id=first - 3,
            audio_marker_token_id=first - 1,
            text_marker_token_id=first - 2,
            semantic_vocab_size=self.semantic_codes,
            acoustic_vocab_size=self.acoustic_codes,
        )


RELEASED = Shape(
    blocks=(28, 16, 8, 4),
    widths=(2048, 1024, 1024, 1024),
    inner=(6144, 3072, 3072, 3072),
    heads=16,
    kv_heads=8,
    head_dim=128,
    head_hidden=4096,
    text_ids=151_665,
    semantic_codes=16_384,
    acoustic_codes=4096,
    frames=250,
    initial_frames=40,
    contexts=(2500, 2000, 2400, 3000),
)
"""The contract's, sections 3, 7 and 8."""

SMALL = Shape(
    blocks=(2, 1, 1, 1),
    widths=(64, 64, 64, 64),
    inner=(96, 96, 96, 96),
    heads=2,
    kv_heads=1,
    head_dim=32,
    head_hidden=64,
    text_ids=700,
    semantic_codes=64,
    acoustic_codes=32,
    codec=DacConfig(
        encoder_dim=2,
        decoder_dim=64,
        latent=16,
        acoustic_codes=32,
        semantic_codes=64,
        features=16,
        semantic_dim=16,
        semantic_hidden=24,
    ),
    join={"num_filters": 4, "hidden_size": 8, "depths": [1, 1, 1, 1, 1, 1, 2]},
    frames=40,
    initial_frames=10,
    contexts=(600, 600, 600, 600),
)
"""Small enough for a CPU; nothing it measures says anything of the released one."""


def write_random_stage(
    config: StageConfig, folder: Path, dtype: torch.dtype = torch.bfloat16
) -> None:
    """Write a stage's folder in the released format, in shards where it is large."""
    write_config(config, folder, dtype)
    save_torch_state_dict(
        dict(_random_tensors(config, dtype)),
        folder,
        filename_pattern="model{suffix}.safetensors",
        max_shard_size=_SHARD,
    )


def _random_tensors(config: StageConfig, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """As ``StageNetwork`` starts out, but drawn from few numbers: drawing billions takes long."""
    with torch.device("meta"):
        empty = StageNetwork(config).state_dict()
    generator = torch.Generator().manual_seed(config.target_codebook)
    numbers = (0.02 * torch.randn(_NUMBERS, generator=generator)).to(dtype)
    for name, tensor in empty.items():
        if tensor.dim() == 1:
            value = 1.0 if name.endswith("norm.weight") else 0.0
            yield name, torch.full(tensor.shape, value, dtype=dtype)
        else:
            times = -(-tensor.numel() // _NUMBERS)
            yield name, numbers.repeat(times)[: tensor.numel()].clone().view(tensor.shape)


def write_random_bundle(shape: Shape, folder: Path) -> None:
    """Write stages, tokenizer, codec, join and description below ``folder``. The tokenizer is a
    small one: its ids cost what those of a large one cost."""
    tokenizer = build_tokenizer(_LANGUAGES, _STYLES)
    (folder / "tokenizer").mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer" / "tokenizer.json"))
    ids = stage_ids(tokenizer)
    for stage in range(STREAMS):
        config = shape.stage(stage).model_copy(update=ids)
        write_random_stage(config, folder / f"cb{stage}")
    _write_codec(shape, folder)
    (folder / "bundle.json").write_text(_describe(shape).model_dump_json(indent=2), "utf-8")


def _write_codec(shape: Shape, folder: Path) -> None:
    from transformers import VibeVoiceAcousticTokenizerConfig, VibeVoiceAcousticTokenizerModel

    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        save_file(build_dac(shape.codec).state_dict(), folder / "codec.safetensors")
        sizes = VibeVoiceAcousticTokenizerConfig(**shape.join)
        VibeVoiceAcousticTokenizerModel(sizes).save_pretrained(folder / "join")


def _describe(shape: Shape) -> Description:
    """Random weights end a segment as soon as they may: at ``frames`` exactly."""
    return Description(
        id="random",
        revision="0",
        license="Apache-2.0",
        codec=CodecPart(
            kind="dac",
            weights="codec.safetensors",
            features="w2vbert",
            config=shape.codec.model_dump(mode="json"),
        ),
        join=JoinPart(kind="vibevoice", path="join"),
        languages=_LANGUAGES,
        styles=_STYLES,
        default_voice="noise",
        voices=(VoicePart(id="noise", name="Noise", language="english", style=_STYLES[0]),),
        segmentation=Segmentation(),
        sampling=SamplingDefaults(
            end_of_speech_bias=_CERTAIN,
            min_frames=shape.frames,
            max_frames=shape.frames + 1,
            tries=1,
            min_characters_per_second=0.1,
            max_characters_per_second=1_000.0,
        ),
        streaming=Streaming(initial_frames=shape.initial_frames),
        context_tokens=shape.contexts,
    )
