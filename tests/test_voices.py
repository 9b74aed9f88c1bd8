"""Voices by name, and those made of recordings: kept, restored, refused, deleted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests import fakes
from tontaube.bundle import Bundle, VoicePart
from tontaube.errors import BundleError, InvalidRequest, UnknownVoice
from tontaube.types import Codes, Samples
from tontaube.voices import OPENAI_NAMES, VoiceLibrary, VoiceStore

CONSENT = "I am the speaker and I agree."


def read(audio: bytes) -> Samples:
    if audio.startswith(b"bad"):
        raise InvalidRequest("cannot decode the reference recording", "audio")
    return np.full(len(audio) * 1_920, 0.1, np.float32)


async def encode(samples: Samples) -> Codes:
    return np.tile(np.arange(len(samples) // 1_920), (4, 1))


async def library(
    tmp_path: Path, most: int = 10, cached: int = 2, **changes: object
) -> VoiceLibrary:
    bundle = Bundle(tmp_path, fakes.description(**changes))
    voices = VoiceLibrary(bundle, VoiceStore(tmp_path / "voices", most, cached), read, encode)
    await voices.open()
    return voices


async def test_names_ids_and_aliases(tmp_path: Path) -> None:
    voices = await library(tmp_path, voice_aliases={"Narrator": "ben"})
    assert voices.get(None).id == "anna"
    assert voices.get("ben").id == voices.get(" BEN ").id == voices.get("narrator").id == "ben"
    assert {voices.get(name).id for name in OPENAI_NAMES} == {"anna", "ben"}
    with pytest.raises(UnknownVoice, match=r"anna, ben, .*alloy") as raised:
        voices.get("nobody")
    assert raised.value.field == "voice"
    with pytest.raises(BundleError, match="no voice"):
        await library(tmp_path, voice_aliases={"narrator": "zoe"})
    with pytest.raises(BundleError, match="default_voice"):
        await library(tmp_path, default_voice="zoe")


async def test_codes_of_the_bundle(tmp_path: Path) -> None:
    codes = np.arange(20, dtype=np.int32).reshape(4, 5)
    save_file({"codes": codes}, tmp_path / "anna.safetensors")
    save_file({"other": codes}, tmp_path / "wrong.safetensors")
    part = {"id": "anna", "name": "Anna", "language": "english", "style": "audiobook"}
    voices = await library(tmp_path, voices=(VoicePart(**part, codes="anna.safetensors"),))
    np.testing.assert_array_equal(voices.get("anna").codes, codes)
    with pytest.raises(BundleError, match=r"wrong\.safetensors"):
        await library(tmp_path, voices=(VoicePart(**part, codes="wrong.safetensors"),))


async def test_a_recording_becomes_a_voice_that_survives(tmp_path: Path) -> None:
    voices = await library(tmp_path)
    voice = await voices.add("Zoë / ../x", b"123456", CONSENT)
    assert voice.codes.shape == (4, 6) and voice.name == "Zoë / ../x"
    assert voice.id.startswith("zoe-x-") and voice.id.replace("-", "").isalnum()
    again = await library(tmp_path)
    restored = again.get("zoë / ../X")
    assert restored.id == voice.id
    np.testing.assert_array_equal(restored.codes, voice.codes)
    assert restored.preview == str(tmp_path / "voices" / voice.id / "reference.wav")
    assert [v.id for v in again.list()] == ["anna", "ben", voice.id]
    assert (again.hits, again.misses) == (0, 1)
    assert again.get(voice.id).id == voice.id and again.hits == 1
    again.delete(voice.id)
    with pytest.raises(UnknownVoice):
        again.get(voice.id)
    assert not any((tmp_path / "voices").iterdir())
    assert [v.id for v in (await library(tmp_path)).list()] == ["anna", "ben"]


@pytest.mark.parametrize("name", ["english", " English", "en", "en-GB", "EN_us"])
async def test_a_language_is_named_as_in_a_request(tmp_path: Path, name: str) -> None:
    voices = await library(tmp_path)
    voice = await voices.add("Zoe", b"123456", CONSENT, language=name, style="audiobook")
    assert (voice.language, voice.style) == ("english", "audiobook")
    for wrong in ({"language": "tlh"}, {"style": "loud"}):
        with pytest.raises(InvalidRequest, match="choose one of") as raised:
            await voices.add("Zoe", b"123456", CONSENT, **wrong)
        assert raised.value.field in wrong


async def test_another_codec_makes_its_own_codes(tmp_path: Path) -> None:
    voice = await (await library(tmp_path)).add("Zoe", b"123456", CONSENT)
    other = await library(tmp_path, revision="2")
    # the recording was kept as a wave file, whose bytes the fake reader counts
    assert other.get(voice.id).codes.shape[1] > 6
    assert (await library(tmp_path, revision="2")).get(voice.id).codes.shape[1] > 6


async def test_what_is_refused(tmp_path: Path) -> None:
    voices = await library(tmp_path, most=1)
    for name, audio, consent, field in (
        ("", b"123", CONSENT, "name"),
        ("a\r\nb", b"123", CONSENT, "name"),
        ("n" * 81, b"123", CONSENT, "name"),
        ("Zoe", b"123", "  ", "consent"),
        ("Zoe", b"bad", CONSENT, "audio"),
    ):
        with pytest.raises(InvalidRequest) as raised:
            await voices.add(name, audio, consent)
        assert raised.value.field == field
    with pytest.raises(InvalidRequest, match="language"):
        await voices.add("Zoe", b"123", CONSENT, language="klingon")
    await voices.add("Zoe", b"123", CONSENT)
    with pytest.raises(InvalidRequest, match="already"):
        await voices.add("Yan", b"123", CONSENT)
    with pytest.raises(InvalidRequest, match="ships"):
        voices.delete("anna")
    for id in ("nobody", "../anna", "."):
        with pytest.raises(UnknownVoice):
            voices.delete(id)


async def test_memory_is_bounded_and_rubbish_is_passed_over(tmp_path: Path) -> None:
    voices = await library(tmp_path)
    ids = [(await voices.add(f"V{i}", b"123", CONSENT)).id for i in range(3)]
    for id in [*ids, ids[2], ids[0]]:
        voices.get(id)
    assert (voices.hits, voices.misses) == (1, 4)
    (tmp_path / "voices" / "half").mkdir()
    (tmp_path / "voices" / "broken").mkdir()
    (tmp_path / "voices" / "broken" / "voice.json").write_text("{")
    (tmp_path / "voices" / ".zoe.1234").mkdir()
    assert len((await library(tmp_path)).list()) == 5
