"""VibeVoice's acoustic tokenizer: audio → latents → audio, causal both ways, state carried.

The network is transformers'; weights come from its own export or from the acoustic part of the
original 1.5B checkpoint. It knows no codes and no windows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tontaube.codec.tensors import load_tensors
from tontaube.errors import BundleError


@dataclass(frozen=True, slots=True)
class VibeVoiceState:
    """What both convolution stacks remember of one stream; owned by it and updated in place."""

    encoder: Any
    decoder: Any


class VibeVoice:
    """Implements ``codec.decoder.Resynthesis`` (report, section 5)."""

    def __init__(self, model: Any, device: torch.device | str = "cpu") -> None:
        # transformers' VibeVoiceAcousticTokenizerModel, which is typed in parts only
        self._model = model.eval().requires_grad_(False).to(device)
        self._dtype = next(model.parameters()).dtype
        self.hop: int = model.config.hop_length

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> VibeVoice:
        """Read transformers' export or the original checkpoint's folder (told apart by their
        ``config.json``). Raises BundleError naming the file or the tensors that do not fit."""
        model, rename = empty_vibevoice(folder)
        load_tensors(model, folder, rename=rename, dtype=dtype)
        return cls(model, device)

    def initial_state(self) -> VibeVoiceState:
        """Silence before the stream."""
        from transformers.models.vibevoice_acoustic_tokenizer import (
            modeling_vibevoice_acoustic_tokenizer as modeling,
        )

        cache: Any = modeling.VibeVoiceAcousticTokenizerConv1dPaddingCache
        return VibeVoiceState(cache(), cache())

    @torch.inference_mode()
    def process(self, samples: Tensor, state: VibeVoiceState) -> tuple[Tensor, VibeVoiceState]:
        """Float32 [n * hop] → the same samples resynthesized, float32 [n * hop]."""
        return self.decode(self.encode(samples, state), state), state

    @torch.inference_mode()
    def encode(self, samples: Tensor, state: VibeVoiceState | None = None) -> Tensor:
        """Float32 [n * hop] → the latents' mean [n, 64], nothing sampled."""
        cache = None if state is None else state.encoder
        audio = samples.to(self._model.device, self._dtype)[None, None]
        latents: Tensor = self._model.encode(audio, padding_cache=cache, sample=False).latents
        return latents[0]

    @torch.inference_mode()
    def decode(self, latents: Tensor, state: VibeVoiceState | None = None) -> Tensor:
        """Latents [n, 64] → float32 [n * hop]."""
        cache = None if state is None else state.decoder
        audio: Tensor = self._model.decode(latents[None], padding_cache=cache).audio
        return audio[0, 0].float()


def empty_vibevoice(folder: Path) -> tuple[Any, Callable[[str], str | None]]:
    """The network on the meta device, as ``folder``'s configuration describes it, and what turns a
    stored tensor's name into its. Raises BundleError."""
    from transformers import VibeVoiceAcousticTokenizerModel

    config, original = _read_config(folder / "config.json")
    with torch.device("meta"):
        return VibeVoiceAcousticTokenizerModel(config), original_name if original else str


def _read_config(path: Path) -> tuple[Any, bool]:
    """The network's sizes, and whether the folder holds the original checkpoint."""
    from transformers import VibeVoiceAcousticTokenizerConfig

    try:
        found = json.loads(path.read_text("utf-8"))
        original = "acoustic_tokenizer_config" in found
        if original:
            found = _converted_config(found["acoustic_tokenizer_config"])
        return VibeVoiceAcousticTokenizerConfig(**found), original
    except FileNotFoundError:
        raise BundleError(f"{path}: not found") from None
    except (ValueError, TypeError, KeyError) as error:
        raise BundleError(f"{path}: not a VibeVoice acoustic tokenizer ({error})") from error


def _converted_config(original: dict[str, Any]) -> dict[str, Any]:
    """The original checkpoint's names of the sizes → transformers'."""
    fixed = {
        "mixer_layer": "depthwise_conv",
        "conv_norm": "none",
        "pad_mode": "constant",
        "layernorm": "RMSNorm",
        "causal": True,
        "disable_last_norm": True,
        "conv_bias": True,
    }
    for name, value in fixed.items():
        if original.get(name, value) != value:
            raise ValueError(f"{name} is {original[name]!r}; only {value!r} is supported")
    ratios = list(original["encoder_ratios"])
    depths = [int(depth) for depth in str(original["encoder_depths"]).split("-")]
    if (original.get("decoder_ratios") or ratios) != ratios or original.get("decoder_depths"):
        raise ValueError("its decoder does not mirror its encoder")
    return {
        "channels": original.get("channels", 1),
        "hidden_size": original["vae_dim"],
        "num_filters": original["encoder_n_filters"],
        "downsampling_ratios": ratios[::-1],
        "depths": depths,
        "rms_norm_eps": original.get("layernorm_eps", 1e-5),
    }


_PART = "model.acoustic_tokenizer."
_MOVES = (  # (original, transformers'); the first stage is the stem, the others count from 0
    (r"(?:down|up)sample_layers\.0\.0\.conv\.", "stem.conv."),
    (r"(?:down|up)sample_layers\.(\d+)\.0\.conv\.conv\.", "conv_layers.{}.conv.conv."),
    (r"(?:down|up)sample_layers\.(\d+)\.0\.convtr\.convtr\.", "conv_layers.{}.convtr.convtr."),
    (r"stages\.0\.", "stem.stage."),
    (r"stages\.(\d+)\.", "conv_layers.{}.stage."),
    (r"head\.conv\.conv\.", "head.conv."),
)


def original_name(name: str) -> str | None:
    """A tensor's name in the original 1.5B checkpoint → transformers' name; None if it is not part
    of the acoustic tokenizer."""
    if not name.startswith(_PART):
        return None
    side, _, rest = name.removeprefix(_PART).partition(".")
    for pattern, place in _MOVES:
        found = re.match(pattern, rest)
        if found:
            index = [int(group) - 1 for group in found.groups()]
            rest = place.format(*index) + rest[found.end() :]
            break
    return f"{side}.{rest.replace('mixer.conv.conv.conv.', 'mixer.conv.')}"
