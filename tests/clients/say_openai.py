"""The OpenAI package against a running server: ``python say_openai.py [address]``.

Whole, streamed to a file, streamed asynchronously, as events, and left. Needs ``openai``.
"""

from __future__ import annotations

import asyncio
import base64
import json
import tempfile
from importlib.metadata import version
from pathlib import Path

import openai
from running import TEXT, Watch, address, seconds_until_free


def synchronous(client: openai.OpenAI) -> None:
    watch = Watch()
    answer = client.audio.speech.create(
        model="tts-1", voice="nova", input=TEXT, response_format="pcm"
    )
    watch.heard(len(answer.content))
    print(f"  create: {watch.size / 48_000:.2f} s in {watch.passed:.2f} s")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "speech.opus")
        with client.audio.speech.with_streaming_response.create(
            model="gpt-4o-mini-tts",
            voice="coral",
            input=TEXT,
            instructions="Speak like an audiobook.",
            response_format="opus",
        ) as stream:
            stream.stream_to_file(path)
        print(f"  stream_to_file: {path.stat().st_size} bytes of {path.suffix[1:]}")


async def asynchronous(client: openai.AsyncOpenAI, url: str) -> None:
    create = client.audio.speech.with_streaming_response.create
    watch = Watch()
    async with create(model="tts-1", voice="alloy", input=TEXT, response_format="pcm") as stream:
        async for piece in stream.iter_bytes():
            watch.heard(len(piece))
    print(f"  asynchronous: {watch.told(watch.size / 48_000)}")

    watch.start()
    async with create(
        model="tts-1", voice="alloy", input=TEXT, response_format="pcm", stream_format="sse"
    ) as stream:
        async for line in stream.iter_lines():
            if line:
                event = json.loads(line.removeprefix("data: "))
                watch.heard(len(base64.b64decode(event.get("audio", ""))))
    print(f"  events: {watch.told(watch.size / 48_000)}; last: {event}")

    async with create(model="tts-1", voice="alloy", input=TEXT, response_format="pcm") as stream:
        async for _ in stream.iter_bytes():
            break
    free = await asyncio.to_thread(seconds_until_free, url)
    print(f"  left: the server was free {free:.2f} s later")


async def main(url: str) -> None:
    print(f"openai {version('openai')}:")
    with openai.OpenAI(base_url=f"{url}/v1", api_key="unused") as client:
        synchronous(client)
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused") as client:
        await asynchronous(client, url)


if __name__ == "__main__":
    asyncio.run(main(address()))
