"""Run in the upstream environment: DualCodec and its features with random weights → files.

Usage: ``python write_dualcodec.py FOLDER``. Writes, per case, the weights in upstream's own format
and what upstream makes of random inputs; ``compare.py`` reads them in the product's environment.
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchaudio
import yaml
from dualcodec import Inference
from dualcodec.model_codec import DualCodec
from safetensors.torch import save_model
from transformers import SeamlessM4TFeatureExtractor, Wav2Vec2BertConfig, Wav2Vec2BertModel

SMALL = {
    "encoder_dim": 4,
    "latent_dim": 1024,  # the semantic branch ends in 1024 whatever the encoder's width is
    "decoder_dim": 64,
    "n_codebooks": 3,
    "codebook_size": 256,
    "semantic_codebook_size": 512,
    "convnext_dim": 64,
}
W2VBERT = {
    "hidden_size": 64,
    "num_hidden_layers": 19,
    "num_attention_heads": 4,
    "intermediate_size": 96,
}


def released() -> dict[str, Any]:
    """The arguments of ``12hz_v1`` as the package ships them."""
    name = "dualcodec_12hz_16384_4096_8vq.yaml"
    config = yaml.safe_load((files("dualcodec") / "conf" / "model" / name).read_text())
    arguments: dict[str, Any] = dict(config["model"])
    arguments.pop("_target_")
    return arguments | {"sample_rate": config["SAMPLE_RATE"]}


def audio_of(seconds: float, rate: int = 24_000) -> torch.Tensor:
    """A gliding tone with noise, [n]."""
    t = torch.arange(int(seconds * rate)) / rate
    return 0.3 * torch.sin(2 * torch.pi * (150 + 40 * t) * t) + 0.05 * torch.randn(t.shape)


def randomize(model: DualCodec, frames: int) -> None:
    """Weights as a trained network has them: gains and Snake slopes differ, audio is audible."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("alpha"):
                parameter.uniform_(0.5, 2.0)
            elif name.endswith("weight_g"):
                parameter.mul_(torch.empty_like(parameter).uniform_(0.8, 1.6))
            elif name.endswith("bias"):
                parameter.normal_(std=0.02)
        codes = torch.zeros(1, 1, frames, dtype=torch.long).random_(256)
        loudness = model.decode_from_codes(codes, codes).std()
        model.dac.decoder.model[-2].weight_g.mul_(0.1 / loudness)


@torch.no_grad()
def write_codec(folder: Path, arguments: dict[str, Any], frames: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    model = DualCodec(**arguments).eval()
    randomize(model, frames)
    save_model(model, str(folder / "dualcodec.safetensors"))
    audio, features = audio_of(frames * 0.08), torch.randn(1, 1024, frames)
    semantic, acoustic = model.encode(audio[None, None], semantic_repr=features)
    np.savez(
        folder / "upstream.npz",
        audio=audio,
        features=features,
        codes=torch.cat((semantic, acoustic), 1)[0],
        decoded=model.decode_from_codes(semantic, acoustic)[0, 0],
        decoded_four=model.decode_from_codes(semantic, acoustic[:, :3])[0, 0],
    )


@torch.no_grad()
def write_features(folder: Path, seconds: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    config = Wav2Vec2BertConfig(**W2VBERT)
    Wav2Vec2BertModel(config).eval().save_pretrained(folder)
    SeamlessM4TFeatureExtractor().save_pretrained(folder)
    width = config.hidden_size
    statistics = {"mean": torch.randn(width), "var": torch.rand(width) + 0.5}
    torch.save(statistics, folder / "w2vbert2_mean_var_stats_emilia.pt")
    upstream = Inference(no_codec(), str(folder), str(folder), device="cpu")
    audio = audio_of(seconds)
    inputs = upstream.semantic_cfg.feature_extractor(
        torchaudio.functional.resample(audio[None, None], 24_000, 16_000),
        sampling_rate=16_000,
        return_tensors="pt",
    )
    # The method, not ``encode``: that one rounds to half precision on the way.
    hidden = upstream._extract_semantic_code(inputs["input_features"], inputs["attention_mask"])
    features = torch.nn.functional.avg_pool1d(hidden.transpose(1, 2), 4)
    np.savez(folder / "upstream.npz", audio=audio, features=features)


def no_codec() -> torch.nn.Module:
    """``Inference`` wants a codec even where only its features are asked for."""
    return torch.nn.Identity()


def main(folder: Path) -> None:
    write_codec(folder / "dualcodec-small", released() | SMALL, frames=375)
    write_codec(folder / "dualcodec-full", released(), frames=13)
    write_features(folder / "w2vbert", seconds=7.3)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
