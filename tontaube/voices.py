"""Names → voices. Those of the bundle, and those made of recordings, which are kept on disk as
precomputed reference codes so that they survive restarts. It knows no stage and no codec network.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import time
import unicodedata
import wave
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from tontaube.bundle import Bundle
from tontaube.errors import BundleError, InvalidRequest, UnknownVoice
from tontaube.recordings import Encode, Read, RecordedCodes, read_codes, write_codes
from tontaube.types import STREAMS, Codes, Samples, Voice

OPENAI_NAMES = (
    *("alloy", "ash", "ballad", "coral", "echo", "fable", "onyx"),
    *("nova", "sage", "shimmer", "verse", "marin", "cedar"),
)
_SAFE_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
_LONGEST_NAME = 80
_LONGEST_CONSENT = 2000


class _Record(BaseModel):
    """``voice.json``: what is kept of an uploaded voice beside its codes and its recording."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    name: str
    language: str
    style: str
    consent: str
    created: float  # Unix time
    codec: str  # whose codes these are


@dataclass(frozen=True, slots=True)
class VoiceStore:
    """Where uploaded voices live, and how many of them: on disk, and in memory at once."""

    folder: Path
    most: int = 1000
    cached: int = 256


class VoiceLibrary:
    """The voices that can be asked for. Ids are safe in paths and headers."""

    def __init__(self, bundle: Bundle, store: VoiceStore, read: Read, encode: Encode) -> None:
        """``read``: a recording's bytes → samples at the bundle's rate; ``encode``: → its codes."""
        description = bundle.description
        self._bundle = bundle
        self._store = store
        self._read = read
        self._encode = encode
        self._codec = f"{description.id} {description.revision}"
        kept = store.folder.parent / "recordings"
        self._recorded = RecordedCodes(kept, self._codec, read, encode)
        self._shipped: dict[str, Voice] = {}
        self._unread: dict[str, Path] = {}  # recordings of shipped voices without codes yet
        self._records: dict[str, _Record] = {}
        self._cache: OrderedDict[str, Voice] = OrderedDict()
        self._aliases: dict[str, str] = {}
        self._adding = 0
        self.hits = 0
        self.misses = 0

    async def open(self) -> None:
        """Read the bundle's voices and the store. Raises BundleError for a damaged bundle."""
        for part in self._bundle.description.voices:
            codes = np.zeros((STREAMS, 0), np.int64)
            if part.codes is not None:
                codes = read_codes(self._bundle.path(part.codes))
            elif part.audio is not None:
                self._unread[part.id] = self._bundle.path(part.audio)
            preview = str(self._bundle.path(part.preview)) if part.preview else None
            voice = Voice(part.id, part.name, part.language, part.style, codes, preview)
            self._shipped[part.id] = voice
        if self._bundle.description.default_voice not in self._shipped:
            raise BundleError("the bundle's default_voice is not one of its voices")
        self._aliases = _aliases(self._bundle.description.voice_aliases, list(self._shipped))
        await self._open_store()

    async def _open_store(self) -> None:
        if not self._store.folder.is_dir():
            return
        for folder in sorted(self._store.folder.iterdir()):
            if not _SAFE_ID.fullmatch(folder.name):
                continue  # an upload that was interrupted
            if any(path.is_symlink() for path in (folder, *folder.glob("*"))):
                continue  # we make none, and what they lead to is not ours to show
            try:
                record = _Record.model_validate_json((folder / "voice.json").read_bytes())
            except (OSError, ValidationError):
                continue
            if record.id != folder.name:
                continue
            if record.codec != self._codec:  # another model's codes: make ours
                samples = self._read((folder / "reference.wav").read_bytes())
                record = record.model_copy(update={"codec": self._codec})
                write_codes(folder / "codes.safetensors", await self._encode(samples))
                (folder / "voice.json").write_text(record.model_dump_json(), "utf-8")
            self._records[record.id] = record

    def list(self) -> list[Voice]:
        """All voices, the bundle's first. Uploaded ones come without codes; ``get`` has them."""
        empty = np.zeros((STREAMS, 0), np.int64)
        uploaded = [self._voice(record, empty) for record in self._records.values()]
        return [*self._shipped.values(), *uploaded]

    def get(self, name: str | None) -> Voice:
        """A voice by id, name or alias, None for the default one; one made of a recording has no
        codes before it was ``ready``. Raises UnknownVoice."""
        found = self._find(name)
        if found in self._shipped:
            return self._shipped[found]
        if found in self._cache:
            self.hits += 1
            self._cache.move_to_end(found)
            return self._cache[found]
        self.misses += 1
        codes = read_codes(self._store.folder / found / "codes.safetensors")
        voice = self._cache[found] = self._voice(self._records[found], codes)
        if len(self._cache) > self._store.cached:
            self._cache.popitem(last=False)
        return voice

    async def ready(self, name: str | None) -> Voice:
        """As ``get``, with the codes of a recording that is asked for the first time made.

        Raises UnknownVoice, or InvalidRequest for a recording that is no voice.
        """
        voice = self.get(name)
        recording = self._unread.get(voice.id)
        if recording is not None:
            voice = replace(voice, codes=await self._recorded.of(recording))
            self._shipped[voice.id] = voice
            self._unread.pop(voice.id, None)
        return voice

    def _find(self, name: str | None) -> str:
        if name is None:
            return self._bundle.description.default_voice
        wanted = name.strip().casefold()
        for known in (self._shipped, self._records):
            if wanted in known:
                return wanted
        for voice in self.list():
            if voice.name.casefold() == wanted:
                return voice.id
        if wanted in self._aliases:
            return self._aliases[wanted]
        names = [*self._shipped, *self._records, *self._aliases]
        raise UnknownVoice(name[:_LONGEST_NAME], names[:50])

    async def read(self, audio: bytes) -> Samples:
        """What ``add`` would use of a recording: [samples] at the bundle's rate. Raises
        InvalidRequest for one that cannot be used."""
        return await asyncio.to_thread(self._read, audio)

    async def add(
        self,
        name: str,
        audio: bytes,
        consent: str,
        language: str | None = None,
        style: str | None = None,
    ) -> Voice:
        """Make a voice of a recording and keep it. ``consent`` says that its speaker agrees.

        Raises InvalidRequest for a recording that cannot be used, a bad name, missing consent, or
        when there are too many voices.
        """
        name = _checked_name(name)
        consent = consent.strip()[:_LONGEST_CONSENT]
        if not consent:
            raise InvalidRequest("state the speaker's consent to the use of the voice", "consent")
        default = self._shipped[self._bundle.description.default_voice]
        language = self._bundle.description.language_named(language or default.language)
        style = self._bundle.description.style_named(style or default.style)
        if len(self._records) + self._adding >= self._store.most:
            raise InvalidRequest(f"there are {self._store.most} voices already; delete one", "name")
        self._adding += 1
        try:
            samples = await self.read(audio)
            codes = await self._encode(samples)
            record = _Record(
                id=_new_id(name),
                name=name,
                language=language,
                style=style,
                consent=consent,
                created=time.time(),
                codec=self._codec,
            )
            await asyncio.to_thread(self._save, record, samples, codes)
        finally:
            self._adding -= 1
        self._records[record.id] = record
        return self._voice(record, codes)

    def delete(self, id: str) -> None:
        """Forget an uploaded voice. Raises UnknownVoice, or InvalidRequest for a bundle's voice."""
        if id in self._shipped:
            raise InvalidRequest(f"the voice {id!r} ships with the model and stays", "voice")
        if id not in self._records:
            raise UnknownVoice(id[:_LONGEST_NAME], list(self._records)[:50])
        del self._records[id]
        self._cache.pop(id, None)
        trash = self._store.folder / f".{id}.{secrets.token_hex(4)}"
        (self._store.folder / id).rename(trash)  # one step; the rest may be interrupted
        shutil.rmtree(trash, ignore_errors=True)

    def _voice(self, record: _Record, codes: Codes) -> Voice:
        preview = str(self._store.folder / record.id / "reference.wav")
        return Voice(record.id, record.name, record.language, record.style, codes, preview)

    def _save(self, record: _Record, samples: Samples, codes: Codes) -> None:
        self._store.folder.mkdir(parents=True, exist_ok=True)
        draft = self._store.folder / f".{record.id}.{secrets.token_hex(4)}"
        draft.mkdir()
        try:
            write_codes(draft / "codes.safetensors", codes)
            _write_wave(draft / "reference.wav", samples, self._bundle.description.sample_rate)
            (draft / "voice.json").write_text(record.model_dump_json(), "utf-8")
            draft.rename(self._store.folder / record.id)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def _aliases(given: dict[str, str], voices: list[str]) -> dict[str, str]:
    """The bundle's aliases; OpenAI's names that it leaves out are dealt out over its voices."""
    aliases = {name: voices[i % len(voices)] for i, name in enumerate(OPENAI_NAMES)}
    aliases.update({name.casefold(): voice for name, voice in given.items()})
    for name, voice in aliases.items():
        if voice not in voices:
            raise BundleError(f"voice_aliases: {name} means {voice}, which is no voice")
    return aliases


def _checked_name(name: str) -> str:
    name = unicodedata.normalize("NFC", name).strip()
    if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise InvalidRequest(f"give a printable name of 1 to {_LONGEST_NAME} characters", "name")
    return name


def _new_id(name: str) -> str:
    """Readable, safe in paths and headers, never given twice."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40] or "voice"
    return f"{slug}-{secrets.token_hex(4)}"


def _write_wave(path: Path, samples: Samples, sample_rate: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
