"""A whole bundle with random weights, small enough to speak nonsense quickly."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from tests.tiny import ACOUSTIC_CODES, LANGUAGES, SEMANTIC_CODES, STYLES, write_tiny_stages
from tontaube.codec.build import SpectralConfig, build_spectral


def write_tiny_bundle(root: Path, max_frames: int = 40) -> Path:
    """Write ``bundle.json`` and what it names; ``root``. Any length of speech passes its checks."""
    write_tiny_stages(root)
    config = SpectralConfig(
        latent=16,
        semantic_dim=16,
        semantic_hidden=16,
        semantic_encoder_blocks=1,
        semantic_decoder_blocks=1,
        semantic_codes=SEMANTIC_CODES,
        acoustic_codes=ACOUSTIC_CODES,
        encoder_dim=16,
        encoder_hidden=16,
        decoder_dim=16,
        decoder_hidden=16,
        decoder_blocks=1,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        codec = build_spectral(config)
    save_file(codec.state_dict(), root / "codec.safetensors")
    codes = torch.randint(0, ACOUSTIC_CODES, (4, 20), generator=torch.Generator().manual_seed(1))
    save_file({"codes": codes.int()}, root / "clara.safetensors")
    description = {
        "id": "tiny",
        "revision": "1",
        "license": "Apache-2.0",
        "codec": {
            "kind": "spectral",
            "weights": "codec.safetensors",
            "features": "logmel",
            "config": config.model_dump(),
        },
        "languages": LANGUAGES,
        "styles": STYLES,
        "default_voice": "clara",
        "voices": [
            {
                "id": "clara",
                "name": "Clara",
                "language": "english",
                "style": "audiobook",
                "codes": "clara.safetensors",
            },
            {"id": "none", "name": "No prompt", "language": "english", "style": "audiobook"},
        ],
        "segmentation": {"max_characters": 60, "lookahead": 10},
        "sampling": {
            "max_frames": max_frames,
            "min_characters_per_second": 0.1,
            "max_characters_per_second": 1000,
        },
        "silence": {"onset": 3, "trailing": [1, 0, 0, 0], "trailing_frames": 2},
        "streaming": {"initial_frames": 12, "withheld_frames": 5, "growth": 1.5, "max_frames": 20},
    }
    (root / "bundle.json").write_text(json.dumps(description), "utf-8")
    return root
