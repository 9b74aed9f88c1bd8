"""Run in the upstream environment: VibeVoice's acoustic tokenizer with random weights → files.

Usage: ``python write_vibevoice.py FOLDER``. Writes the weights under the names of the 1.5B
checkpoint and what upstream makes of random inputs; ``compare.py`` reads them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from vibevoice.modular.configuration_vibevoice import VibeVoiceAcousticTokenizerConfig
from vibevoice.modular.modular_vibevoice_tokenizer import VibeVoiceAcousticTokenizerModel

SMALL = {"encoder_n_filters": 4, "decoder_n_filters": 4, "encoder_depths": "1-1-2-1-1-1-3"}


def randomize(model: torch.nn.Module) -> None:
    """Layer scales start at 1e-6, which would hide every block."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("gamma"):
                parameter.uniform_(0.1, 0.5)
            elif parameter.ndim > 1:
                torch.nn.init.kaiming_normal_(parameter).mul_(0.8)
            else:
                parameter.add_(0.1 * torch.randn_like(parameter))


@torch.no_grad()
def write(folder: Path, arguments: dict[str, object], frames: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    config = VibeVoiceAcousticTokenizerConfig(**arguments)
    model = VibeVoiceAcousticTokenizerModel(config).eval()
    randomize(model)
    tensors = {
        f"model.acoustic_tokenizer.{name}": tensor.contiguous()
        for name, tensor in model.state_dict().items()
    }
    save_file(tensors, folder / "model.safetensors")
    whole = {"model_type": "vibevoice", "acoustic_tokenizer_config": config.to_dict()}
    (folder / "config.json").write_text(json.dumps(whole, default=str))
    audio = 0.1 * torch.randn(3_200 * frames)
    mean = model.encode(audio[None, None]).mean
    np.savez(folder / "upstream.npz", audio=audio, mean=mean[0], decoded=model.decode(mean)[0, 0])


def main(folder: Path) -> None:
    write(folder / "vibevoice-small", SMALL, frames=225)
    write(folder / "vibevoice-full", {}, frames=8)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
