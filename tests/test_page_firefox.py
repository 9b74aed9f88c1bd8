"""The page in Firefox: heard while it is made, stopped by a key, compared, and no complaint.

Needs Debian's ``firefox-esr`` and ``pulseaudio``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api_fakes import serving
from tests.browser import LONG, QUICK
from tests.firefox import FIREFOX, PULSE, running
from tests.pages import PageEngine, eventually

ESCAPE, CONTROL, ENTER, RIGHT, END = "\ue00c", "\ue009", "\ue007", "\ue014", "\ue010"

pytestmark = [
    pytest.mark.skipif(FIREFOX is None or PULSE is None, reason="needs firefox-esr, pulseaudio"),
    pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning"),  # in Gradio
]


async def test_firefox(tmp_path: Path) -> None:
    engine = PageEngine(QUICK)
    async with serving(engine, ui=True) as url, running(tmp_path) as firefox:
        await firefox.open(f"{url}/")
        assert await firefox.evaluate("document.querySelector('#tab-speak').textContent") == "Speak"

        engine.hold_after = 5
        await firefox.evaluate(f"(document.querySelector('#speak-text').value = {LONG!r}, 1)")
        await firefox.click("#speak-text")
        await firefox.press(CONTROL, ENTER)
        await firefox.until("tontaube.player.rendered >= 4800")
        assert engine.open == 1  # still being made
        line = "document.querySelector('#speak-line').textContent"
        assert "Segment 1 of 1" in await firefox.evaluate(line)
        await firefox.press(ESCAPE)
        await eventually(lambda: engine.open == 0)
        engine.hold_after = None
        assert "Stopped after" in await firefox.evaluate(line)

        await firefox.evaluate("(document.querySelector('#speak-text').value = 'Say this.', 1)")
        rendered = await firefox.evaluate("tontaube.player.rendered")
        await firefox.click("#speak-play")
        await firefox.until("document.querySelector('#speak-line').dataset.state === 'done'")
        await firefox.until("tontaube.player.state === 'idle'")
        assert await firefox.evaluate("tontaube.player.rendered") - rendered == 9 * 1_200

        await firefox.click("#tab-speak")
        await firefox.press(END)
        assert await firefox.evaluate("document.activeElement.id") == "tab-status"
        await firefox.press(RIGHT)  # round to the first tab
        await firefox.press(RIGHT)
        assert await firefox.evaluate("document.activeElement.id") == "tab-compare"
        await firefox.click("#compare-go")
        done = "document.querySelectorAll('.version .line[data-state=done]').length"
        await firefox.until(f"{done} === document.querySelectorAll('.version').length")
        await firefox.press("b")
        await firefox.until("document.querySelectorAll('.version')[1].matches('.sounding')")
        await firefox.evaluate("console.warn('heard')")  # so complaints do arrive, and this alone
        await eventually(lambda: bool(firefox.complaints))
        assert firefox.complaints == ["heard"]
