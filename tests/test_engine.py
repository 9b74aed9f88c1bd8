"""The engine as its callers see it: streams, refusals, cancelling, dictation, status."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tests import fakes
from tontaube.assembly import Machinery
from tontaube.bundle import Bundle, Description
from tontaube.config import Settings
from tontaube.engine import Engine
from tontaube.errors import (
    Busy,
    DeadlineExceeded,
    GenerationFailed,
    InvalidRequest,
    TontaubeError,
    Unavailable,
    UnknownVoice,
)
from tontaube.types import Codes, Samples, SpeechRequest, StageJob

TEXT = "One two three four, five six seven. Eight nine ten eleven twelve! Thirteen, fourteen it is."
REQUEST = SpeechRequest(text=TEXT, seed=7)


@dataclass
class Rig:
    """An engine over fakes, and the fakes."""

    engine: Engine
    stages: list[fakes.FakeStage]

    def idle(self) -> bool:
        """Nothing is held anywhere."""
        status = self.engine.status()
        held = status.active_streams + status.queue_length
        return held == 0 and all(m.waiting + m.running == 0 for m in status.modules)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110  (the worker's thread sets no event)
                await asyncio.sleep(0.001)


@asynccontextmanager
async def rig(
    tmp_path: Path,
    *,
    about: Description | None = None,
    length: Callable[[StageJob], int] = fakes.by_text,
    new_decoder: Callable[[], fakes.FakeDecoder] = fakes.FakeDecoder,
    **settings: object,
) -> AsyncIterator[Rig]:
    grammar = fakes.grammar(about)
    stages = fakes.fake_stages(fakes.Clock())
    stages[0].length = length

    def encode(samples: Samples) -> Codes:
        return np.tile(np.arange(len(samples) // fakes.HOP) % 8, (4, 1))

    def read_reference(audio: bytes) -> Samples:
        return np.full(len(audio) * 1_920, 0.1, np.float32)

    machinery = Machinery(
        kind="fake",
        device="none",
        grammar=grammar,
        stages=stages,
        encode=encode,
        new_decoder=new_decoder,
        read_reference=read_reference,
    )
    chosen = Settings.model_validate({"data_dir": tmp_path, "warm_up": False} | settings)
    engine = Engine(Bundle(tmp_path, grammar.description), machinery, chosen)
    await engine.start()
    try:
        yield Rig(engine, stages)
    finally:
        await engine.close()


async def speak(engine: Engine, request: SpeechRequest = REQUEST) -> Samples:
    async with engine.stream(request) as stream:
        return await stream.samples()


async def test_a_stream_is_the_whole_in_pieces(tmp_path: Path) -> None:
    async with rig(tmp_path, phrase_cache_bytes=0) as r:
        async with r.engine.stream(REQUEST) as stream:
            chunks = [chunk async for chunk in stream]
        assert len(chunks) > 4
        joined = np.concatenate([chunk.samples for chunk in chunks])
        np.testing.assert_array_equal(joined, await speak(r.engine))
        assert stream.spoken().characters == len(TEXT)
        assert stream.spoken().samples == len(joined)
        assert stream.usage.input_tokens == sum(len(s.text) for s in stream.segments)
        assert stream.usage.output_tokens == 4 * len(joined) // fakes.HOP
        for segment in stream.segments:
            assert TEXT[segment.start : segment.end] == segment.text
        await r.until(r.idle)


async def test_many_streams_equal_each_alone(tmp_path: Path) -> None:
    requests = [replace(REQUEST, seed=seed, text=TEXT[seed:]) for seed in range(6)]
    async with rig(tmp_path, phrase_cache_bytes=0, max_streams=4) as r:
        alone = [await speak(r.engine, request) for request in requests]
        together = await asyncio.gather(*(speak(r.engine, request) for request in requests))
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, other)
        assert max(r.stages[0].batches) > 1
        await r.until(r.idle)


# Refusals ----------------------------------------------------------------------------------------

BAD = [
    ({"text": ""}, "text"),
    ({"text": " \n\t"}, "text"),
    ({"text": "🎉🎉"}, "text"),
    ({"text": "?!"}, "text"),
    ({"text": "x" * 40_001}, "text"),
    ({"voice": "../../etc/passwd"}, "voice"),
    ({"language": "klingon"}, "language"),
    ({"style": "shouting"}, "style"),
    ({"temperature": -0.1}, "temperature"),
    ({"temperature": float("nan")}, "temperature"),
    ({"acoustic_temperature": 9.0}, "acoustic_temperature"),
    ({"top_p": 0.0}, "top_p"),
    ({"top_k": -1}, "top_k"),
    ({"seed": -1}, "seed"),
    ({"seed": 2**63}, "seed"),
    ({"initial_seconds": 0.1}, "initial_seconds"),
    ({"speed": 0.1}, "speed"),
    ({"speed": float("inf")}, "speed"),
]


async def test_a_bad_value_is_refused_by_name_before_anything_is_queued(tmp_path: Path) -> None:
    async with rig(tmp_path) as r:
        for changes, field in BAD:
            with pytest.raises(InvalidRequest) as raised:
                async with r.engine.stream(replace(REQUEST, **changes)):
                    pass
            assert raised.value.field == field, changes
        with pytest.raises(UnknownVoice, match="anna"):
            r.engine.voices.get("nobody")
        assert r.idle() and not r.stages[0].jobs


async def test_language_by_label_or_code_and_the_voice_decides_otherwise(tmp_path: Path) -> None:
    async with rig(tmp_path) as r:
        for wanted, label in (("German", "german"), ("de-AT", "german"), ("en", "english")):
            async with r.engine.stream(replace(REQUEST, language=wanted)) as stream:
                assert stream.language == label
        async with r.engine.stream(replace(REQUEST, voice="Ben")) as stream:
            assert (stream.voice.id, stream.language, stream.style) == (
                "ben",
                "german",
                "conversational",
            )


# Leaving -----------------------------------------------------------------------------------------


async def test_leaving_at_any_moment_frees_everything(tmp_path: Path) -> None:
    """At first audio, between chunks, before anything; and cancelling the reader's task."""
    async with rig(tmp_path, phrase_cache_bytes=0) as r:
        for taken in (0, 1, 2, 5):
            async with r.engine.stream(REQUEST) as stream:
                iterator = aiter(stream)
                for _ in range(taken):
                    await anext(iterator)
            await r.until(r.idle)
        for delay in (0, 0.001, 0.003, 0.01, 0.03):
            task = asyncio.create_task(speak(r.engine))
            await asyncio.sleep(delay)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await r.until(r.idle)
        whole = await speak(r.engine)
        assert len(whole)


async def test_waiting_in_the_room_busy_and_leaving_it(tmp_path: Path) -> None:
    settings = {"max_streams": 1, "waiting_room": 2, "phrase_cache_bytes": 0}
    async with rig(tmp_path, ahead_seconds=0.5, **settings) as r:
        async with r.engine.stream(REQUEST) as first:  # it stalls: nobody reads
            async with r.engine.stream(REQUEST) as second, r.engine.stream(REQUEST) as third:
                assert [s.queue_position for s in (first, second, third)] == [0, 1, 2]
                assert r.engine.status().queue_length == 2
                with pytest.raises(Busy) as raised:
                    async with r.engine.stream(REQUEST):
                        pass
                assert raised.value.retry_after >= 1
                second.close()
                assert third.queue_position == 1
            assert r.engine.status().queue_length == 0
        await r.until(r.idle)
        assert len(await speak(r.engine))


async def test_a_wait_is_limited(tmp_path: Path) -> None:
    settings = {"max_streams": 1, "wait_timeout": 0.02, "ahead_seconds": 0.5}
    async with rig(tmp_path, phrase_cache_bytes=0, **settings) as r:
        async with r.engine.stream(REQUEST):
            with pytest.raises(DeadlineExceeded, match="no place"):
                await speak(r.engine)
        await r.until(r.idle)


async def test_a_reader_that_stalls_is_let_go_in_the_end(tmp_path: Path) -> None:
    settings = {"reader_timeout": 0.5, "ahead_seconds": 0.5, "phrase_cache_bytes": 0}
    async with rig(tmp_path, **settings) as r:
        async with r.engine.stream(REQUEST) as stalled:
            assert len(await speak_slowly(r.engine)) > 0
            await r.until(r.idle)
            with pytest.raises(DeadlineExceeded, match="not read"):
                await stalled.samples()


async def speak_slowly(engine: Engine) -> Samples:
    """Reads all the time, so that it is not held up by the one that stalls."""
    return await speak(engine)


# Failures ----------------------------------------------------------------------------------------


async def test_an_error_concerns_its_request_alone(tmp_path: Path) -> None:
    def length(job: StageJob) -> int:  # one request never ends by itself
        return job.max_codes if len(job.input.ids) < 30 else fakes.by_text(job)

    async with rig(tmp_path, length=length, phrase_cache_bytes=0) as r:
        good = asyncio.create_task(speak(r.engine))
        with pytest.raises(GenerationFailed):
            await speak(r.engine, replace(REQUEST, text="Hi.", initial_seconds=6.0))
        assert len(await good)
        await r.until(r.idle)


async def test_a_crash_of_the_worker_fails_everybody_and_is_reported(tmp_path: Path) -> None:
    async with rig(tmp_path, phrase_cache_bytes=0) as r:
        r.stages[2].fail_at_step = 3
        results = await asyncio.gather(*(speak(r.engine) for _ in range(3)), return_exceptions=True)
        assert all(isinstance(result, Unavailable) for result in results)
        assert "cb2: MemoryError" in (r.engine.status().failure or "")
        with pytest.raises(Unavailable, match="cb2"):
            await speak(r.engine)
        await r.until(lambda: r.engine.status().active_streams == 0)


async def test_closing_ends_streams(tmp_path: Path) -> None:
    async with rig(tmp_path, ahead_seconds=0.5, phrase_cache_bytes=0) as r:
        async with r.engine.stream(REQUEST) as stream:
            await r.engine.close()
            with pytest.raises(TontaubeError):
                await stream.samples()


@pytest.mark.parametrize("inside", [1, 2, 3])
async def test_closing_ends_whoever_speaks_or_waits(
    tmp_path: Path, inside: int, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"ahead_seconds": 0.5, "phrase_cache_bytes": 0, "max_streams": inside}
    async with rig(tmp_path, **settings) as r, AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(r.engine.stream(REQUEST)) for _ in range(6)]
        assert r.engine.status().queue_length == 6 - inside
        async for _ in streams[0]:
            break  # held up by a reader that takes no more
        await r.engine.close()
        assert r.idle()
        for stream in streams:
            with pytest.raises(Unavailable, match="closed"):
                async with asyncio.timeout(20):
                    await stream.samples()
        with pytest.raises(Unavailable, match="closed"):
            await speak(r.engine)
    gc.collect()  # a task that was left behind complains when it is collected
    assert not caplog.records


# Dictation ---------------------------------------------------------------------------------------


async def pieces(*texts: str) -> AsyncIterator[str]:
    for text in texts:
        await asyncio.sleep(0.005)
        yield text


async def test_dictated_text_is_spoken_as_it_comes(tmp_path: Path) -> None:
    async with rig(tmp_path) as r:
        text = pieces("Well, ", "this is the first thing. ", "And this is the last one.")
        async with r.engine.stream(replace(REQUEST, text=""), text) as stream:
            chunks = [chunk async for chunk in stream]
        assert [segment.text for segment in stream.segments] == [
            "Well,",
            "this is the first thing.",
            "And this is the last one.",
        ]
        whole = "Well, this is the first thing. And this is the last one."
        for segment in stream.segments:
            assert whole[segment.start : segment.end] == segment.text
        assert {chunk.segment.index for chunk in chunks} == {0, 1, 2}
        await r.until(r.idle)


async def test_dictation_that_breaks_off_or_says_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[str]:
        yield "This much was said. "
        raise ConnectionError("gone")

    async with rig(tmp_path) as r:
        for text, error in ((pieces(), InvalidRequest), (broken(), TontaubeError)):
            with pytest.raises(error):
                async with r.engine.stream(replace(REQUEST, text=""), text) as stream:
                    await stream.samples()
        await r.until(r.idle)


async def test_dictation_that_falls_silent(tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[str]:
        yield "This much was said. "
        await asyncio.Event().wait()

    async with rig(tmp_path, text_timeout=0.05) as r:
        with pytest.raises(DeadlineExceeded, match="no more text"):
            async with r.engine.stream(replace(REQUEST, text=""), endless()) as stream:
                await stream.samples()
        await r.until(r.idle)


# Phrases -----------------------------------------------------------------------------------------


async def test_a_deterministic_phrase_is_kept(tmp_path: Path) -> None:
    async with rig(tmp_path) as r:
        first = await speak(r.engine)
        jobs = len(r.stages[0].jobs)
        async with r.engine.stream(REQUEST) as stream:
            again = await stream.samples()
        assert len(r.stages[0].jobs) == jobs
        np.testing.assert_array_equal(first, again)
        assert stream.spoken().characters == len(TEXT) and stream.usage.output_tokens > 0
        await speak(r.engine, replace(REQUEST, seed=8))
        await speak(r.engine, replace(REQUEST, voice="ben"))
        await speak(r.engine, replace(REQUEST, seed=None))
        await speak(r.engine, replace(REQUEST, seed=None))
        status = r.engine.status()
        assert (status.phrase_hits, status.phrase_misses) == (1, 3)
        assert len(r.stages[0].jobs) > 4 * jobs


async def test_warm_up_makes_it_ready(tmp_path: Path) -> None:
    async with rig(tmp_path, warm_up=True) as r:
        assert not r.engine.ready
        await r.engine.warm_up()
        assert r.engine.ready and r.stages[3].jobs
        assert r.engine.status().emitted_seconds > 0


async def test_a_request_goes_on_where_another_ended(tmp_path: Path) -> None:
    async with rig(tmp_path) as r:
        async with r.engine.stream(replace(REQUEST, text="One two three.")) as stream:
            await stream.samples()
        before = stream.continuation
        assert before is not None and before.text == "One two three."
        frames = before.codes.shape[1]
        request = replace(REQUEST, text="Four five six. Seven.", continues=before)
        plain = await speak(r.engine, replace(request, continues=None))
        jobs = [len(stage.jobs) for stage in r.stages]
        async with r.engine.stream(request) as stream:
            after = await stream.samples()
        assert [segment.index for segment in stream.segments] == [1]
        first = [stage.jobs[count] for stage, count in zip(r.stages, jobs, strict=True)]
        vocabularies = fakes.grammar().vocabularies
        for stage, job in enumerate(first):  # each sees the codes of before, and both markers
            ids, own = list(job.input.ids), vocabularies[stage]
            codes = list(own.code_ids(0, before.codes[0]))
            start = ids.index(own.pad) + 1
            assert ids[start : start + frames] == codes
            assert ids[start + frames] == own.audio_split and own.text_split in ids
        assert not np.array_equal(plain, after)
        for codes in (before.codes[:3], before.codes[:, :0], before.codes + 10_000):
            with pytest.raises(InvalidRequest) as raised:
                await speak(r.engine, replace(request, continues=replace(before, codes=codes)))
            assert raised.value.field == "continues"
        await r.until(r.idle)
