"""A folder of recordings with a manifest → voices, whose codes are made when first asked for and
kept on disk. It knows no codec network.

The folder is as the released voices come: ``manifest.json``, {"voices": {file: {"language",
"style"}}}, beside a folder ``samples`` with the files.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from tontaube.bundle import Description, VoicePart
from tontaube.errors import BundleError
from tontaube.types import STREAMS, Codes, Samples

Encode = Callable[[Samples], Awaitable[Codes]]
Read = Callable[[bytes], Samples]

MANIFEST = "manifest.json"
SAMPLES = "samples"


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    language: str  # a label of the description, or its ISO code
    style: str | None = None


class _Manifest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    voices: dict[str, _Entry]


def voices_of(folder: Path, description: Description, source: str) -> tuple[VoicePart, ...]:
    """The voices of ``folder``, with paths in ``source``. Raises BundleError for a manifest that
    cannot be read, or that names a language, style or file which is not there."""
    path = folder / MANIFEST
    try:
        manifest = _Manifest.model_validate(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise BundleError(f"{path}: not found; it lists the recordings") from None
    except (OSError, ValueError, ValidationError) as error:
        raise BundleError(f"{path}: not a manifest of recordings ({error})") from error
    taken = {voice.id for voice in description.voices}
    voices = []
    for file, entry in manifest.voices.items():
        audio = f"{SAMPLES}/{file}"
        if Path(file).name != file or not (folder / audio).is_file():
            raise BundleError(f"{path}: names {file}, which is not in {folder / SAMPLES}")
        language, style = _labels(entry, description, f"{path}: {file}")
        name = Path(file).stem
        id = free_id(name, taken)
        taken.add(id)
        place = f"{source}:{audio}"
        voices.append(
            VoicePart(id=id, name=name, language=language, style=style, audio=place, preview=place)
        )
    return tuple(voices)


def _labels(entry: _Entry, description: Description, where: str) -> tuple[str, str]:
    labels = {code: label for label, code in description.languages.items()}
    language = labels.get(entry.language, entry.language)
    style = entry.style or description.styles[0]
    if language not in description.languages:
        raise BundleError(f"{where}: the model does not speak {entry.language!r}")
    if style not in description.styles:
        raise BundleError(f"{where}: the model has no style {entry.style!r}")
    return language, style


def free_id(name: str, taken: set[str]) -> str:
    """A voice's id that is safe in paths and headers and not ``taken``, made from its name."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "voice"
    id, number = plain, 1
    while id in taken:
        number += 1
        id = f"{plain}-{number}"
    return id


class RecordedCodes:
    """The codes of recordings, made on first use and kept in ``folder``; for one event loop."""

    def __init__(self, folder: Path, codec: str, read: Read, encode: Encode) -> None:
        """``codec`` names whose codes they are: another one's are made anew."""
        self._folder = folder
        self._codec = codec
        self._read = read
        self._encode = encode
        self._locks: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def of(self, recording: Path) -> Codes:
        """[streams, T] of a file in any container. Raises InvalidRequest if it is no voice."""
        async with self._locks[recording]:
            audio = await asyncio.to_thread(recording.read_bytes)
            key = hashlib.sha256(self._codec.encode() + b"\0" + audio).hexdigest()
            kept = self._folder / f"{key}.safetensors"
            if kept.is_file():
                return read_codes(kept)
            samples = await asyncio.to_thread(self._read, audio)
            codes = await self._encode(samples)
            self._folder.mkdir(parents=True, exist_ok=True)
            draft = kept.with_suffix(".draft")
            write_codes(draft, codes)
            draft.replace(kept)
            return codes


def read_codes(path: Path) -> Codes:
    """Tensor ``codes`` int [4, T] of a safetensors file. Raises BundleError."""
    try:
        codes = load_file(path)["codes"].astype(np.int64)
    except (OSError, KeyError, SafetensorError) as error:
        raise BundleError(f"{path}: not a voice's codes: {error}") from error
    if codes.ndim != 2 or codes.shape[0] != STREAMS:
        raise BundleError(f"{path}: codes have shape {codes.shape}, not [{STREAMS}, T]")
    return codes


def write_codes(path: Path, codes: Codes) -> None:
    """What ``read_codes`` reads."""
    save_file({"codes": np.ascontiguousarray(codes, dtype=np.int32)}, path)
