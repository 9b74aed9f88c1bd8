"""``/v1/audio/voices``: the voices that can be asked for, and recordings that become new ones."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import TypedDict

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from api.answers import DeletedVoice, NewVoice, VoiceCard, VoiceCards
from api.disconnects import until_disconnected
from api.documentation import PREVIEW_RESPONSES, UPLOAD_BODY, VoiceId, errors, errors_of_body
from api.errors import VoiceNotFound
from api.service import Service
from tontaube.errors import InvalidRequest, UnknownVoice
from tontaube.types import Voice

_NAME = 64  # characters
_CONSENT = 2_000


class _Upload(TypedDict):
    name: str
    audio: bytes
    consent: str
    language: str | None
    style: str | None


def router(service: Service) -> APIRouter:
    """List, add, fetch a preview of, and delete voices."""
    routes = APIRouter(prefix="/v1/audio/voices", tags=["voices"])
    library = service.engine.voices

    @routes.get("", summary="List the voices", responses=errors(401))
    async def list_voices() -> VoiceCards:
        """The bundle's own and the uploaded ones. OpenAI's names are aliases of the former."""
        return VoiceCards(voices=[describe(voice) for voice in library.list()])

    @routes.post(
        "",
        summary="Make a voice of a recording",
        openapi_extra={"requestBody": UPLOAD_BODY},
        responses=errors_of_body(422, 503),
    )
    async def add_voice(request: Request) -> NewVoice:
        """Any file format, rate and number of channels; silence and noise are refused. The voice
        survives restarts."""
        upload = await _read_upload(request, service.limits.reference_bytes)
        service.require_ready()
        voice = await until_disconnected(request.receive, library.add(**upload))
        return NewVoice(object="audio.voice", **describe(voice).model_dump())

    @routes.get(
        "/{voice_id}/preview",
        summary="A recording of the voice",
        response_class=FileResponse,
        responses=PREVIEW_RESPONSES,
    )
    async def preview(voice_id: VoiceId) -> FileResponse:
        """What `preview_url` of the list of voices leads to."""
        path = _known(service, voice_id).preview
        if path is None or not Path(path).is_file():  # noqa: ASYNC240 - one stat of a local file
            raise VoiceNotFound(f"the voice {voice_id[:80]!r} has no preview")
        kind = "audio/wav" if path.endswith(".wav") else None  # else guessed; x-wav is dated
        return FileResponse(path, media_type=kind)

    @routes.delete(
        "/{voice_id}", summary="Delete an uploaded voice", responses=errors(400, 401, 404)
    )
    async def delete_voice(voice_id: VoiceId) -> DeletedVoice:
        """Its recording, its codes and the note of consent are removed. The bundle's stay (400)."""
        library.delete(_known(service, voice_id).id)
        return DeletedVoice(id=voice_id, deleted=True, object="audio.voice.deleted")

    return routes


def describe(voice: Voice) -> VoiceCard:
    """A voice as clients list it."""
    preview = f"/v1/audio/voices/{voice.id}/preview" if voice.preview else None
    return VoiceCard(
        id=voice.id,
        name=voice.name,
        language=voice.language,
        style=voice.style,
        preview_url=preview,
    )


def _known(service: Service, voice_id: str) -> Voice:
    """A voice by its id alone: paths take no aliases. Raises VoiceNotFound."""
    try:
        voice = service.engine.voices.get(voice_id)
    except UnknownVoice:
        voice = None
    if voice is None or voice.id != voice_id:
        raise VoiceNotFound(f"there is no voice with the id {voice_id[:80]!r}")
    return voice


async def _read_upload(request: Request, most_bytes: int) -> _Upload:
    """What the form says. Raises InvalidRequest, or HTTPException 413."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise InvalidRequest("send multipart/form-data with name, audio_sample and consent")
    try:
        form = await request.form(max_files=1, max_fields=16, max_part_size=2**16)
    except HTTPException:
        raise
    except (ValueError, KeyError) as error:  # what the parser meets in a broken Content-Type
        raise InvalidRequest("the multipart body cannot be read") from error
    try:
        recording = form.get("audio_sample")
        if not isinstance(recording, UploadFile):
            raise InvalidRequest("attach the recording as a file", "audio_sample")
        if recording.size is not None and recording.size > most_bytes:
            raise HTTPException(413, f"the recording is larger than {most_bytes} bytes")
        return _Upload(
            name=_printable(_text(form, "name", _NAME), "name"),
            audio=await recording.read(),
            consent=_text(form, "consent", _CONSENT),
            language=_text(form, "language", _NAME) if form.get("language") else None,
            style=_text(form, "style", _NAME) if form.get("style") else None,
        )
    finally:
        await form.close()


def _text(form: FormData, field: str, longest: int) -> str:
    value = form.get(field)
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise InvalidRequest(f"{field} is missing", field)
    if len(text) > longest:
        raise InvalidRequest(f"{field} has more than {longest} characters", field)
    return text


def _printable(text: str, field: str) -> str:
    """Names appear in lists, files and logs: no control characters, no line breaks."""
    if any(unicodedata.category(character)[0] in "CZ" and character != " " for character in text):
        raise InvalidRequest(f"{field} contains a character that cannot be printed", field)
    return text
