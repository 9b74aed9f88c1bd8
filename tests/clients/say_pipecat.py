"""Pipecat's OpenAI speech service against a running server: ``python say_pipecat.py [address]``.

An LLM's words arrive one by one; the second answer is interrupted. Needs ``pipecat-ai[openai]``.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version

from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.tts import OpenAITTSService
from pipecat.workers.runner import WorkerRunner
from running import TEXT, Watch, address, seconds_until_free


class Listener(FrameProcessor):
    """Where the loudspeaker would be."""

    def __init__(self) -> None:
        super().__init__()
        self.watch = Watch()
        self.speaking, self.silent = asyncio.Event(), asyncio.Event()
        self.errors: list[str] = []

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame):
            self.watch.heard(len(frame.audio) // 2)
            self.speaking.set()
        if isinstance(frame, TTSStoppedFrame):
            self.silent.set()
        if isinstance(frame, ErrorFrame):
            self.errors.append(frame.error)
        await self.push_frame(frame, direction)


def answer() -> list[Frame]:
    """What an LLM service pushes."""
    words = [LLMTextFrame(f"{word} ") for word in TEXT.split()]
    return [LLMFullResponseStartFrame(), *words, LLMFullResponseEndFrame()]


async def converse(worker: PipelineWorker, listener: Listener, url: str) -> None:
    await worker.queue_frames(answer())
    await listener.silent.wait()
    told = listener.watch.told(listener.watch.size / 24_000)
    listener.speaking.clear()
    await worker.queue_frames(answer())
    await listener.speaking.wait()
    await worker.queue_frames([InterruptionFrame()])
    free = await asyncio.to_thread(seconds_until_free, url)
    await worker.queue_frames([EndFrame()])
    print(f"pipecat-ai {version('pipecat-ai')} (openai {version('openai')}): {told}; pcm")
    print(f"  interrupted: the server was free {free:.2f} s later; errors: {listener.errors}")


async def main(url: str) -> None:
    speech = OpenAITTSService(
        base_url=f"{url}/v1",
        api_key="unused",
        settings=OpenAITTSService.Settings(model="gpt-4o-mini-tts", voice="alloy"),
    )
    listener = Listener()
    worker = PipelineWorker(Pipeline([speech, listener]))
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(runner.run())
        group.create_task(converse(worker, listener, url))


if __name__ == "__main__":
    asyncio.run(main(address()))
