"""Ids of characters, labels, codes and structural tokens."""

from __future__ import annotations

from tontaube.tokens import StageConfig

FIELDS = {
    "hidden_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3072,
    "audio_token_start_id": 151_665,
    "pad_token_id": 151_643,
    "eos_token_id": 151_662,
    "audio_marker_token_id": 151_664,
    "text_marker_token_id": 151_663,
}


def released_config(stage: int) -> StageConfig:
    """The vocabulary of the released stage CB{stage}."""
    vocab = 151_665 + 16_384 + stage * 4_096 + 8
    return StageConfig(**FIELDS, target_codebook=stage, vocab_size=vocab)
