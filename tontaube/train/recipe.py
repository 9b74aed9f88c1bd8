"""Sizes of the shipped bundle: what is trained, not how."""

from __future__ import annotations

from dataclasses import dataclass

from tokenizers import Tokenizer

from tontaube.codec.build import SpectralConfig
from tontaube.tokens import AUDIO_SPLIT, END_OF_SPEECH, PAD, TEXT_SPLIT, StageConfig

LANGUAGES = {
    "english": "en", "german": "de", "spanish": "es", "french": "fr", "italian": "it",
    "dutch": "nl", "portuguese": "pt",
}  # fmt: skip
STYLES = ("audiobook", "conversational", "agentic")


@dataclass(frozen=True, slots=True)
class Shape:
    """Blocks, width, MLP, query / key-value heads of 64, width of the audio head's hidden layer."""

    blocks: int
    width: int
    inner: int
    heads: int
    kv_heads: int
    head: int


SHAPES = (
    Shape(5, 256, 640, 4, 2, 256),
    Shape(3, 192, 384, 3, 1, 256),
    Shape(2, 128, 256, 2, 1, 128),
    Shape(2, 128, 256, 2, 1, 128),
)


def stage_config(
    stage: int, shape: Shape, tokenizer: Tokenizer, codec: SpectralConfig
) -> StageConfig:
    """The ``config.json`` of a stage of the small bundle."""
    first = tokenizer.get_vocab_size()
    return StageConfig(
        hidden_size=shape.width,
        num_hidden_layers=shape.blocks,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=64,
        intermediate_size=shape.inner,
        rope_theta=10_000.0,
        vocab_size=first + codec.semantic_codes + stage * codec.acoustic_codes,
        max_position_embeddings=4096,
        audio_token_start_id=first,
        target_codebook=stage,
        audio_head_hidden=shape.head,
        pad_token_id=tokenizer.token_to_id(PAD),
        eos_token_id=tokenizer.token_to_id(END_OF_SPEECH),
        audio_marker_token_id=tokenizer.token_to_id(AUDIO_SPLIT),
        text_marker_token_id=tokenizer.token_to_id(TEXT_SPLIT),
        semantic_vocab_size=codec.semantic_codes,
        acoustic_vocab_size=codec.acoustic_codes,
    )
