"""Voices over HTTP: list, add, use, preview, delete; and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.api_fakes import SPEECH, FakeEngine, client_of, serving

CONSENT = {"name": "Berta", "consent": "I am Berta and I agree."}


async def add(client: httpx.AsyncClient, data: dict, audio: bytes = b"RIFF....") -> httpx.Response:
    files = {"audio_sample": ("../../x.wav", audio, "audio/wav")}
    return await client.post("/v1/audio/voices", data=data, files=files)


async def test_a_voice_from_recording_to_deletion() -> None:
    engine = FakeEngine()
    async with client_of(engine) as client:
        added = await add(client, CONSENT)
        assert added.status_code == 200, added.text
        voice = added.json()
        assert voice["name"] == "Berta" and voice["object"] == "audio.voice"
        assert engine.voices.consents == {voice["id"]: CONSENT["consent"]}
        listed = (await client.get("/v1/audio/voices")).json()["voices"]
        assert [entry["id"] for entry in listed] == ["anna", voice["id"]]
        for name in (voice["id"], {"id": voice["id"]}):
            spoken = await client.post("/v1/audio/speech", json=SPEECH | {"voice": name})
            assert spoken.status_code == 200
        deleted = await client.delete(f"/v1/audio/voices/{voice['id']}")
        assert deleted.json() == {
            "id": voice["id"],
            "deleted": True,
            "object": "audio.voice.deleted",
        }
        assert (await client.delete(f"/v1/audio/voices/{voice['id']}")).status_code == 404
        gone = await client.post("/v1/audio/speech", json=SPEECH | {"voice": voice["id"]})
        assert gone.json()["error"]["code"] == "voice_not_found"


async def test_previews(tmp_path: Path) -> None:
    engine = FakeEngine()
    sample = tmp_path / "sample.wav"
    sample.write_bytes(b"RIFF....WAVE")

    class Previewed(type(engine.voices)):
        def get(self, name: str | None):
            return replace(super().get(name), preview=str(sample))

        def list(self):
            return [self.get("anna")]

    engine.voices = Previewed()
    async with client_of(engine) as client:
        (voice,) = (await client.get("/v1/audio/voices")).json()["voices"]
        preview = await client.get(voice["preview_url"])
        assert preview.content == sample.read_bytes()
        assert "wav" in preview.headers["content-type"]
        sample.unlink()
        assert (await client.get(voice["preview_url"])).status_code == 404
    async with client_of(FakeEngine()) as client:
        assert (await client.get("/v1/audio/voices/anna/preview")).status_code == 404


async def test_shipped_voices_and_aliases_cannot_be_deleted() -> None:
    async with client_of(FakeEngine()) as client:
        assert (await client.delete("/v1/audio/voices/anna")).status_code == 400
        assert (await client.delete("/v1/audio/voices/alloy")).status_code == 404
        for path in ("..%2f..%2fetc%2fpasswd", "%00", "a" * 5_000, "%0d%0aSet-Cookie:x"):
            answer = await client.delete(f"/v1/audio/voices/{path}")
            assert answer.status_code == 404
            assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("data", "param"),
    [
        ({"consent": "yes"}, "name"),
        ({"name": "Berta"}, "consent"),
        ({"name": "  ", "consent": "yes"}, "name"),
        ({"name": "B" * 65, "consent": "yes"}, "name"),
        ({"name": "B\r\nSet-Cookie: x", "consent": "yes"}, "name"),
        ({"name": "B\u202eatreB", "consent": "yes"}, "name"),
        ({"name": "B\x00", "consent": "yes"}, "name"),
        ({"name": "Berta", "consent": "y" * 2_001}, "consent"),
    ],
)
async def test_wrong_fields(data: dict, param: str) -> None:
    engine = FakeEngine()
    async with client_of(engine) as client:
        answer = await add(client, data)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param
    assert len(engine.voices.list()) == 1


async def test_wrong_recordings() -> None:
    async with client_of(FakeEngine()) as client:
        refused = await add(client, CONSENT, b"bad")
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "audio_sample"
        missing = await client.post("/v1/audio/voices", data=CONSENT | {"audio_sample": "x"})
        assert missing.status_code == 400
        as_text = {"audio_sample": (None, b"x")}
        text = await client.post("/v1/audio/voices", data=CONSENT, files=as_text)
        assert text.json()["error"]["param"] == "audio_sample"


async def test_two_megabytes_are_fine_and_too_many_are_not() -> None:
    async with client_of(FakeEngine(), max_reference_bytes=3 * 2**20) as client:
        assert (await add(client, CONSENT, b"RIFF" * 2**19)).status_code == 200
        assert (await add(client, CONSENT, b"RIFF" * 2**20)).status_code == 413


async def test_an_endless_upload_is_stopped() -> None:
    """No length is declared; the server counts what comes and keeps little of it."""

    async def endless():
        head = b'--x\r\nContent-Disposition: form-data; name="audio_sample"; filename="a"\r\n\r\n'
        yield head
        while True:
            yield b"\0" * 2**16

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    engine = FakeEngine()
    async with (
        serving(engine, max_reference_bytes=2**20) as url,
        httpx.AsyncClient(base_url=url) as client,
    ):
        try:
            answer = await client.post("/v1/audio/voices", content=endless(), headers=headers)
            assert answer.status_code == 413
        except httpx.TransportError:  # the server may hang up while we still write
            pass
        assert (await client.get("/health")).is_success
    assert len(engine.voices.list()) == 1


def part(name: str, value: bytes, extra: bytes = b"") -> bytes:
    head = b'Content-Disposition: form-data; name="' + name.encode() + b'"' + extra
    return b"--x\r\n" + head + b"\r\n\r\n" + value + b"\r\n"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"--x\r\n"),
        ("multipart/form-data; boundary=", b""),
        ("multipart/form-data; boundary=" + "b" * 300, b""),
        ("multipart/form-data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: nonsense\r\n\r\n"),
        ("multipart/form-data; boundary=x", b"\xff\xfe" * 100),
        ("multipart/form-data; boundary=x", part("name", b"B" * 100_000) + b"--x--"),
        ("multipart/form-data; boundary=x", part("n", b"1") * 1_000 + b"--x--"),
        ("multipart/form-data; boundary=x", part("f", b"", b'; filename="f"') * 99 + b"--x--"),
        ("multipart/form-data; boundary=x", part("name", b"\xff\xfe") + b"--x--"),
        ("multipart/form-data; boundary=x; charset=nonsense", part("name", b"B") + b"--x--"),
        ("application/json", b"{}"),
        ("application/x-www-form-urlencoded", b"name=B&consent=y&audio_sample=z"),
        ("text/plain", b"x"),
    ],
)
async def test_broken_forms(content_type: str, body: bytes) -> None:
    async with client_of(FakeEngine()) as client:
        headers = {"Content-Type": content_type}
        answer = await client.post("/v1/audio/voices", content=body, headers=headers)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"]
