"""``/v1/audio/speech/batch``: up to 32 texts → as many files or errors, in their order."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from fastapi import APIRouter, Request
from pydantic import ValidationError

from api.answers import BatchAnswers
from api.delivery import Collected, log_unforeseen
from api.disconnects import until_disconnected
from api.documentation import errors_of_body
from api.errors import problem, validation_problem
from api.schemas import BatchBody, SpeechBody
from api.service import Job, Service, speak
from tontaube.errors import InvalidRequest

_AT_ONCE = 4  # so that one batch does not fill the waiting room


def router(service: Service) -> APIRouter:
    """The batch route."""
    routes = APIRouter(prefix="/v1/audio/speech", tags=["speech"])

    @routes.post(
        "/batch",
        summary="Speak several texts",
        response_model=BatchAnswers,
        response_model_exclude_unset=True,
        responses=errors_of_body(503),
    )
    async def create_batch(request: Request, body: BatchBody) -> dict[str, Any]:
        """At most 32, each with settings and errors of its own, answered when all are done."""
        items = body.bodies()
        service.require_ready()
        characters = sum(len(text) for item in items if isinstance(text := item.get("input"), str))
        if characters > service.max_characters:
            raise InvalidRequest(
                f"the texts have {characters} characters together; at most "
                f"{service.max_characters} are allowed",
                "items",
            )
        request.state.record.characters = characters
        answers = await until_disconnected(request.receive, _speak_all(service, items))
        return {"object": "list", "data": answers}

    return routes


async def _speak_all(service: Service, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    places = asyncio.Semaphore(_AT_ONCE)

    async def answer(index: int, item: dict[str, Any]) -> dict[str, Any]:
        async with places:
            return {"index": index, **await _speak_item(service, item)}

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(answer(index, item)) for index, item in enumerate(items)]
    return [task.result() for task in tasks]


async def _speak_item(service: Service, item: dict[str, Any]) -> dict[str, Any]:
    """The item's file, or its own error: one bad item does not spoil the others."""
    try:
        body = SpeechBody.model_validate(item)
        job = Job(service.checked(body, body.input), body.encoding, whole=True)
        file = Collected()
        with service.metrics.stream(len(body.input)) as meter:
            await speak(service, job, file, meter)
    except ValidationError as error:
        found = validation_problem(error.errors(include_url=False, include_input=False), skip=0)
        return {"error": found.body()}
    except Exception as error:
        log_unforeseen(error)
        return {"error": problem(error).body()}
    return {
        "audio": base64.b64encode(file.data).decode("ascii"),
        "response_format": body.response_format,
        "voice": meter.voice,
        "duration": round(meter.seconds, 3),
        "sample_rate": service.sample_rate,
        "usage": file.usage,
    }
