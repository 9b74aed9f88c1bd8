"""The page and habits of people, in a real browser: language, waiting, refusals, addresses that
have no audio worklet, and nothing that jumps.

Needs Debian's ``chromium``.
"""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser import (
    MARKS,
    Stage,
    heard,
    open_stage,  # noqa: F401 - a fixture
    state,
)
from tests.pages import PageEngine
from tontaube.errors import Busy, GenerationFailed

pytestmark = MARKS


async def test_german(stage: Stage[PageEngine]) -> None:
    async with stage.page(locale="de-AT") as page:
        assert await page.inner_text("#tab-compare") == "Vergleichen"
        assert await page.get_attribute("#tontaube", "lang") == "de"
        assert (await page.input_value("#speak-text")).startswith("Auf der Fensterbank")
        assert await page.input_value("#speak-language") == "german"
        stage.engine.refuse = GenerationFailed("no try passed the checks")
        await page.keyboard.press("Control+Enter")
        await state(page, "failed")
        line = page.locator("#speak-line")
        await expect(line).to_contain_text("Das Modell hat diesen Text nicht richtig gesprochen.")
        await expect(line).to_contain_text("Versuchen Sie andere Worte")
        stage.engine.refuse = None
        await page.fill("#speak-text", "?!")
        await page.keyboard.press("Control+Enter")
        await expect(line).to_contain_text("Dieser Text lässt sich nicht sprechen")


async def test_nothing_jumps(stage: Stage[PageEngine]) -> None:
    """Chromium adds up what moves without being moved; what follows a click counts here too."""
    watch = """() => { window.jumps = 0; new PerformanceObserver(list => {
        for (const entry of list.getEntries()) window.jumps += entry.value;
    }).observe({type: "layout-shift"}); }"""
    async with stage.page(viewport={"width": 390, "height": 844}) as page:
        await page.evaluate(watch)
        await page.click("#speak-play")
        await state(page, "done")
        await page.click("#tab-status")
        await page.wait_for_selector("#status-ttfa svg")
        assert await page.evaluate("window.jumps") < 0.1


async def test_without_an_audio_worklet(stage: Stage[PageEngine]) -> None:
    """Pages that are neither https nor localhost have none."""
    async with stage.page() as page:
        hide = (
            "Object.defineProperty(BaseAudioContext.prototype, 'audioWorklet', {value: undefined})"
        )
        await page.evaluate(hide)
        await page.fill("#speak-text", "Say this.")
        await page.click("#speak-play")
        await heard(page, 9 * 1_200)
        await page.wait_for_function("tontaube.player.state === 'idle'")


async def test_waiting_and_refusals_are_explained(stage: Stage[PageEngine]) -> None:
    async with stage.page() as page:
        await page.fill("#speak-text", "A word.")
        stage.engine.position = 3
        await page.keyboard.press("Control+Enter")
        await state(page, "line")
        await expect(page.locator("#speak-line")).to_have_text("You are 3rd in line.")
        stage.engine.position = 0
        await state(page, "done")
        stage.engine.refuse = Busy("all places are taken", 1)
        await page.fill("#speak-text", "Another word.")
        await page.keyboard.press("Control+Enter")
        await state(page, "full")
        stage.engine.refuse = None  # and it tries again
        await state(page, "done")
        stage.engine.refuse = GenerationFailed("no try passed the checks")
        await page.fill("#speak-text", "A third word.")
        await page.keyboard.press("Control+Enter")
        await state(page, "failed")
        line = page.locator("#speak-line")
        await expect(line).to_contain_text("no try passed the checks")
        await expect(line).to_contain_text("Try other words")
