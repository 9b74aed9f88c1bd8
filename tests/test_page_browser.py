"""The page in a real browser: what is heard and when, what is freed, and what is said.

Needs Debian's ``chromium``.
"""

from __future__ import annotations

import asyncio
import re

import numpy as np
import pytest
from playwright.async_api import expect

from tests.api_fakes import Behaviour
from tests.browser import (
    CHAPTER,
    LONG,
    MARKS,
    PATIENCE,
    Stage,
    heard,
    offer,
    open_stage,  # noqa: F401 - fixtures
    player,
    state,
)
from tests.pages import PageEngine, eventually, murmur, wav

pytestmark = MARKS


# --- Speak


async def test_sound_before_the_end_and_a_stop_that_frees(stage: Stage[PageEngine]) -> None:
    stage.engine.hold_after = 5
    async with stage.page() as page:
        await page.fill("#speak-text", LONG)
        await page.click("#speak-play")
        await heard(page, 4_800)
        assert stage.engine.open == 1  # still being made
        await page.wait_for_function("tontaube.player.state === 'waiting'")  # for more
        await expect(page.locator("#speak-line")).to_contain_text("Segment 1 of 1")
        await expect(page.locator("#panel-speak .backdrop mark.heard")).to_contain_text("This")
        await page.keyboard.press("Escape")
        await eventually(lambda: stage.engine.open == 0)
        stage.engine.hold_after = None
        chunks = stage.engine.chunks
        await expect(page.locator("#speak-line")).to_contain_text("Stopped after")
        assert await player(page, "state") == "idle"
        await asyncio.sleep(0.3)
        assert stage.engine.chunks == chunks


async def test_a_whole_speech(stage: Stage[PageEngine]) -> None:
    async with stage.page() as page:
        await page.fill("#speak-text", "Say this, please.")
        await page.select_option("#speak-style", "audiobook")
        await page.click("#speak-play")
        await state(page, "done")
        request = stage.engine.requests[-1]
        assert (request.text, request.style) == ("Say this, please.", "audiobook")
        await page.wait_for_function("tontaube.player.state === 'idle'")
        assert await player(page, "rendered") == pytest.approx(17 * 0.05 * 24_000)
        assert await player(page, "underruns") == 0
        async with page.expect_download() as download:
            await page.click("#speak-wav")
        path = await (await download.value).path()
        assert path.stat().st_size == 44 + 2 * round(17 * 0.05 * 24_000)
        async with page.expect_download():
            await page.click("#speak-mp3")
        assert stage.engine.requests[-1].seed == request.seed  # exactly the same again
        for kind in ("curl", "python"):
            code = await page.text_content(f"#speak-{kind}") or ""
            assert f'"seed": {request.seed}' in code and "audiobook" in code
        opened = stage.engine.opened
        await page.click("#speak-play")  # it is there: nothing has to be made anew
        await heard(page, 17 * 1_200 + 1)
        assert stage.engine.opened == opened


async def test_pause_seek_and_keys(stage: Stage[PageEngine]) -> None:
    stage.engine.behaviour = Behaviour(pause=0.001, seconds_per_character=0.1)
    async with stage.page() as page:
        await page.fill("#speak-text", "Two hundred characters of speech. " * 6)
        await page.keyboard.press("Control+Enter")
        await state(page, "done")
        await heard(page)
        await page.click("#speak-play")
        await page.wait_for_function("tontaube.player.state === 'paused'")
        at = await player(page, "position")
        await page.focus("#speak-wave")
        await page.keyboard.press("ArrowRight")
        assert await player(page, "position") == pytest.approx(at + 2, abs=0.1)
        await page.keyboard.press("Home")
        assert await player(page, "position") == 0
        await page.click("#speak-play")
        await page.wait_for_function("tontaube.player.state === 'playing'")
        await page.keyboard.press("Escape")


async def test_a_link_brings_settings_back(stage: Stage[PageEngine]) -> None:
    async with stage.page() as page:
        await page.fill("#speak-text", "Shared words & signs?")
        await page.select_option("#speak-language", "german")
        await page.locator("#speak-more summary").click()
        await page.fill("#speak-seed", "42")
        await page.wait_for_function("location.hash.includes('seed=42')")
        link = page.url.removeprefix(f"{stage.url}/")
    async with stage.page(link) as page:
        for field, value in (
            ("text", "Shared words & signs?"),
            ("language", "german"),
            ("seed", "42"),
        ):  # the settings come once the voices are there
            await page.wait_for_function(
                "([name, value]) => document.getElementById(name).value === value",
                arg=[f"speak-{field}", value],
            )


# --- Compare


async def test_six_versions(stage: Stage[PageEngine]) -> None:
    stage.engine.behaviour = Behaviour(seconds_per_character=1.0)
    stage.engine.hold_after = 2
    async with stage.page("#compare") as page:
        await page.fill("#compare-text", "Which one is the best of these?")
        await page.click("[data-fill=temperature]")
        for _ in range(2):
            await page.click("#compare-add")
        await expect(page.locator("#compare-add")).to_be_disabled()
        await page.check("#compare-blind")
        await page.click("#compare-go")
        await page.wait_for_selector(".version.covered")
        await eventually(lambda: stage.engine.open >= 5)  # a browser has six lines to one server
        stage.engine.hold_after = None
        cards = page.locator(".version .line[data-state=done]")
        await expect(cards).to_have_count(6, timeout=PATIENCE)
        assert len({request.seed for request in stage.engine.requests[-6:]}) == 1
        await page.locator(".version .play").first.click()
        await heard(page, 4_800)
        await player(page, "seek(10)")  # so far in that nobody gets there from the start in time
        for key in "BCDEF":
            await page.locator("#compare-line").click()
            before = await player(page, "position")
            await page.keyboard.press(key)
            card = page.locator(".version").nth("ABCDEF".index(key))
            await expect(card).to_have_class(re.compile("sounding"))
            assert await player(page, "position") >= before >= 10
            await page.wait_for_function(f"tontaube.player.position > {before}")
        await page.keyboard.press("Space")
        await page.wait_for_function("tontaube.player.state === 'paused'")
        await page.locator(".version .vote").nth(2).click()
        await expect(page.locator(".version.covered")).to_have_count(0)
        await expect(page.locator("#votes-list li")).to_have_count(1)
        async with page.expect_download() as download:
            await page.click("#votes-csv")
        text = (await (await download.value).path()).read_text("utf-8")
        assert text.startswith("at,blind,best") and '"true"' in text and " | " in text


# --- Clone


async def test_silence_is_refused_in_the_right_words(stage: Stage[PageEngine]) -> None:
    async with stage.page("#clone") as page:
        await offer(page, wav(np.zeros(72_000, np.float32)))
        await state(page, "failed", "#clone-line")
        await expect(page.locator("#clone-line")).to_have_text(
            "The recording is silent. Check the microphone and record again."
        )
        await offer(page, b"no recording at all")
        await expect(page.locator("#clone-line")).to_contain_text("cannot be read as audio")


async def test_from_a_recording_to_a_voice(stage: Stage[PageEngine]) -> None:
    async with stage.page("#clone") as page:
        await page.click("#clone-hear")
        line = page.locator("#clone-state")
        await expect(line).to_have_text("Still needed: a recording, a name, consent.")
        await offer(page, wav(murmur(4)))
        await expect(page.locator("#clone-length")).to_have_text("4.0 s")
        await expect(page.locator("#clone-warnings")).to_contain_text("Short")
        await page.fill("#clone-name", "Berta")
        await page.check("#clone-consent")
        await page.click("#clone-hear")
        await heard(page)
        await page.wait_for_selector("#clone-discard:not([disabled])")
        await page.click("#clone-discard")
        await eventually(lambda: len(stage.engine.voices.list()) == 1)
        await page.click("#clone-hear")
        await page.wait_for_selector("#clone-save:not([disabled])")
        await page.click("#clone-save")
        await expect(line).to_have_text("Berta is now among the voices.")
        await expect(page.locator("#speak-voice option")).to_have_text(["Anna", "Berta"])
        delete = page.locator("#clone-voices button")
        await delete.click()
        await delete.click()
        await eventually(lambda: len(stage.engine.voices.list()) == 1)
        await expect(page.locator("#clone-none")).to_be_visible()


async def test_the_microphone(stage: Stage[PageEngine]) -> None:
    """The browser's own test tone is recorded."""
    async with stage.page("#clone") as page:
        await page.click("#clone-record")
        await expect(page.locator("#clone-line")).to_contain_text("0:02")
        await page.click("#clone-record")
        await state(page, "done", "#clone-line")
        await expect(page.locator("#clone-length")).not_to_have_text("–")


# --- Long text and Status


async def test_sections(stage: Stage[PageEngine]) -> None:
    stage.engine.hold_after = 2
    async with stage.page("#longtext") as page:
        await page.fill("#long-text", CHAPTER)
        await page.click("#long-play")
        rows = page.locator("#long-sections li")
        await expect(rows).to_have_count(3)
        await expect(rows.first).to_contain_text("Chapter one")
        await heard(page)
        await rows.nth(2).locator("button").click()  # jump: what is being made gives way
        await expect(rows.nth(2)).to_have_class("here")
        await page.click("#long-cancel")
        await eventually(lambda: stage.engine.open == 0)
        stage.engine.hold_after = None
        await rows.first.locator("button").click()
        await page.wait_for_selector("#long-download:not([disabled])")
        await expect(page.locator("#long-line")).to_contain_text("3 of 3 sections spoken")
        async with page.expect_download() as download:
            await page.click("#long-download")
        size = (await (await download.value).path()).stat().st_size
        assert size > 44 + 2 * 2 * 8_400  # the gaps alone


async def test_sections_of_a_text(stage: Stage[PageEngine]) -> None:
    async with stage.page() as page:
        split = "async text => (await import('/ui/files/sections.js')).split(text)"
        text = f"One\n\nTwo\n\nIt begins. {'It goes on! ' * 150}\n\n* * *\n\n\nThe end"
        sections = await page.evaluate(split, text)
        assert sections[0].startswith("One\n\nTwo\n\nIt begins.")
        assert sections[-1] == "The end" and len(sections) == 3
        assert max(map(len, sections)) <= 1_210
        words = " ".join(sections).split()
        assert words == text.replace("* * *", "").split()  # nothing is lost


async def test_status(stage: Stage[PageEngine]) -> None:
    async with stage.page("#status") as page:
        await expect(page.locator("#status-figures")).to_contain_text("fake-1")
        await expect(page.locator("#status-modules tr")).to_have_count(1)
        await page.click("#tab-speak")
        await page.fill("#speak-text", "Count me.")
        await page.click("#speak-play")
        await state(page, "done")
        await page.click("#tab-status")
        await expect(page.locator("#status-ttfa circle").last).to_be_visible()
        label = await page.get_attribute("#status-rtf svg", "aria-label")
        assert label is not None and "median" in label
