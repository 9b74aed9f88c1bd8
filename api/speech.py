"""``/v1/audio/speech``: a request's text → an audio file or events, while it is being spoken."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.delivery import Audio, Collected, Events, Line
from api.disconnects import until_disconnected
from api.documentation import SPEECH_RESPONSES
from api.encoders import FORMATS
from api.metrics import Meter
from api.records import Record
from api.schemas import SpeechBody
from api.service import Delivery, Job, Service, note, speak
from tontaube.types import SpeechRequest


def router(service: Service) -> APIRouter:
    """The route for one request at a time."""
    routes = APIRouter(prefix="/v1/audio", tags=["speech"])

    @routes.post(
        "/speech",
        summary="Speak a text",
        response_class=Response,
        responses=SPEECH_RESPONSES,
    )
    async def create_speech(body: SpeechBody) -> Response:
        """OpenAI's `audio.speech.create`. Without a `response_format` the answer is an MP3; errors
        come before the first byte where they can be known, later ones cut the connection (or are an
        event, for `sse`)."""
        return SpeechResponse(service, service.checked(body, body.input), body)

    return routes


class SpeechResponse(Response):
    """Speaks while it is being sent; when the client leaves, the stream is freed."""

    def __init__(self, service: Service, request: SpeechRequest, body: SpeechBody) -> None:
        super().__init__()
        self._service = service
        self._events = body.stream_format == "sse"
        self._job = Job(request, body.encoding, whole=not (body.stream or self._events))
        self._format = FORMATS[body.encoding]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        record: Record = Request(scope).state.record
        characters = len(self._job.request.text)
        with self._service.metrics.stream(characters, request=record.id) as meter:
            try:
                await until_disconnected(receive, self._speak(scope, receive, send, meter))
            finally:
                if meter.outcome != "ok":
                    record.outcome = meter.outcome
                note(record, meter, self._job, self._service)

    async def _speak(self, scope: Scope, receive: Receive, send: Send, meter: Meter) -> None:
        if not self._job.whole:
            await speak(self._service, self._job, self._delivery(send), meter)
            return
        file = Collected()
        await speak(self._service, self._job, file, meter)
        headers = {
            "x-sample-rate": str(self._service.sample_rate),
            "x-audio-duration": f"{meter.seconds:.3f}",
            "x-rtf": f"{meter.rtf or 0.0:.4f}",
        }
        await Response(file.data, 200, headers, self._format.media_type)(scope, receive, send)

    def _delivery(self, send: Send) -> Delivery:
        if self._events:
            line = Line(send, "text/event-stream; charset=utf-8", self._service.sample_rate)
            return Events(line, self._service.sample_rate)
        return Audio(Line(send, self._format.media_type, self._service.sample_rate))
