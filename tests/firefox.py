"""Firefox before the page, driven by WebDriver BiDi, which Debian's Firefox speaks by itself; and a
sound server that plays to nobody, because its audio graph rests where there is no device."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
PULSE = shutil.which("pulseaudio")
PATIENCE = 60.0  # seconds; the machine may be busy
PREFERENCES: dict[str, Any] = {
    "intl.accept_languages": "en-GB",
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
}


@dataclass
class Firefox:
    """One page of a running browser."""

    socket: ClientConnection
    complaints: list[str] = field(default_factory=list)
    _page: str = ""
    _numbers: Any = field(default_factory=itertools.count)
    _answers: dict[int, asyncio.Future[Any]] = field(default_factory=dict)

    async def listen(self) -> None:
        """Answers to who asked, warnings and errors of the console to the complaints."""
        async for words in self.socket:
            said = json.loads(words)
            if said["type"] == "event":
                entry = said["params"]
                if entry.get("level") in ("error", "warn"):
                    self.complaints.append(str(entry.get("text")))
            elif (waiting := self._answers.pop(said["id"], None)) and not waiting.done():
                if said["type"] == "error":
                    waiting.set_exception(RuntimeError(f"{said['error']}: {said['message']}"))
                else:
                    waiting.set_result(said["result"])

    async def command(self, method: str, **params: Any) -> Any:
        """One command of the protocol; its result."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        await self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        return await asyncio.wait_for(self._answers[number], PATIENCE)

    async def open(self, address: str) -> None:
        """Load a page and wait until it is ready."""
        await self.command("session.new", capabilities={})
        await self.command("session.subscribe", events=["log.entryAdded"])
        tree = await self.command("browsingContext.getTree")
        self._page = tree["contexts"][0]["context"]
        await self.command("browsingContext.navigate", context=self._page, url=address)
        await self.until("document.querySelector('#tontaube')?.dataset.state === 'ready'")

    async def evaluate(self, expression: str) -> Any:
        """A value of the page that JSON can hold."""
        told = await self.command(
            "script.evaluate",
            expression=f"JSON.stringify({expression}) ?? 'null'",
            target={"context": self._page},
            awaitPromise=False,
        )
        assert told["type"] == "success", told
        return json.loads(told["result"]["value"])

    async def until(self, condition: str) -> None:
        """Look again and again."""
        async with asyncio.timeout(PATIENCE):
            while not await self.evaluate(f"Boolean({condition})"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def press(self, *keys: str) -> None:
        """Keys held together, as a person presses them: WebDriver's code points or characters."""
        down = [{"type": "keyDown", "value": key} for key in keys]
        up = [{"type": "keyUp", "value": key} for key in reversed(keys)]
        source = {"type": "key", "id": "keyboard", "actions": [*down, *up]}
        await self.command("input.performActions", context=self._page, actions=[source])

    async def click(self, selector: str) -> None:
        """The left button in the middle of an element."""
        place = (
            f"(e => (e.scrollIntoView(), e = e.getBoundingClientRect(), "
            f"[e.x + e.width / 2, e.y + e.height / 2]))(document.querySelector({selector!r}))"
        )
        x, y = map(round, await self.evaluate(place))
        actions = [
            {"type": "pointerMove", "x": x, "y": y},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        source = {"type": "pointer", "id": "mouse", "actions": actions}
        await self.command("input.performActions", context=self._page, actions=[source])


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Firefox]:
    """A browser with a profile of its own below ``folder``."""
    assert FIREFOX is not None
    profile = folder / "profile"
    profile.mkdir()
    lines = [f'user_pref("{name}", {json.dumps(v)});\n' for name, v in PREFERENCES.items()]
    (profile / "user.js").write_text("".join(lines))
    async with _silent_sound(folder) as environment:
        browser = await asyncio.create_subprocess_exec(
            *(FIREFOX, "--headless", "--no-remote", "--remote-debugging-port=0"),
            *("--profile", str(profile), "about:blank"),
            stderr=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            env=environment,
        )
        try:
            address = await asyncio.wait_for(_address(browser), PATIENCE)
            async with connect(f"{address}/session", max_size=None) as socket:
                firefox = Firefox(socket)
                listening = asyncio.create_task(firefox.listen())
                yield firefox
                with suppress(Exception):  # it may be gone before it has answered
                    await firefox.command("browser.close")
                listening.cancel()
        finally:
            if browser.returncode is None:
                browser.terminate()
            await browser.wait()


async def _address(browser: asyncio.subprocess.Process) -> str:
    assert browser.stderr is not None
    async for line in browser.stderr:
        if found := re.search(r"BiDi listening on (ws://\S+)", line.decode()):
            return found[1]
    raise RuntimeError("Firefox ended")


@asynccontextmanager
async def _silent_sound(folder: Path) -> AsyncIterator[Mapping[str, str]]:
    """The environment in which a program finds a loudspeaker that is none."""
    assert PULSE is not None
    socket = folder / "pulse"
    environment = dict(os.environ) | {
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
        "PULSE_RUNTIME_PATH": str(folder),
        "PULSE_SERVER": f"unix:{socket}",
    }
    server = await asyncio.create_subprocess_exec(
        *(PULSE, "-n", "--daemonize=no", "--exit-idle-time=-1", "--disable-shm"),
        "--load=module-null-sink",
        f"--load=module-native-protocol-unix auth-anonymous=1 socket={socket}",
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            while not socket.exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.02)
        yield environment
    finally:
        server.terminate()
        await server.wait()
