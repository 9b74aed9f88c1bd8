"""Run in the product's environment: our networks on upstream's weights against its answers.

Usage: ``python -m tests.parity.compare FOLDER``. Prints a line per comparison; exit status 1 if one
is out of bounds.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tontaube.codec.dac_codec import DacCodec, DacConfig
from tontaube.codec.decoder import StreamDecoder, decode
from tontaube.codec.vibevoice import VibeVoice
from tontaube.codec.w2vbert import W2vBertFeatures

SMALL = DacConfig(
    encoder_dim=4,
    decoder_dim=64,
    acoustic_streams=3,
    acoustic_codes=256,
    semantic_codes=512,
    semantic_dim=64,
)
BOUND = 1e-4


@dataclass
class Report:
    failed: bool = False

    def close(self, what: str, ours: Any, theirs: Any, bound: float = BOUND) -> None:
        ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
        if ours.shape != theirs.shape:
            self._add(what, False, f"shape {ours.shape}, upstream {theirs.shape}")
            return
        error = np.abs(ours - theirs).max()
        self._add(what, error <= bound, f"largest difference {error:.1e}, rms {theirs.std():.2g}")

    def equal(self, what: str, ours: Any, theirs: Any) -> None:
        same = int((np.asarray(ours) == np.asarray(theirs)).sum())
        self._add(what, same == theirs.size, f"{same} of {theirs.size} equal")

    def _add(self, what: str, good: bool, figures: str) -> None:
        print(f"{'ok  ' if good else 'FAIL'} {what}: {figures}", flush=True)
        self.failed |= not good


def compare_dualcodec(report: Report, folder: Path, config: DacConfig) -> None:
    saved = np.load(folder / "upstream.npz")
    features = torch.from_numpy(saved["features"])
    for streams in (4, saved["codes"].shape[0]):
        codec = DacCodec.load(
            folder / "dualcodec.safetensors", config, streams, features=lambda _: features
        )
        codes = saved["codes"][:streams]
        name = f"{folder.name}, {streams} streams, {codes.shape[1] * 0.08:.2f} s"
        report.equal(f"{name}: codes", codec.encode(saved["audio"]), codes)
        whole = saved["decoded_four" if streams == 4 else "decoded"]
        report.close(f"{name}: audio", decode(codec, codes), whole)
        stream = StreamDecoder(codec)
        pieces = [stream.push(part) for part in np.array_split(codes, 7, axis=1)]
        report.close(f"{name}: audio, streamed", np.concatenate([*pieces, stream.finish()]), whole)


def compare_features(report: Report, folder: Path) -> None:
    saved = np.load(folder / "upstream.npz")
    features = W2vBertFeatures.load(folder, folder / "w2vbert2_mean_var_stats_emilia.pt")
    report.close("w2v-BERT features", features(saved["audio"]), saved["features"])


def compare_vibevoice(report: Report, folder: Path) -> None:
    saved = np.load(folder / "upstream.npz")
    codec = VibeVoice.load(folder)
    audio = torch.from_numpy(saved["audio"])
    name = f"{folder.name}, {audio.shape[0] / 24_000:.2f} s"
    report.close(f"{name}: mean", codec.encode(audio), saved["mean"])
    report.close(f"{name}: audio", codec.decode(torch.from_numpy(saved["mean"])), saved["decoded"])
    state, pieces = codec.initial_state(), []
    for piece in audio.split(3 * codec.hop):
        out, state = codec.process(piece, state)
        pieces.append(out)
    report.close(f"{name}: audio, streamed", torch.cat(pieces), saved["decoded"])


def main(folder: Path) -> int:
    report = Report()
    compare_dualcodec(report, folder / "dualcodec-small", SMALL)
    compare_dualcodec(report, folder / "dualcodec-full", DacConfig())
    compare_features(report, folder / "w2vbert")
    for part in ("vibevoice-small", "vibevoice-full"):
        compare_vibevoice(report, folder / part)
    return int(report.failed)


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    sys.exit(main(Path(sys.argv[1])))
