"""The page before the real engine: heard, freed, and photographed into ``docs/screenshots``.

Needs Debian's ``chromium``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser import (
    CHAPTER,
    LONG,
    MARKS,
    Stage,
    heard,
    offer,
    open_real,  # noqa: F401 - a fixture
    open_stage,  # noqa: F401 - a fixture
    state,
)
from tests.pages import eventually, wav
from tontaube.engine import Engine
from tontaube.types import SpeechRequest

pytestmark = MARKS

SCREENSHOTS = Path(__file__).parent.parent / "docs" / "screenshots"
RECORDED = "The morning was clear and cold. I walked along the river and listened to the birds."


async def test_the_real_engine_is_heard_and_freed(real: Stage[Engine]) -> None:
    async with real.page() as page:
        await page.fill("#speak-text", LONG)
        await page.click("#speak-play")
        await heard(page, 4_800)
        assert real.engine.status().active_streams == 1  # of some minutes of speech
        await expect(page.locator("#panel-speak .backdrop mark.heard")).to_contain_text("This")
        await page.click("#speak-stop")
        await eventually(lambda: real.engine.status().active_streams == 0)
        assert real.engine.status().cancellations == 1


async def fill(page: Page, recording: bytes) -> None:
    """Something to see in every panel."""
    await page.click("#speak-play")
    await state(page, "done")
    await page.click("#tab-compare")
    await page.click("#compare-go")
    await expect(page.locator(".version .line[data-state=done]")).to_have_count(3)
    await page.click("#tab-clone")
    await offer(page, recording)
    await state(page, "done", "#clone-line")
    await page.click("#tab-longtext")
    await page.fill("#long-text", CHAPTER)
    await page.click("#long-play")
    await page.wait_for_selector("#long-download:not([disabled])")


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("desktop", {}),
        ("phone", {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2}),
        ("dark", {"color_scheme": "dark"}),
    ],
)
async def test_screenshots(real: Stage[Engine], name: str, context: dict[str, Any]) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    async with real.engine.stream(SpeechRequest(text=RECORDED, seed=1)) as stream:
        recording = wav(await stream.samples())
    async with real.page(**context) as page:
        await fill(page, recording)
        for tab in ("speak", "compare", "clone", "longtext", "status"):
            await page.click(f"#tab-{tab}")
            if tab == "status":
                await page.wait_for_selector("#status-ttfa svg")
            if tab == "speak":  # in the midst of it
                await page.click("#speak-play")
                await page.wait_for_function("tontaube.player.position > 2.5")
                await page.click("#speak-play")
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= context.get("viewport", {"width": 1200})["width"], f"{tab} is too wide"
            await page.screenshot(path=SCREENSHOTS / f"{tab}-{name}.png", full_page=True)
