"""Text in seven languages → speech of many speakers, with alignment and pitch (Kokoro, offline).

Kokoro's style vector is two: timbre, and rhythm with pitch. A speaker is a timbre; the manner is
taken from a voice known to speak the language well (measured by its word error rate).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tontaube.train.kokoro_decoder import Decoder, weights
from tontaube.train.teacher import VOICED_ABOVE, Line, Style, Utterance, one_thread, ranged

LOUDNESS = 0.14  # root mean square of speech, as the English teacher's
LONGEST = 400  # phonemes; the model's own limit is 510
TIMBRE = 128  # values of a style vector before those of rhythm and pitch
CUTS = ("/encoder/MatMul_1_output_0", "/encoder/Reshape_output_0", "/encoder/Reshape_1_output_0")
DURATIONS = "/encoder/Clip_output_0"

ESPEAK = {
    "german": "de",
    "spanish": "es",
    "french": "fr-fr",
    "italian": "it",
    "dutch": "nl",
    "portuguese": "pt-br",
}
# sounds the model never saw, replaced by the nearest that it learnt from other languages
REPLACED = {
    "german": {"\u0329": "", "ʏ": "y", "ɔø": "Y", "ɾ": "ʁ"},
    "dutch": {"\u0329": "", "ʏ": "y", "ɵ": "ø", "ʌʊ": "W", "r": "ɾ", "ɣ": "x", "ʋ": "v"},
}
# manners that speak a language well: female, male
MANNERS = {
    "german": ("pf_dora", "pm_alex"),
    "spanish": ("ef_dora", "em_alex"),
    "french": ("ff_siwis", "ff_siwis+pm_alex"),
    "italian": ("if_sara", "im_nicola"),
    "dutch": ("if_sara", "pm_alex"),
    "portuguese": ("pf_dora", "pm_alex"),
    "english": ("if_sara", "am_michael"),
}


@dataclass(frozen=True, slots=True)
class _Read:
    """A sentence before it is sound: what the decoder is given (batch 1), phonemes at 40/s."""

    text: npt.NDArray[np.float32]
    pitch: npt.NDArray[np.float32]
    energy: npt.NDArray[np.float32]
    timbre: npt.NDArray[np.float32]
    phonemes: npt.NDArray[np.uint8]


class Kokoro:
    """A folder with ``kokoro-v1.0.int8.onnx``, ``vocab.json`` and ``voices/*.bin``. One thread."""

    def __init__(self, folder: Path) -> None:
        import onnx.utils

        model = onnx.load(folder / "kokoro-v1.0.int8.onnx")
        self._decoder = Decoder(weights(model.graph))
        for name in CUTS:
            model.graph.output.append(
                onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
            )
        model.graph.output.append(
            onnx.helper.make_tensor_value_info(DURATIONS, onnx.TensorProto.FLOAT, None)
        )
        front = onnx.utils.Extractor(model).extract_model(
            ["tokens", "style", "speed"], [*CUTS, DURATIONS]
        )
        self._front = one_thread(front)
        self._ids: dict[str, int] = json.loads((folder / "vocab.json").read_text("utf-8"))["vocab"]
        self._voices = folder / "voices"

    def __call__(self, line: Line, style: Style, seed: int) -> Utterance | None:
        """Speak one sentence; None if it is too long or has no sound."""
        read = self._read(line, style)
        if read is None:
            return None
        torch.manual_seed(seed)
        wave = self._decoder(
            torch.tensor(read.text),
            torch.tensor(read.pitch),
            torch.tensor(read.energy),
            torch.tensor(read.timbre),
        ).numpy()
        curve = np.where(read.pitch[0] > VOICED_ABOVE, read.pitch[0], 0).astype(np.float16)
        return Utterance(_levelled(wave), read.phonemes, curve)

    def phonemes(self, line: Line, style: Style) -> npt.NDArray[np.uint8] | None:
        """The labels that the spoken sentence would have, 40 a second, in a tenth of the time."""
        read = self._read(line, style)
        return None if read is None else read.phonemes

    def _read(self, line: Line, style: Style) -> _Read | None:
        ids = [self._ids[c] for c in phonemes(line.text, line.language) if c in self._ids]
        if not 2 <= len(ids) <= LONGEST:
            return None
        tokens = np.array([0, *ids, 0])
        vector = self._style(line, len(ids))[None]
        feed = {
            "tokens": tokens[None].astype(np.int64),
            "style": vector,
            "speed": np.asarray([style.rate], np.float32),
        }
        text, pitch, energy, durations = self._front.run(None, feed)
        return _Read(
            text,
            ranged(pitch.reshape(1, -1), style.pitch_range),
            energy.reshape(1, -1),
            vector[:, :TIMBRE],
            np.repeat(tokens, durations.ravel().astype(int)).astype(np.uint8),
        )

    def _style(self, line: Line, length: int) -> npt.NDArray[np.float32]:
        """Timbre of the speaker; rhythm and pitch of a manner of the same sex."""
        male = line.timbre[1] == "m"
        manner = self._voice(MANNERS[line.language][male])
        row = min(length, len(manner)) - 1
        vector: npt.NDArray[np.float32] = np.concatenate(
            [self._voice(line.timbre)[row, :TIMBRE], manner[row, TIMBRE:]]
        )
        return vector

    @cache  # noqa: B019 - one teacher a process
    def _voice(self, name: str) -> npt.NDArray[np.float32]:
        parts = [
            np.fromfile(self._voices / f"{part}.bin", np.float32).reshape(-1, 2 * TIMBRE)
            for part in name.split("+")
        ]
        mean: npt.NDArray[np.float32] = np.mean(parts, 0)
        return mean


def phonemes(text: str, language: str) -> str:
    """Phonemes in Kokoro's alphabet: by eSpeak NG (misaki), English by the hibari package."""
    if language == "english":
        return " ".join(_hibari().phonemize(text))
    spoken: str = _espeak(ESPEAK[language])(text)[0]
    for sound, nearest in REPLACED.get(language, {}).items():
        spoken = spoken.replace(sound, nearest)
    return spoken


@cache
def _espeak(language: str) -> Any:
    from misaki.espeak import EspeakG2P

    return EspeakG2P(language=language)


@cache
def _hibari() -> Any:
    import hibari

    return hibari.Hibari()


def _levelled(wave: npt.NDArray[np.float32]) -> npt.NDArray[np.int16]:
    """int16 samples whose louder half (by 20 ms) has the common loudness."""
    blocks = wave[: len(wave) // 480 * 480].reshape(-1, 480)
    power = np.sort((blocks**2).mean(1))
    level = np.sqrt(power[len(power) // 2 :].mean()) + 1e-6
    samples: npt.NDArray[np.int16] = (np.clip(wave * LOUDNESS / level, -1, 1) * 32767).astype(
        np.int16
    )
    return samples
