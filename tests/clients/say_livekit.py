"""LiveKit Agents' OpenAI speech against a running server: ``python say_livekit.py [address]``.

Needs ``livekit-plugins-openai`` in an environment of its own.
"""

from __future__ import annotations

import asyncio
import sys

from livekit.agents.utils import http_context
from livekit.plugins import openai

TEXT = "Hello from a LiveKit agent, which speaks while it thinks."


async def main(address: str) -> None:
    async with http_context.open():
        speech = openai.TTS(
            base_url=f"{address}/v1", api_key="unused", model="tts-1", voice="alloy"
        )
        samples, rate = 0, 1
        async with speech.synthesize(TEXT) as stream:
            async for event in stream:
                samples += event.frame.samples_per_channel
                rate = event.frame.sample_rate
        await speech.aclose()
    print(f"livekit-plugins-openai: {samples / rate:.2f} s at {rate} Hz")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"))
