"""w2v-BERT features: hidden state 17 of 24 layers, of which only 17 are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import SeamlessM4TFeatureExtractor, Wav2Vec2BertConfig, Wav2Vec2BertModel

from tontaube.codec.w2vbert import W2vBertFeatures, empty_w2vbert, resample, w2vbert_name
from tontaube.errors import BundleError

WIDTH = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("w2vbert")
    torch.manual_seed(0)
    config = Wav2Vec2BertConfig(
        hidden_size=WIDTH, num_hidden_layers=24, num_attention_heads=2, intermediate_size=24
    )
    Wav2Vec2BertModel(config).save_pretrained(folder)
    SeamlessM4TFeatureExtractor().save_pretrained(folder)
    torch.save({"mean": torch.randn(WIDTH), "var": torch.rand(WIDTH) + 0.5}, folder / "stats.pt")
    return folder


def audio(seconds: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    rng = np.random.default_rng(0)
    return (0.1 * rng.standard_normal(int(seconds * 24_000))).astype(np.float32)


def expected(folder: Path, samples: Any) -> torch.Tensor:
    """The same by the whole model, as the contract says it."""
    model = Wav2Vec2BertModel.from_pretrained(folder).eval()
    extractor = SeamlessM4TFeatureExtractor.from_pretrained(folder)
    narrow = resample(torch.from_numpy(samples), 24_000, 16_000).numpy()
    inputs = extractor(narrow, sampling_rate=16_000, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**inputs, output_hidden_states=True).hidden_states[17]
    statistics = torch.load(folder / "stats.pt", weights_only=True)
    hidden = (hidden - statistics["mean"]) / statistics["var"].sqrt()
    frames = hidden.shape[1] // 4
    return hidden[:, : frames * 4].reshape(1, frames, 4, WIDTH).mean(2).transpose(1, 2)


@pytest.mark.parametrize("seconds", [1.0, 2.53])
def test_features_are_hidden_state_17_averaged_by_four(folder: Path, seconds: float) -> None:
    features = W2vBertFeatures.load(folder, folder / "stats.pt")(audio(seconds))
    assert features.shape == (1, WIDTH, int(seconds * 12.5))
    assert (features - expected(folder, audio(seconds))).abs().max() < 1e-4


def test_only_17_layers_are_held(folder: Path) -> None:
    network, _ = empty_w2vbert(folder)
    assert len(network.encoder.layers) == 17
    stored = Wav2Vec2BertModel.from_pretrained(folder).state_dict()
    assert {w2vbert_name(name) for name in stored} - {None} == set(network.state_dict())


def test_what_does_not_fit_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="not a w2v-BERT model"):
        W2vBertFeatures.load(tmp_path, folder / "stats.pt")
    with pytest.raises(BundleError, match=r"stats\.pt: not found"):
        W2vBertFeatures.load(folder, tmp_path / "stats.pt")
    torch.save({"mean": torch.zeros(3), "var": torch.ones(3)}, tmp_path / "stats.pt")
    with pytest.raises(BundleError, match="must have 16 values"):
        W2vBertFeatures.load(folder, tmp_path / "stats.pt")
    torch.save({"mean": folder, "var": torch.ones(3)}, tmp_path / "stats.pt")  # needs unpickling
    with pytest.raises(BundleError, match="not a file of mean and variance"):
        W2vBertFeatures.load(folder, tmp_path / "stats.pt")


@pytest.mark.parametrize(
    ("frequency", "kept"), [(100, 1.0), (1_000, 1.0), (5_000, 1.0), (11_000, 0.0)]
)
def test_resampling_keeps_the_band_and_nothing_else(frequency: int, kept: float) -> None:
    t = torch.arange(24_000, dtype=torch.float64) / 24_000
    out = resample(torch.sin(2 * torch.pi * frequency * t).float(), 24_000, 16_000)
    assert out.shape == (16_000,)
    sine = torch.sin(2 * torch.pi * frequency * torch.arange(16_000).double() / 16_000)
    assert (out - kept * sine)[200:-200].abs().max() < 0.02
