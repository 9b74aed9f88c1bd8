"""A browser before the page: how to open it, wait for it, and what it must not complain of.

Its fixtures, imported by who uses them, are ``stage`` (a fake engine) and ``real`` (the bundle that
ships).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.api_fakes import Behaviour, serving
from tests.pages import PageEngine, eventually
from tontaube.config import Settings
from tontaube.engine import Engine

AnyEngine = TypeVar("AnyEngine", PageEngine, Engine)

CHROMIUM = shutil.which("chromium")
MARKS = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs the Debian package chromium"),
    pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning"),  # in Gradio
]
PATIENCE = 60_000  # ms; the machine may be busy
USUAL: dict[str, Any] = {"locale": "en-GB", "viewport": {"width": 1200, "height": 900}}
QUICK = Behaviour(pause=0.002, seconds_per_character=0.05)
LONG = "This sentence is said again and again, so that there is time to look at it. " * 40
CHAPTER = (
    "Chapter one\n\nThe first paragraph of a longer text. It has two sentences.\n\n"
    + "The second one goes on for a while, so that its line in the list has to be cut. " * 3
    + "\n\nAnd a third."
)


@dataclass
class Stage(Generic[AnyEngine]):
    """A server, its engine and a browser."""

    engine: AnyEngine
    url: str
    browser: Browser
    usual: BrowserContext  # its cache makes the next page quick

    @asynccontextmanager
    async def page(self, address: str = "", **context: Any) -> AsyncIterator[Page]:
        """A fresh page that is ready; it must leave no error, and ask nobody else for anything."""
        complaints: list[str] = []
        made = await self.browser.new_context(**USUAL | context) if context else self.usual
        page = await made.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: complaints.append(said.text) if bad(said.type) else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url) if self.far(asked.url) else 0)
        await page.goto(f"{self.url}/{address}")
        await page.wait_for_selector("#tontaube[data-state=ready]")
        yield page
        await (made if context else page).close()
        if isinstance(self.engine, PageEngine):
            self.engine.refuse = self.engine.hold_after = None
            self.engine.behaviour = QUICK
        await eventually(lambda: self.engine.status().active_streams == 0)
        assert [text for text in complaints if not expected(text)] == []

    def far(self, address: str) -> bool:
        return not address.startswith((self.url, "data:", "blob:"))


def bad(kind: str) -> bool:
    return kind in ("error", "warning")


def expected(complaint: str) -> bool:
    """Refusals that a test provokes are told to the console by the browser itself."""
    return bool(re.search(r"status of (400|422|503)", complaint))


@pytest_asyncio.fixture(name="stage", scope="module", loop_scope="module")
async def open_stage() -> AsyncIterator[Stage[PageEngine]]:
    expect.set_options(timeout=PATIENCE)
    engine = PageEngine(QUICK)
    options = ["--no-sandbox", "--disable-dev-shm-usage", "--use-fake-ui-for-media-stream"]
    async with serving(engine, ui=True) as url, async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*options, "--use-fake-device-for-media-stream"]
        )
        yield Stage(engine, url, browser, await browser.new_context(**USUAL))
        await browser.close()


@pytest_asyncio.fixture(name="real", scope="module", loop_scope="module")
async def open_real(
    stage: Stage[PageEngine], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage[Engine]]:
    """The same browser before the real engine with the bundle that ships."""
    data = tmp_path_factory.mktemp("data")
    engine = await Engine.load(Settings(data_dir=data, threads=1))
    await engine.warm_up()
    async with serving(engine, ui=True, data_dir=data) as url:
        yield replace(stage, engine=engine, url=url)
    await engine.close()


async def player(page: Page, what: str) -> Any:
    return await page.evaluate(f"tontaube.player.{what}")


async def heard(page: Page, samples: int = 1) -> None:
    """Wait until the audio graph has rendered that many samples of ours."""
    await page.wait_for_function(f"tontaube.player.rendered >= {samples}")


async def state(page: Page, wanted: str, line: str = "#speak-line") -> None:
    await page.wait_for_selector(f"{line}[data-state={wanted}]")


async def offer(page: Page, audio: bytes) -> None:
    file = {"name": "recording.wav", "mimeType": "audio/wav", "buffer": audio}
    await page.set_input_files("#clone-file", file)
