"""A tiny random bundle in the released format, for tests: nothing it says means anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tontaube.backend.network import StageNetwork
from tontaube.backend.weights import save_stage
from tontaube.bundle import (
    Bundle,
    CodecPart,
    Description,
    SamplingDefaults,
    Segmentation,
    Silence,
    Streaming,
    VoicePart,
)
from tontaube.codec.build import SpectralConfig, build_spectral
from tontaube.tokens import StageConfig
from tontaube.train.tokenizer import build_tokenizer, stage_ids
from tontaube.types import STREAMS, Sampling, StageInput, StageJob

LANGUAGES = {"english": "en", "german": "de"}
STYLES = ("audiobook", "conversational")
SEMANTIC_CODES = 64
ACOUSTIC_CODES = 32


@dataclass(frozen=True)
class TinyStages:
    """Four stage folders and their tokenizer."""

    folder: Path
    configs: tuple[StageConfig, ...]

    def stage(self, stage: int) -> Path:
        return self.folder / f"cb{stage}"


def tiny_config(stage: int = 0, **changes: Any) -> StageConfig:
    """A stage small enough for exact comparisons; ids 0..99 are text."""
    fields: dict[str, Any] = {
        "hidden_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,  # the least that vLLM's attention on a CPU takes
        "intermediate_size": 80,
        "rope_theta": 10_000.0,
        "audio_token_start_id": 100,
        "target_codebook": stage,
        "audio_head_hidden": 64,
        "pad_token_id": 96,
        "eos_token_id": 97,
        "audio_marker_token_id": 98,
        "text_marker_token_id": 99,
        "semantic_vocab_size": SEMANTIC_CODES,
        "acoustic_vocab_size": ACOUSTIC_CODES,
    }
    fields |= changes
    codes = fields["semantic_vocab_size"] + stage * fields["acoustic_vocab_size"]
    fields.setdefault("vocab_size", fields["audio_token_start_id"] + codes + 8)
    return StageConfig(**fields)


def tiny_network(config: StageConfig, seed: int = 0) -> StageNetwork:
    """Random weights, large enough for every input to matter."""
    generator = torch.Generator().manual_seed(seed)
    network = StageNetwork(config).eval()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            spread = 0.2 if parameter.dim() == 2 else 0.1
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
            if name.endswith(("norm.weight", "layernorm.weight")):
                parameter.add_(1.0)
    return network


def write_tiny_stages(folder: Path, seed: int = 0) -> TinyStages:
    """Write ``cb0`` .. ``cb3`` and ``tokenizer`` below ``folder``."""
    tokenizer = build_tokenizer(LANGUAGES, STYLES)
    (folder / "tokenizer").mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer" / "tokenizer.json"))
    configs = tuple(tiny_config(stage, **stage_ids(tokenizer)) for stage in range(STREAMS))
    for stage, config in enumerate(configs):
        network = tiny_network(config, seed + stage)
        save_stage(network, folder / f"cb{stage}", dtype=torch.float32)
    return TinyStages(folder, configs)


def write_tiny_bundle(folder: Path, seed: int = 0) -> Bundle:
    """Write a whole bundle: stages, tokenizer, codec and two voices, one without a prompt."""
    write_tiny_stages(folder, seed)
    codec = SpectralConfig(
        latent=16,
        semantic_dim=16,
        semantic_hidden=24,
        semantic_encoder_blocks=1,
        semantic_decoder_blocks=1,
        semantic_codes=SEMANTIC_CODES,
        acoustic_codes=ACOUSTIC_CODES,
        encoder_dim=16,
        encoder_hidden=24,
        decoder_dim=16,
        decoder_hidden=24,
        decoder_blocks=1,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        save_file(build_spectral(codec).state_dict(), folder / "codec.safetensors")
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randint(0, ACOUSTIC_CODES, (STREAMS, 40), generator=generator)
    save_file({"codes": codes}, folder / "voice.safetensors")
    description = Description(
        id="tiny",
        revision="1",
        license="Apache-2.0",
        codec=CodecPart(
            kind="spectral",
            weights="codec.safetensors",
            features="logmel",
            config=codec.model_dump(),
        ),
        languages=LANGUAGES,
        styles=STYLES,
        default_voice="plain",
        voices=(
            VoicePart(id="plain", name="Plain", language="english", style="audiobook"),
            VoicePart(
                id="prompted",
                name="Prompted",
                language="german",
                style="conversational",
                codes="voice.safetensors",
            ),
        ),
        segmentation=Segmentation(max_characters=60, lookahead=12),
        sampling=SamplingDefaults(
            min_frames=6,
            max_frames=40,
            tries=2,
            min_characters_per_second=0.1,
            max_characters_per_second=1_000.0,
            max_silence_ratio=1.0,
        ),
        silence=Silence(onset=5, codes=(5, 6), trailing=(7, 0, 0, 0), trailing_frames=3),
        streaming=Streaming(initial_frames=8, withheld_frames=5, max_frames=20),
        prompt_frames=(30, 20, 15, 10),
        context_tokens=(400, 400, 400, 400),
    )
    (folder / "bundle.json").write_text(description.model_dump_json(indent=2), "utf-8")
    return Bundle.open(folder)


def tiny_job(name: str, length: int, codes: int, **changes: Any) -> StageJob:
    """A job over ``length`` text-like tokens that depend on the name; positions jump once."""
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    ids = torch.randint(0, 96, (length,), generator=generator).tolist()
    positions = [p if p < length // 2 else p + 7 for p in range(length)]
    fields: dict[str, Any] = {
        "id": name,
        "input": StageInput(tuple(ids), tuple(positions), next_position=length + 9),
        "max_codes": codes,
        "sampling": Sampling(seed=len(name)),
    }
    return StageJob(**(fields | changes))
