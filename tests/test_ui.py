"""The page's server side: nothing is shadowed, words are complete, Gradio's API speaks."""

from __future__ import annotations

import asyncio
import re
import wave
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gradio_client
import httpx
import numpy as np
import pytest
import pytest_asyncio

from api.ui import page, reference
from tests.api_fakes import SPEECH, Behaviour, app_of, serving, tone_length
from tests.pages import PageEngine, eventually, murmur, wav
from tontaube.errors import Busy

FILES = Path(page.__file__).parent
TEXT = str(SPEECH["input"])

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning"),  # in Gradio
]


@pytest.fixture(scope="module")
def engine() -> PageEngine:
    return PageEngine(Behaviour(pause=0.001))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(engine: PageEngine) -> AsyncIterator[str]:
    async with serving(engine, ui=True) as address:
        yield address


@pytest_asyncio.fixture(loop_scope="module")
async def client(url: str, engine: PageEngine) -> AsyncIterator[httpx.AsyncClient]:
    engine.behaviour = Behaviour(pause=0.001)
    async with httpx.AsyncClient(base_url=url, timeout=60) as made:
        yield made


async def test_nothing_is_shadowed(client: httpx.AsyncClient) -> None:
    for path in ("/health", "/ready", "/v1/models", "/v1/audio/voices", "/v1/test"):
        answer = await client.get(path)
        assert answer.status_code == 200 and "json" in answer.headers["content-type"], path
    assert "tontaube_ready" in (await client.get("/metrics")).text
    assert "swagger" in (await client.get("/docs")).text
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert "/v1/audio/speech" in paths and "/v1/status" in paths
    assert not any("gradio" in path for path in paths)
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/audio/speech", 405),
        ("POST", "/health", 405),
    ):
        answer = await client.request(method, path)
        assert answer.status_code == status
        assert answer.json()["error"]["message"]
    assert (await client.post("/v1/audio/speech", json=SPEECH)).status_code == 200


async def test_the_page_is_there(client: httpx.AsyncClient) -> None:
    home = await client.get("/", follow_redirects=True)
    assert home.url.path == "/ui/"
    assert "files/main.js" in home.text and "Tontaube" in home.text
    assert "googleapis" not in home.text and "cdn" not in home.text.lower()
    script = await client.get("/ui/files/main.js")
    assert "javascript" in script.headers["content-type"]
    assert (await client.get("/favicon.ico")).status_code == 200


async def test_without_the_page() -> None:
    transport = httpx.ASGITransport(app_of(PageEngine(), ui=False))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as bare:
        for path in ("/", "/ui/", "/v1/status"):
            assert (await bare.get(path)).status_code == 404


async def test_choices(client: httpx.AsyncClient) -> None:
    choices = (await client.get("/v1/choices")).json()
    assert choices["voices"][0]["id"] == choices["default_voice"] == "anna"
    assert choices["shipped"] == ["anna"]
    assert choices["languages"]["german"] == "de"
    assert choices["defaults"]["temperature"] == 0.8
    assert choices["max_characters"] == 40_000


async def test_status_knows_recent_streams(client: httpx.AsyncClient) -> None:
    await client.post("/v1/audio/speech", json=SPEECH)
    status = (await client.get("/v1/status")).json()
    assert (status["model"], status["engine"], status["device"]) == ("fake-1", "fake", "cpu")
    assert status["ready"] and status["position"] is None
    assert [module["name"] for module in status["modules"]] == ["cb0"]
    last = status["recent"][-1]
    assert last["outcome"] == "ok" and last["ago"] >= 0
    assert last["seconds"] == pytest.approx(len(TEXT) * 0.01)
    assert 0 < last["ttfa"] and 0 < last["rtf"]


async def test_a_place_in_line(client: httpx.AsyncClient, engine: PageEngine) -> None:
    engine.position = 3
    headers = {"x-request-id": "mine"}
    speaking = asyncio.create_task(client.post("/v1/audio/speech", json=SPEECH, headers=headers))
    try:
        await eventually(lambda: engine.open == 1)
        for request, place in (("mine", 3), ("another", None)):
            status = await client.get("/v1/status", params={"request": request})
            assert status.json()["position"] == place
    finally:
        engine.position = 0
    assert (await speaking).status_code == 200


async def test_the_keys_guard_what_the_page_asks() -> None:
    async with serving(PageEngine(), ui=True, api_key="right") as url:
        async with httpx.AsyncClient(base_url=url) as client:
            assert (await client.get("/ui/")).status_code == 200
            for path in ("/v1/status", "/v1/choices"):
                assert (await client.get(path)).status_code == 401
                given = {"authorization": "Bearer right"}
                assert (await client.get(path, headers=given)).status_code == 200

        def speak(key: str) -> str:
            program = gradio_client.Client(
                f"{url}/ui/",
                verbose=False,
                analytics_enabled=False,
                headers={"authorization": f"Bearer {key}"},
            )
            try:
                return str(program.predict(TEXT, api_name="/speak"))
            finally:
                program.close()

        with pytest.raises(gradio_client.exceptions.AppError, match="API key"):
            await asyncio.to_thread(speak, "wrong")
        assert (await asyncio.to_thread(speak, "right")).endswith(".wav")


# --- recordings


async def check(client: httpx.AsyncClient, audio: bytes) -> httpx.Response:
    files = {"audio_sample": ("recording", audio)}
    return await client.post("/v1/audio/voices/check", files=files)


async def test_a_recording_is_looked_at_and_not_kept(client: httpx.AsyncClient) -> None:
    before = (await client.get("/v1/audio/voices")).json()
    used = (await check(client, wav(murmur(8)))).json()
    assert used["seconds"] == pytest.approx(8)
    assert -30 < used["level"] < 0
    assert len(used["peaks"]) == 400 and 0.1 < max(used["peaks"]) <= 1
    assert "short" not in used["warnings"] and "clipped" not in used["warnings"]
    assert (await client.get("/v1/audio/voices")).json() == before


@pytest.mark.parametrize(
    ("audio", "words"),
    [
        (wav(np.zeros(48_000, np.float32)), "silent"),
        (wav(murmur(0.5)), "at least 1 s"),
        (b"this is no recording", "cannot decode"),
        (
            wav(np.random.default_rng(1).normal(0, 0.1, 96_000).astype(np.float32)),
            "only noise",
        ),
    ],
)
async def test_recordings_that_cannot_be_used(
    client: httpx.AsyncClient, audio: bytes, words: str
) -> None:
    answer = await check(client, audio)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


async def test_a_large_recording_is_checked(client: httpx.AsyncClient) -> None:
    """Bodies of the other routes end at 2 MiB."""
    assert (await check(client, wav(murmur(60)))).status_code == 200
    missing = await client.post("/v1/audio/voices/check", data={"audio_sample": "text"})
    assert missing.json()["error"]["param"] == "audio_sample"


@pytest.mark.parametrize(
    ("samples", "warning"),
    [
        (murmur(3), "short"),
        (murmur(60), "cut"),
        (np.clip(murmur(8) * 20, -1, 1), "clipped"),
        (murmur(8) + 0.08 * np.sin(np.arange(8 * 24_000)).astype(np.float32), "noisy"),
        (np.concatenate([murmur(4), np.zeros(24_000 * 8, np.float32)]), "pauses"),
    ],
)
async def test_warnings(samples: np.ndarray, warning: str) -> None:
    assert warning in reference.inspect(samples, 24_000)["warnings"]


# --- Gradio's own API


async def predict(url: str, *given: object) -> str:
    """A visitor's call of the page's endpoint: a file's path. In a thread of its own: the server
    in this process has need of the usual ones."""

    def call() -> str:
        program = gradio_client.Client(f"{url}/ui/", verbose=False, analytics_enabled=False)
        try:
            return str(program.predict(*given, api_name="/speak"))
        finally:
            program.close()

    with ThreadPoolExecutor(1) as thread:
        return await asyncio.get_running_loop().run_in_executor(thread, call)


async def test_gradio_client_speaks(
    url: str, client: httpx.AsyncClient, engine: PageEngine
) -> None:
    path = await predict(url, TEXT, "anna", "german", "audiobook", 1.0, 0.5, 7)
    with wave.open(path) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert len(samples) == tone_length(TEXT, 0.01)
    assert 9_700 < np.abs(samples).max() <= 9_831  # 0.3 of full scale: nothing was normalised
    request = engine.requests[-1]
    assert (request.language, request.style, request.seed) == ("german", "audiobook", 7)
    assert request.temperature == 0.5


async def test_gradio_client_gets_the_api_s_words(
    url: str, client: httpx.AsyncClient, engine: PageEngine
) -> None:
    with pytest.raises(gradio_client.exceptions.AppError, match="nothing to say"):
        await predict(url, "?!")
    engine.refuse = Busy("all places are taken", 1)
    try:
        with pytest.raises(gradio_client.exceptions.AppError, match="all places are taken"):
            await predict(url, TEXT)
    finally:
        engine.refuse = None


async def test_gradio_s_queue_does_not_limit_ours(
    url: str, client: httpx.AsyncClient, engine: PageEngine
) -> None:
    engine.position = 1  # nobody is let in
    jobs = [asyncio.create_task(predict(url, TEXT)) for _ in range(6)]
    try:
        await eventually(lambda: engine.open == 6)
    finally:
        engine.position = 0
    assert len(await asyncio.gather(*jobs)) == 6


# --- words


def keys_used() -> set[str]:
    markup = page.markup()
    keys = set(re.findall(r'data-t(?:-\w+)?="(\w+)"', markup))
    for script in (FILES / "static").glob("*.js"):
        keys |= set(re.findall(r'\bt\(\s*"(\w+)"', script.read_text("utf-8")))
    return keys


async def test_the_languages_say_the_same_things() -> None:
    english, german = page.words("en"), page.words("de")
    assert english.keys() == german.keys()
    for key, words in english.items():
        assert words.strip() and german[key].strip()
        assert set(re.findall(r"\{\w+\}", words)) == set(re.findall(r"\{\w+\}", german[key])), key


async def test_every_word_is_there() -> None:
    assert len(keys_used()) > 80
    assert keys_used() <= page.words("en").keys()


async def test_every_control_has_a_name() -> None:
    """For screen readers: inputs stand in a label or carry one."""
    markup = page.markup()
    for field in re.findall(r"<(?:input|select|textarea)[^>]*>", markup):
        before = markup[: markup.index(field)]
        inside = before.rfind("<label") > before.rfind("</label>")
        assert inside or "data-t-label" in field, field


async def test_nothing_comes_from_elsewhere() -> None:
    for path in (FILES / "static").rglob("*.*"):
        foreign = set(re.findall(r"https?://[^\s\"')<]+", path.read_text("utf-8")))
        assert foreign <= {"http://www.w3.org/2000/svg"}, path
