"""``TONTAUBE_ENGINE=vllm python app.py``: speech over HTTP; who leaves frees vLLM's sequences."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from tests.vllm.app import App, running_app

TEXT = "Nobody knew why the boat came back before dawn."
LONG = " ".join([TEXT, "Its net was empty, and so was the quay.", "They went home in silence."] * 8)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    with running_app(tmp_path_factory.mktemp("app"), phrase_cache_bytes="0") as app:
        yield app


def body(text: str, **fields: object) -> dict[str, object]:
    return {"model": "tontaube-v1", "voice": "alloy", "input": text, "seed": 1} | fields


def test_it_answers_with_speech(app: App) -> None:
    answer = httpx.post(
        f"{app.url}/v1/audio/speech", json=body(TEXT, response_format="wav"), timeout=300
    )
    assert answer.status_code == 200, answer.text
    with wave.open(io.BytesIO(answer.content)) as file:
        assert file.getframerate() == 24_000
        samples = np.frombuffer(file.readframes(10**8), "<i2")
    assert 1.0 < len(samples) / 24_000 < 10.0
    assert np.abs(samples).max() > 1_000
    assert "torch.float32 in vLLM on cpu" in app.log.read_text()
    assert app.idle()


def test_it_streams_and_a_client_that_leaves_frees_its_sequences(app: App) -> None:
    address = f"{app.url}/v1/audio/speech"
    cancelled = app.metric("tontaube_cancellations_total")[""]
    with httpx.stream(
        "POST", address, json=body(LONG, response_format="pcm"), timeout=300
    ) as answer:
        pieces = answer.iter_raw()
        assert len(next(pieces)) > 1_000
        assert sum(app.unfinished().values()) > 0  # audio came while the rest is being made
        next(pieces)
    assert app.idle()
    assert app.metric("tontaube_active_streams") == {"": 0.0}
    assert app.metric("tontaube_cancellations_total")[""] == cancelled + 1


def test_many_that_leave_and_one_that_stays(app: App) -> None:
    """The one that stays hears the same as alone."""
    address = f"{app.url}/v1/audio/speech"
    wanted = body(TEXT, response_format="pcm")
    alone = httpx.post(address, json=wanted, timeout=300).content
    with httpx.Client(timeout=300) as client:
        leaving = [
            client.send(
                client.build_request("POST", address, json=body(LONG, response_format="pcm")),
                stream=True,
            )
            for _ in range(4)
        ]
        for answer in leaving[:2]:
            answer.close()
        stayed = client.post(address, json=wanted).content
        for answer in leaving[2:]:
            answer.close()
    assert abs(len(stayed) - len(alone)) < 0.2 * len(alone)  # batches differ in the last bit
    assert app.idle()
