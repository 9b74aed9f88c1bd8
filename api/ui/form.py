"""Gradio's own form: the fallback where our player does not run, and what ``gradio_client`` calls.

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


def add(app: FastAPI, service: Service, say: gr.I18n) -> None:
    """Put the form into the Blocks that are being built; ``say`` knows the page's words by key."""
    description = service.engine.description
    with gr.Accordion(say("form_title"), open=False, elem_id="plain-form"):
        text = gr.Textbox(label=say("field_text"), lines=3)
        with gr.Row():
            voice = gr.Dropdown(
                [(part.name, part.id) for part in description.voices],
                value=description.default_voice,
                label=say("field_voice"),
                allow_custom_value=True,  # voices come and go
            )
            language = gr.Dropdown(
                ["", *description.languages], value="", label=say("field_language")
            )
            style = gr.Dropdown(["", *description.styles], value="", label=say("field_style"))
        speed = gr.Slider(0.25, 4.0, value=1.0, step=0.05, label=say("field_speed"))
        temperature = gr.Number(None, label=say("field_temperature"))
        seed = gr.Number(None, precision=0, label=say("field_seed"))
        button = gr.Button(say("form_speak"))
        audio = gr.Audio(label=say("form_result"), format="wav", interactive=False)
    button.click(
        _Speaker(app, service.sample_rate).speak,
        [text, voice, language, style, speed, temperature, seed],
        audio,
        api_name="speak",
        api_description="Speak a text; the answer is a finished WAV file.",
        concurrency_limit=None,
    )


class _Speaker:
    """The form's way to the API."""

    def __init__(self, app: FastAPI, sample_rate: int) -> None:
        self._app = app
        self._sample_rate = sample_rate

    async def speak(  # noqa: PLR0913 - a Gradio endpoint takes its fields one by one
        self,
        request: gr.Request,
        text: str,
        voice: str | None = None,
        language: str | None = None,
        style: str | None = None,
        speed: float = 1.0,
        temperature: float | None = None,
        seed: int | None = None,
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
