"""Gradio's own form: the fallback for browsers without our player, and what ``gradio_client`` calls.

It asks the API like any other client, in the same process: the same key, limits, queue and log.
"""

from __future__ import annotations

from typing import Any

import gradio as gr
import httpx
import numpy as np
import numpy.typing as npt
from fastapi import FastAPI

from api.service import Service

Audio = tuple[int, npt.NDArray[np.int16]]  # sample rate, samples


def add(app: FastAPI, service: Service) -> None:
    """Put the form into the Blocks that are being built."""
    _ = gr.I18n  # the keys below are looked up in the page's words
    description = service.engine.description
    with gr.Accordion(_say("form.title"), open=False, elem_id="plain-form"):
        text = gr.Textbox(label=_say("field.text"), lines=3)
        with gr.Row():
            voice = gr.Dropdown(
                [(part.name, part.id) for part in description.voices],
                value=description.default_voice,
                label=_say("field.voice"),
                allow_custom_value=True,  # voices come and go
            )
            language = gr.Dropdown(
                ["", *description.languages], value="", label=_say("field.language")
            )
            style = gr.Dropdown(["", *description.styles], value="", label=_say("field.style"))
        speed = gr.Slider(0.25, 4.0, value=1.0, step=0.05, label=_say("field.speed"))
        temperature = gr.Number(None, label=_say("field.temperature"))
        seed = gr.Number(None, precision=0, label=_say("field.seed"))
        button = gr.Button(_say("form.speak"))
        audio = gr.Audio(label=_say("form.result"), format="wav", interactive=False)
    button.click(
        _Speaker(app, service.sample_rate).speak,
        [text, voice, language, style, speed, temperature, seed],
        audio,
        api_name="speak",
        api_description="Speak a text; the answer is a finished WAV file.",
        concurrency_limit=None,
    )


def _say(key: str) -> Any:
    """A word of the page's tables, in the visitor's language."""
    return gr.i18n(key) if hasattr(gr, "i18n") else key


class _Speaker:
    """The form's way to the API."""

    def __init__(self, app: FastAPI, sample_rate: int) -> None:
        self._app = app
        self._sample_rate = sample_rate

    async def speak(
        self,
        text: str,
        voice: str | None = None,
        language: str | None = None,
        style: str | None = None,
        speed: float = 1.0,
        temperature: float | None = None,
        seed: int | None = None,
        *,
        request: gr.Request,
    ) -> Audio:
        """Raises gr.Error with the API's own words."""
        body = {
            "model": "tontaube-v1",
            "input": text,
            "voice": voice or None,
            "language": language or None,
            "style": style or None,
            "speed": speed,
            "temperature": temperature,
            "seed": seed,
            "response_format": "pcm",
            "stream": False,
        }
        data = await self._post(body, request)
        return self._sample_rate, np.frombuffer(data, "<i2").astype(np.int16)

    async def _post(self, body: dict[str, Any], request: gr.Request) -> bytes:
        key = request.headers.get("authorization")
        host = request.client.host if request.client else "unknown"
        transport = httpx.ASGITransport(self._app, client=(host, 0))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://page", timeout=None
        ) as client:
            headers = {"authorization": key} if key else {}
            answer = await client.post("/v1/audio/speech", json=body, headers=headers)
        if not answer.is_success:
            raise gr.Error(answer.json()["error"]["message"], print_exception=False)
        return answer.content
