"""Hostile recordings, names and ids against a real library of voices on disk."""

from __future__ import annotations

import io
import json
import re
import struct
import tempfile
import wave
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import av
import numpy as np
import pytest
from fastapi import FastAPI

from tests.api_fakes import RATE, FakeEngine, app_of, serving_app
from tests.asgi import Answer, ask
from tests.lines import line
from tests.pages import murmur, wav
from tontaube.bundle import Bundle
from tontaube.codec.reference import read_reference
from tontaube.recordings import write_codes
from tontaube.types import Codes, Samples
from tontaube.voices import VoiceLibrary, VoiceStore

SECRET = b"nobody may see this"
GOOD = wav(murmur(2.0))
CONSENT = b"I am the speaker and I agree."
TRICKS = (
    *("..", "../..", "../outside", "../../etc/passwd", "..\\outside", "....//outside"),
    *("%2e%2e", "%2e%2e%2foutside", "..%2foutside", "%252e%252e%252foutside", "..%5coutside"),
    *("%00", "anna%00", "anna%00.wav", "%00/../outside", "anna/../evil", "anna%2f..%2fevil"),
    *("evil", "linked", "other", ".draft", ".evil", "voice.json", "linked/reference.wav"),
    *("/etc/passwd", "//outside", "%2f%2foutside", "file:///etc/passwd", "http://127.0.0.1/x"),
    *("~", "~root", "CON", "NUL", "anna.", "anna%20", "%20anna", "%0d%0a", "%ff%fe", "anna;x=y"),
    *("ANNA%0d%0aSet-Cookie:%20a=b", "%c0%ae%c0%ae", "%e2%80%ae", "*", "?", "a" * 300),
    *("a" * 20_000, "%F0%9F%8E%89", "{{7*7}}", "${jndi:ldap://x}", "';DROP TABLE voices"),
    *("<script>", "-rf", "--help", "0", "null"),
)


@dataclass
class Site:
    """An app over a library whose data folder was tampered with."""

    app: FastAPI
    folder: Path  # data and all around it

    def tree(self) -> dict[str, bytes]:
        """Everything below the folder, and what lies in the folder of temporary files."""
        found = {
            str(path): path.read_bytes() if path.is_file() else b""
            for path in self.folder.rglob("*")
        }
        return found | dict.fromkeys(temporary_files(), b"")


def temporary_files() -> Iterator[str]:
    """Only what an upload could leave there."""
    for path in Path(tempfile.gettempdir()).glob("tmp*"):
        yield str(path)


@pytest.fixture
async def site(tmp_path: Path) -> Site:
    outside, voices = tmp_path / "outside", tmp_path / "data" / "voices"
    engine = FakeEngine()
    about = engine.description
    for folder, id in (
        (outside, "evil"),
        (voices / "linked", "linked"),
        (voices / "other", "anna"),
    ):
        folder.mkdir(parents=True)
        record = {
            "id": id,
            "name": id,
            "language": "english",
            "style": "conversational",
            "consent": "x",
            "created": 0.0,
            "codec": f"{about.id} {about.revision}",
        }
        (folder / "voice.json").write_text(json.dumps(record))
        write_codes(folder / "codes.safetensors", np.zeros((4, 5), np.int64))
    (outside / "reference.wav").write_bytes(SECRET)
    (voices / "evil").symlink_to(outside)
    (voices / "linked" / "reference.wav").symlink_to(outside / "reference.wav")

    async def encode(samples: Samples) -> Codes:
        return np.zeros((4, len(samples) // 1_920), np.int64)

    read = partial(read_reference, sample_rate=RATE)
    library = VoiceLibrary(Bundle(tmp_path, about), VoiceStore(voices), read, encode)
    await library.open()
    engine.voices = library  # type: ignore[assignment]
    return Site(app_of(engine), tmp_path)


def form(**parts: bytes | tuple[bytes, bytes]) -> bytes:
    """A multipart body; a file is (the rest of its disposition, its content)."""
    body = b""
    for name, value in parts.items():
        extra, content = value if isinstance(value, tuple) else (b"", value)
        body += b'--x\r\nContent-Disposition: form-data; name="' + name.encode() + b'"'
        body += extra + b"\r\n\r\n" + content + b"\r\n"
    return body + b"--x--\r\n"


async def upload(
    app: FastAPI, audio: bytes = GOOD, file: bytes = b'; filename="a.wav"', **fields: bytes
) -> Answer:
    fields = {"name": b"Berta", "consent": CONSENT} | fields
    body = form(**fields, audio_sample=(file, audio))
    kind = [(b"content-type", b"multipart/form-data; boundary=x")]
    return await ask(app, "POST", "/v1/audio/voices", body, kind)


async def test_tricks_with_ids_reach_nothing(site: Site) -> None:
    before = site.tree()
    for trick in TRICKS:
        for method, path in (
            ("DELETE", "/v1/audio/voices/{}"),
            ("GET", "/v1/audio/voices/{}/preview"),
            ("GET", "/v1/models/{}"),
        ):
            answer = await ask(site.app, method, path.format(trick))
            if answer.status == 200:  # "..": the list of voices or models, by plain routing
                assert (method == "GET" and b"data" in answer.body) or b"voices" in answer.body
            elif answer.status == 307:  # "?": a slash too many before an empty query
                assert dict(answer.headers)[b"location"].startswith(b"http://x/v1/"), answer
            else:
                assert answer.error and answer.status in (400, 404, 405), (trick, answer)
            assert SECRET not in answer.body
            assert all(name.lower() != b"set-cookie" for name, _ in answer.headers)
        body = json.dumps({"model": "tts-1", "input": "Hi", "voice": trick}).encode()
        spoken = await ask(site.app, "POST", "/v1/audio/speech", body)
        assert spoken.status == 400 and spoken.error["param"] == "voice", trick
    listed = json.loads((await ask(site.app, "GET", "/v1/audio/voices")).body)["voices"]
    assert [voice["id"] for voice in listed] == ["anna"]
    assert site.tree() == before


@asynccontextmanager
async def answers(url: str, requests: list[bytes]) -> AsyncIterator[list[bytes]]:
    heard = []
    for request in requests:
        async with line(url) as (reader, writer):
            writer.write(request)
            heard.append(await reader.read())
    yield heard


async def test_tricks_with_ids_over_a_socket(site: Site) -> None:
    """As the bytes come: the server's own decoding of paths takes part."""
    before = site.tree()
    end = b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    paths = [trick.encode() for trick in TRICKS if trick.isascii() and " " not in trick]
    requests = [b"DELETE /v1/audio/voices/" + path + end for path in paths]
    async with serving_app(site.app) as url, answers(url, requests) as heard:
        for path, answer in zip(paths, heard, strict=True):
            assert answer.split()[1] in (b"307", b"400", b"404", b"405"), (path, answer)
            assert SECRET not in answer and b"\r\nset-cookie" not in answer.lower()
    assert site.tree() == before


BAD_NAMES = (
    *(b"", b" ", b"\t", b"\r\n", b"B\r\nSet-Cookie: a=b", b"B\nX: y", b"B\0", b"\x1b[31mred"),
    *(b"\x7f", "\u202eatreB", "a\u2028b", "\u200b", "\ufeff", "b" * 65, "é" * 65, "\ud7ff\ue000"),
)
GOOD_NAMES = (
    *("../../etc/passwd", "..", "/", "C:\\x", "Ber ta", "Übung", "日本", "'; DROP TABLE", "."),
    *("<b>x</b>", "%2e%2e%2f", "${x}", "anna", "alloy", "-rf", "b" * 64, "🎉", "con", "null"),
)
FILE_NAMES = (
    *(b'"../../x.wav"', b'"/etc/passwd"', b'"a\r\nSet-Cookie: a=b"', b'"a\\r\\nb"', b'"\0"', b'""'),
    *(b'"' + b"a" * 3_000, b'"a"; filename="b"', b"\"a\"; filename*=UTF-8''%2e%2e%2fx%0d%0a"),
    b'"..\\x"',
)


async def test_names_of_voices_and_files(site: Site) -> None:
    before = site.tree()
    for name in BAD_NAMES:
        data = name.encode() if isinstance(name, str) else name
        refused = await upload(site.app, name=data)
        assert refused.status == 400 and refused.error["param"] == "name", name
    for consent in (b"", b" \r\n ", b"x" * 2_001):
        assert (await upload(site.app, consent=consent)).error["param"] == "consent"
    for field in ("language", "style"):
        for value in (b"klingon", b"../x", b"\0", b"x" * 65, b"english\r\nX: y"):
            assert (await upload(site.app, **{field: value})).error["param"] == field
    assert site.tree() == before
    for name in GOOD_NAMES:
        await keep_and_delete(site, await upload(site.app, name=name.encode()))
    for file in FILE_NAMES:
        answer = await upload(site.app, file=b"; filename=" + file)
        if answer.status == 200:
            await keep_and_delete(site, answer)
        else:
            assert answer.status == 400 and answer.error, file
    assert site.tree() == before


async def keep_and_delete(site: Site, added: Answer) -> None:
    """A voice that was accepted has a safe id, lies in its own folder, and goes without a trace."""
    voice = json.loads(added.body)
    assert added.status == 200 and re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,79}", voice["id"]), voice
    kept = site.folder / "data" / "voices" / voice["id"]
    assert sorted(path.name for path in kept.iterdir()) == [
        "codes.safetensors",
        "reference.wav",
        "voice.json",
    ]
    assert voice["id"] not in ("anna", "alloy")
    gone = await ask(site.app, "DELETE", f"/v1/audio/voices/{voice['id']}")
    assert gone.status == 200 and not kept.exists()


def floats(value: float, at: int = 1_000) -> bytes:
    """A voice as a WAV of 32-bit floats with one value that is odd."""
    samples = murmur(2.0).copy()
    samples[at] = value
    data = samples.astype("<f4").tobytes()
    return riff(data, RATE, 32, 3)


def riff(data: bytes, rate: int, bits: int = 16, kind: int = 1, channels: int = 1) -> bytes:
    width = channels * bits // 8
    head = struct.pack("<IHHIIHH", 16, kind, channels, rate, rate * width % 2**32, width, bits)
    chunk = b"WAVEfmt " + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunk)) + chunk


def zeros(container: str, codec: str, seconds: int, rate: int) -> bytes:
    """Silence: next to nothing as a file, very much as samples."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        stream = output.add_stream(codec, rate=rate, layout="stereo")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 2 * rate), np.int16), "s16", "stereo")
        frame.sample_rate = rate
        for second in range(seconds):
            frame.pts = second * rate
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return file.getvalue()


def cut(data: bytes) -> bytes:
    return data[: len(data) // 50]


BOMBS = {
    "nan": lambda: floats(float("nan")),
    "inf": lambda: floats(float("inf")),
    "-inf at the end": lambda: floats(float("-inf"), -1),
    "one sample a second": lambda: riff(bytes(2**20), 1, 8),
    "two thousand million a second": lambda: riff(bytes(2**23), 2_000_000_000, 8),
    "255 channels": lambda: riff(bytes(2**20), RATE, 8, channels=255),
    "65535 channels": lambda: riff(bytes(2**20), RATE, 8, channels=65_535),
    "no rate": lambda: riff(bytes(2**16), 0),
    "a flac of five minutes": lambda: zeros("flac", "flac", 300, 96_000),
    "an ogg of three minutes": lambda: zeros("ogg", "flac", 180, 48_000),
    "a flac that is cut": lambda: cut(zeros("flac", "flac", 20, 48_000)),
    "a zip": lambda: b"PK\x03\x04" + bytes(10_000),
    "a gzip": lambda: b"\x1f\x8b\x08\x00" + bytes(10_000),
    "a playlist": lambda: b"#EXTM3U\n#EXTINF:2,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
    "an address": lambda: b"http://127.0.0.1:1/x.wav",
    "markup": lambda: (
        b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>'
    ),
    "nothing": lambda: b"",
    "lies about its length": lambda: GOOD[:4] + b"\xff\xff\xff\xff" + GOOD[8:40] + b"\xff" * 4,
}


@pytest.mark.parametrize("name", BOMBS)
async def test_recordings_that_are_no_voices(site: Site, name: str) -> None:
    before = site.tree()
    audio = BOMBS[name]()
    assert len(audio) < 10 * 2**20
    answer = await upload(site.app, audio)
    assert answer.status == 400 and answer.error["param"] == "audio_sample", answer
    assert "Error" not in answer.error["message"]
    assert site.tree() == before


def test_a_good_recording_is_a_wave_file() -> None:
    """Else the refusals above would prove nothing."""
    with wave.open(io.BytesIO(GOOD)) as file:
        assert file.getframerate() == RATE
    assert len(read_reference(floats(0.1))) == 2 * RATE
