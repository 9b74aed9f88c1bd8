"""LiveKit Agents' OpenAI speech against a running server: ``python say_livekit.py [address]``.

``tts-1`` makes it read audio, ``gpt-4o-mini-tts`` events. Needs ``livekit-plugins-openai``.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version

from livekit.agents.utils import http_context
from livekit.plugins import openai
from running import TEXT, Watch, address, seconds_until_free


async def say(url: str, model: str, response_format: str) -> str:
    speech = openai.TTS(
        base_url=f"{url}/v1",
        api_key="unused",
        model=model,
        voice="ash",
        response_format=response_format,
    )
    watch = Watch()
    async with speech.synthesize(TEXT) as stream:
        async for event in stream:
            watch.heard(event.frame.samples_per_channel)
            rate = event.frame.sample_rate
    told = watch.told(watch.size / rate)
    async with speech.synthesize(TEXT) as stream:
        async for _ in stream:
            break  # the agent is interrupted
    free = await asyncio.to_thread(seconds_until_free, url)
    await speech.aclose()
    return f"{told}; interrupted: free {free:.2f} s later"


async def main(url: str) -> None:
    plugin, client = version("livekit-plugins-openai"), version("openai")
    print(f"livekit-plugins-openai {plugin} (openai {client}):")
    async with http_context.open():
        for model, kind, response_format in (
            ("tts-1", "audio", "mp3"),
            ("gpt-4o-mini-tts", "events", "pcm"),
        ):
            told = await say(url, model, response_format)
            print(f"  {model} ({kind}, {response_format}): {told}")


if __name__ == "__main__":
    asyncio.run(main(address()))
