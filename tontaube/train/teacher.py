"""Text → teacher speech with the teacher's own alignment and pitch (hibari, offline, English).

Styles come from the teacher's controls: its rate, and the range of its pitch curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

PHONEME_RATE = 40  # phoneme labels a second
PITCH_RATE = 80  # pitch values a second
PHONEMES = 178  # size of the phoneme alphabet
VOICED_ABOVE = 40.0  # Hz
LEVEL = 2.2  # fixed gain, so that loudness stays the text's and the style's
ALIGNMENT = "/ReduceSum_1_output_0"  # the model's inner tensor: phoneme index per 25 ms


@dataclass(frozen=True, slots=True)
class Style:
    """A teacher's rate and the exponent by which its pitch moves around its mean."""

    rate: float
    pitch_range: float


STYLES = {
    "audiobook": Style(0.88, 1.25),
    "conversational": Style(1.0, 1.0),
    "agentic": Style(1.15, 0.75),
}


@dataclass(frozen=True, slots=True)
class Utterance:
    """int16 samples at 24 kHz, phoneme ids at 40/s, pitch in Hz at 80/s (0: unvoiced)."""

    samples: npt.NDArray[np.int16]
    phonemes: npt.NDArray[np.uint8]
    pitch: npt.NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Line:
    """What to speak: a text, its language, a timbre (a voice's name or an average ``a+b``)."""

    text: str
    language: str
    timbre: str


def one_thread(model: Any) -> Any:
    """An ONNX Runtime session of a loaded model, on one thread of the CPU."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def ranged(pitch: npt.NDArray[Any], exponent: float) -> npt.NDArray[Any]:
    """Pitch whose distances from its mean, in octaves, are multiplied by ``exponent``; in place."""
    voiced = pitch > VOICED_ABOVE
    if voiced.any():
        mean = np.exp(np.log(pitch[voiced]).mean())
        pitch[voiced] = mean * (pitch[voiced] / mean) ** exponent
    return pitch


class Hibari:
    """The hibari package's voice, with its alignment made visible. One thread."""

    def __init__(self) -> None:
        import hibari
        import onnx

        self._voice = hibari.Hibari()
        model = onnx.load(self._voice.model_path)
        model.graph.output.append(
            onnx.helper.make_tensor_value_info(ALIGNMENT, onnx.TensorProto.INT64, None)
        )
        self._session = one_thread(model)

    def __call__(self, text: str, style: Style, seed: int) -> Utterance | None:
        """Speak one sentence; None if the teacher would split it."""
        from hibari import dsp

        spoken = self._voice.phonemize(text)
        if not spoken or sum(map(len, spoken)) > 400:
            return None
        ids = np.asarray(self._voice.ids(" ".join(spoken)))
        lh, th, ln, lr, phi, pitch, index = self._run(ids, style.rate)
        pitch = ranged(pitch, style.pitch_range)
        wave = dsp.synth(lh, th, ln, lr, phi, pitch, np.random.default_rng(seed))
        samples = (np.clip(wave * LEVEL, -1, 1) * 32767).astype(np.int16)
        return Utterance(samples, ids[index].astype(np.uint8), pitch.astype(np.float16))

    def _run(self, ids: npt.NDArray[Any], rate: float) -> list[npt.NDArray[Any]]:
        feed = {"ids": ids[None].astype(np.int64), "speed": np.asarray([rate], np.float32)}
        *spectra, index = self._session.run(None, feed)
        return [*(output[0] for output in spectra), index.ravel()]
