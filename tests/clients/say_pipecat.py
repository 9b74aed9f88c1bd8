"""Pipecat's OpenAI speech service against a running server: ``python say_pipecat.py [address]``.

Needs ``pipecat-ai[openai]`` in an environment of its own.
"""

from __future__ import annotations

import asyncio
import sys

from pipecat.frames.frames import EndFrame, ErrorFrame, Frame, TTSAudioRawFrame, TTSSpeakFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.tts import OpenAITTSService
from pipecat.workers.runner import WorkerRunner

TEXT = "Hello from a Pipecat bot, which speaks while it thinks."


class Listener(FrameProcessor):
    """Counts the samples that arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.samples = 0
        self.errors: list[str] = []

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame):
            self.samples += len(frame.audio) // 2
        if isinstance(frame, ErrorFrame):
            self.errors.append(frame.error)
        await self.push_frame(frame, direction)


async def main(address: str) -> None:
    speech = OpenAITTSService(
        base_url=f"{address}/v1",
        api_key="unused",
        settings=OpenAITTSService.Settings(voice="alloy", model="gpt-4o-mini-tts"),
    )
    listener = Listener()
    worker = PipelineWorker(Pipeline([speech, listener]))
    await worker.queue_frames([TTSSpeakFrame(TEXT), EndFrame()])
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()
    print(f"pipecat-ai: {listener.samples / 24_000:.2f} s, errors: {listener.errors}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"))
