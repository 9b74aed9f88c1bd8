"""A Wyoming client, as Home Assistant is one, through wyoming-openai:
``python say_wyoming.py ADDRESS PROXY`` (``tcp://host:port``, where the proxy listens).

Needs ``wyoming``, which wyoming-openai brings along.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from importlib.metadata import version

from running import SENTENCES, TEXT, Watch, address, seconds_until_free
from wyoming.audio import AudioChunk, AudioStop
from wyoming.client import AsyncClient
from wyoming.event import Eventable
from wyoming.info import Describe, Info
from wyoming.tts import (
    Synthesize,
    SynthesizeChunk,
    SynthesizeStart,
    SynthesizeStop,
    SynthesizeStopped,
    SynthesizeVoice,
)


async def voices(proxy: str) -> list[str]:
    """What Home Assistant would offer."""
    async with AsyncClient.from_uri(proxy) as client:
        await client.write_event(Describe().event())
        while (event := await client.read_event()) is not None:
            if Info.is_type(event.type):
                programs = Info.from_event(event).tts
                return [voice.name for program in programs for voice in program.voices]
    raise SystemExit("the proxy described nothing")


async def say(proxy: str, messages: Iterable[Eventable], last: type[Eventable]) -> str:
    watch, rate = Watch(), 1
    async with AsyncClient.from_uri(proxy) as client:
        for message in messages:
            await client.write_event(message.event())
        while (event := await client.read_event()) is not None:
            if AudioChunk.is_type(event.type):
                chunk = AudioChunk.from_event(event)
                watch.heard(chunk.samples)
                rate = chunk.rate
            if last.is_type(event.type):
                break
    return watch.told(watch.size / rate)


async def leave(proxy: str, message: Eventable) -> None:
    """Hang up at the first audio."""
    async with AsyncClient.from_uri(proxy) as client:
        await client.write_event(message.event())
        while (event := await client.read_event()) is not None:
            if AudioChunk.is_type(event.type):
                return


async def main(url: str, proxy: str) -> None:
    known = await voices(proxy)
    print(f"wyoming-openai {version('wyoming-openai')} (openai {version('openai')}): {known}")
    voice = SynthesizeVoice(name=known[0])
    whole = Synthesize(TEXT, voice=voice)
    print(f"  synthesize: {await say(proxy, [whole], AudioStop)}")
    chunks = [SynthesizeChunk(sentence) for sentence in SENTENCES]
    messages = [SynthesizeStart(voice=voice), *chunks, SynthesizeStop()]
    print(f"  sentence by sentence: {await say(proxy, messages, SynthesizeStopped)}")
    await leave(proxy, whole)
    free = await asyncio.to_thread(seconds_until_free, url)
    print(f"  client left: the server was free {free:.2f} s later")


if __name__ == "__main__":
    asyncio.run(main(address(), sys.argv[2]))
