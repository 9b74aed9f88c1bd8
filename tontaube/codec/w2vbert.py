"""Recording → w2v-BERT 2.0 content features at the codec's frame rate (contract, section 8)."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tontaube.codec.tensors import load_tensors
from tontaube.errors import BundleError
from tontaube.types import Samples

LAYERS = 17  # hidden state 17 is what the 17th layer gives; later layers are not loaded
DOWNSAMPLE = 4  # 50 Hz → 12.5 Hz
RATE = 16_000


class W2vBertFeatures:
    """Implements ``codec.dac_codec.Features``: the normalised hidden states, averaged by four."""

    def __init__(
        self,
        model: Any,  # transformers' Wav2Vec2BertModel and SeamlessM4TFeatureExtractor; both are
        extractor: Any,  # typed in parts only
        mean: Tensor,
        variance: Tensor,
        *,
        sample_rate: int = 24_000,
    ) -> None:
        self._model = model.eval().requires_grad_(False)
        self._extractor = extractor
        self._mean = mean.to(model.device)
        self._deviation = variance.to(model.device).sqrt()
        self._sample_rate = sample_rate

    @classmethod
    def load(
        cls,
        folder: Path,
        statistics: Path,
        *,
        sample_rate: int = 24_000,
        device: torch.device | str = "cpu",
    ) -> W2vBertFeatures:
        """Read ``facebook/w2v-bert-2.0``'s folder and DualCodec's file of mean and variance.

        Raises BundleError naming the file or the tensors that do not fit.
        """
        model, extractor = empty_w2vbert(folder)
        load_tensors(model, folder, rename=w2vbert_name)
        mean, variance = read_statistics(statistics, model.config.hidden_size)
        return cls(model.to(device), extractor, mean, variance, sample_rate=sample_rate)

    @torch.inference_mode()
    def __call__(self, samples: Samples) -> Tensor:
        """Mono float32 at ``sample_rate`` → [1, 1024, T], T = 12.5 a second, rounded down."""
        audio = resample(torch.from_numpy(samples), self._sample_rate, RATE)
        inputs = self._extractor(audio.numpy(), sampling_rate=RATE, return_tensors="pt")
        hidden: Tensor = self._model(
            input_features=inputs["input_features"].to(self._model.device),
            attention_mask=inputs["attention_mask"].to(self._model.device),
        ).last_hidden_state
        features = (hidden - self._mean) / self._deviation  # [1, T50, 1024]
        return F.avg_pool1d(features.transpose(1, 2), DOWNSAMPLE)


def empty_w2vbert(folder: Path) -> tuple[Any, Any]:
    """The layers that are used, on the meta device, and the feature extractor, as ``folder``'s
    configurations describe them. Raises BundleError."""
    from transformers import SeamlessM4TFeatureExtractor, Wav2Vec2BertConfig, Wav2Vec2BertModel

    extractor: Any = SeamlessM4TFeatureExtractor  # untyped
    try:
        sizes = json.loads((folder / "config.json").read_text("utf-8"))
        layers = min(LAYERS, sizes["num_hidden_layers"])
        config = Wav2Vec2BertConfig(**sizes | {"num_hidden_layers": layers})
        extractor = extractor(
            **json.loads((folder / "preprocessor_config.json").read_text("utf-8"))
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BundleError(f"{folder}: not a w2v-BERT model ({error})") from error
    with torch.device("meta"):
        return Wav2Vec2BertModel(config), extractor


def resample(samples: Tensor, old: int, new: int) -> Tensor:
    """Float32 [n] at ``old`` Hz → [ceil(n * new / old)] at ``new`` Hz.

    Band-limited interpolation by a sinc of six zero crossings a side under a Hann window, cut off
    at 99 % of the lower rate's band: what the features were trained with.
    """
    zeros, rolloff = 6, 0.99
    old, new = old // math.gcd(old, new), new // math.gcd(old, new)
    cutoff = rolloff * min(old, new)
    reach = math.ceil(zeros * old / cutoff)  # input samples to either side
    grid = torch.arange(-reach, reach + old, dtype=torch.float64) / old
    phases = torch.arange(new, dtype=torch.float64)[:, None] / new
    at = ((grid - phases) * cutoff).clamp(-zeros, zeros)  # [new, 2·reach + old], in zero crossings
    kernel = torch.sinc(at) * torch.cos(at * math.pi / zeros / 2).square() * (cutoff / old)
    padded = F.pad(samples, (reach, reach + old))[None, None]
    out = F.conv1d(padded, kernel.float()[:, None], stride=old)  # [1, new, n / old]
    return out[0].t().reshape(-1)[: math.ceil(samples.shape[0] * new / old)].contiguous()


def w2vbert_name(name: str) -> str | None:
    """A stored tensor's name → the network's; None for a layer that is not used."""
    parts = name.split(".")
    late = parts[:2] == ["encoder", "layers"] and int(parts[2]) >= LAYERS
    return None if late or parts[0] == "adapter" else name


def read_statistics(path: Path, size: int) -> tuple[Tensor, Tensor]:
    """DualCodec's mean and variance of the features, [size] each. Raises BundleError."""
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        mean, variance = (torch.as_tensor(found[name]).float() for name in ("mean", "var"))
    except FileNotFoundError:
        raise BundleError(f"{path}: not found") from None
    except (OSError, RuntimeError, KeyError, TypeError, EOFError, pickle.UnpicklingError) as error:
        raise BundleError(f"{path}: not a file of mean and variance ({error})") from error
    if mean.shape != (size,) or variance.shape != (size,):
        raise BundleError(f"{path}: mean and variance must have {size} values")
    return mean, variance
