"""A voice agent on the WebSocket: an LLM's words in, audio out, an interruption:
``python talk.py [address]``. Needs ``websockets``.

The first answer is heard to its end. During the second the listener speaks up: the agent cancels,
says how much was played, and learns how much of the text has been heard.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Any

from running import TEXT, Watch, address, seconds_until_free
from websockets.asyncio.client import ClientConnection, connect

RATE = 24_000


async def llm() -> AsyncIterator[str]:
    """Its tokens, as they are written: twenty a second."""
    for start in range(0, len(TEXT), 4):
        yield TEXT[start : start + 4]
        await asyncio.sleep(0.05)


async def send(socket: ClientConnection, kind: str, **fields: object) -> None:
    await socket.send(json.dumps({"type": kind, **fields}))


async def dictate(socket: ClientConnection, context: str) -> None:
    """Pass on each token at once; the server decides when there is enough to speak."""
    await send(socket, "start", context=context, voice="alloy")
    async for token in llm():
        await send(socket, "append", context=context, text=token)
    await send(socket, "end", context=context)


async def listen(socket: ClientConnection, watch: Watch) -> AsyncIterator[dict[str, Any]]:
    """Messages until the context is over; an ``audio`` message's PCM is the frame after it."""
    async for frame in socket:
        message = json.loads(frame)
        if message["type"] == "audio":
            watch.heard(len(await socket.recv(decode=False)) // 2)
        if message["type"] == "error":
            raise SystemExit(message["error"]["message"])
        yield message
        if message["type"] in ("done", "cancelled"):
            return


async def heard_to_the_end(socket: ClientConnection) -> None:
    watch = Watch()
    writing = asyncio.create_task(dictate(socket, "answer"))
    captions: dict[int, str] = {}
    async for message in listen(socket, watch):
        if message["type"] == "audio":
            segment = message["segment"]
            captions[segment["index"]] = TEXT[segment["start"] : segment["end"]].strip()
    print(f"  {watch.told(watch.size / RATE)}")
    print(f"  captions: {list(captions.values())}")
    await writing
    print(f"  {message['type']}: {message['spoken']} of {len(TEXT)} characters")


async def interrupted(socket: ClientConnection, url: str) -> None:
    watch = Watch()
    writing = asyncio.create_task(dictate(socket, "other"))
    spoke_up = False
    async for message in listen(socket, watch):
        last = message
        if watch.size >= RATE and not spoke_up:
            spoke_up = True
            writing.cancel()  # the LLM stops as well
            await asyncio.gather(writing, return_exceptions=True)
            await send(socket, "cancel", context="other", played_samples=RATE)
    heard = TEXT[: last["spoken"]["characters"]]
    free = await asyncio.to_thread(seconds_until_free, url)
    print(f"  barge-in after 1 s of the {watch.size / RATE:.2f} s received: {last['type']}")
    print(f"  heard: {heard!r}; the server was free {free:.2f} s later")


async def main(url: str) -> None:
    print(f"WebSocket (websockets {version('websockets')}):")
    async with connect(f"{url.replace('http', 'ws', 1)}/v1/audio/speech/stream") as socket:
        await heard_to_the_end(socket)
        await interrupted(socket, url)


if __name__ == "__main__":
    asyncio.run(main(address()))
