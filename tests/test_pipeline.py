"""One request: its codes, pieces, retries and chunks, over stages that need no model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import fakes
from tontaube.errors import GenerationFailed
from tontaube.pipeline import Delivery, Speech, in_order
from tontaube.stages.ports import Decoder
from tontaube.text.segments import split
from tontaube.types import AudioChunk, Codes, Samples, StageJob

TEXT = "One two three four, five six seven. Eight nine ten eleven twelve! Thirteen, fourteen it is."


class Run:
    """A job that a ``Direct`` steps; as the scheduler's."""

    def __init__(self, module: fakes.FakeStage, job: StageJob, at: float) -> None:
        self.at = at
        self.codes: list[int] = []
        self.finish: str | None = None
        self.closed = False
        self._module = module
        self._job = job
        module.add(job)

    async def until(self, count: int | None = None) -> bool:
        await asyncio.sleep(0)
        while self.finish is None and (count is None or len(self.codes) < count):
            for output in self._module.step():
                assert output.job_id == self._job.id
                self.codes += output.codes
                self.finish = output.finish
        return self.finish is not None

    def close(self) -> None:
        self.closed = True
        self._module.abort(self._job.id)


@dataclass
class Direct:
    """``Models`` without a scheduler: every stage has a module for each job."""

    length: Callable[[StageJob], int] = fakes.by_text
    hiccups: int = 0
    runs: list[Run] = field(default_factory=list)
    jobs: dict[str, StageJob] = field(default_factory=dict)
    chunks: list[AudioChunk] = field(default_factory=list)

    def run(self, stage: int, job: StageJob, at: float) -> Run:
        assert job.id not in self.jobs
        self.jobs[job.id] = job
        module = fakes.FakeStage(semantic=stage == 0, length=self.length)
        self.runs.append(Run(module, job, at))
        return self.runs[-1]

    async def decode(self, decoder: Decoder, codes: Codes | None, at: float) -> Samples:
        for _ in range(self.hiccups):
            await asyncio.sleep(0)
        return decoder.finish() if codes is None else decoder.push(codes)

    async def emit(self, chunk: AudioChunk) -> None:
        self.chunks.append(chunk)

    @property
    def samples(self) -> Samples:
        return np.concatenate([chunk.samples for chunk in self.chunks])


class Recorder(fakes.FakeDecoder):
    """Keeps the codes it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.codes: list[Codes] = []

    def push(self, codes: Codes) -> Samples:
        self.codes.append(codes)
        return super().push(codes)


GRAMMAR = fakes.grammar()


async def speak(
    models: Direct, text: str = TEXT, *, seed: int = 0, initial: int = 10, speed: float = 1.0
) -> Codes:
    """The codes [4, T] that were decoded."""
    decoder = Recorder()
    delivery = Delivery(initial_frames=initial, growth=1.5, max_frames=24, speed=speed)
    speech = Speech("s", fakes.reading(GRAMMAR, seed), delivery, lambda: decoder)
    segments = tuple(split(text, GRAMMAR.description.segmentation))
    await speech.speak(in_order(segments), models)
    assert speech.frames == sum(piece.shape[1] for piece in decoder.codes)
    return np.concatenate(decoder.codes, axis=1)


async def test_a_text_becomes_audio_in_order() -> None:
    models = Direct()
    codes = await speak(models)
    assert codes[0, 0] == fakes.ONSET
    np.testing.assert_array_equal(models.samples, fakes.audio_of(codes))
    starts = [chunk.start for chunk in models.chunks]
    lengths = [len(chunk.samples) for chunk in models.chunks]
    assert starts == [0, *np.cumsum(lengths)[:-1]]
    assert [c.segment.index for c in models.chunks] == sorted(
        c.segment.index for c in models.chunks
    )
    assert {c.segment.index for c in models.chunks} == {0, 1, 2}
    ends = [chunk.text_end for chunk in models.chunks]
    assert ends == sorted(ends) and ends[-1] == len(TEXT)
    assert all(run.closed for run in models.runs)


async def test_trailing_silence_ends_the_codes() -> None:
    codes = await speak(Direct())
    np.testing.assert_array_equal(codes[:, -2:], [[3, 3], [0, 0], [0, 0], [0, 0]])


@given(
    seed=st.integers(0, 5),
    initial=st.integers(1, 60),
    hiccups=st.integers(0, 7),
    speed=st.sampled_from([1.0, 0.8, 2.0]),
)
@settings(max_examples=12, deadline=None)
def test_c0_depends_on_the_seed_alone(seed: int, initial: int, hiccups: int, speed: float) -> None:
    """Neither piece sizes nor timing nor speed change what CB0 is asked or answers."""
    plain = asyncio.run(speak(Direct(), seed=seed))
    other = asyncio.run(speak(Direct(hiccups=hiccups), seed=seed, initial=initial, speed=speed))
    np.testing.assert_array_equal(plain[0], other[0])


@given(hiccups=st.integers(0, 9), initial=st.integers(1, 60))
@settings(max_examples=12, deadline=None)
def test_all_codes_are_independent_of_timing(hiccups: int, initial: int) -> None:
    quick = asyncio.run(speak(Direct(), initial=initial))
    slow = asyncio.run(speak(Direct(hiccups=hiccups), initial=initial))
    np.testing.assert_array_equal(quick, slow)


async def test_pieces_grow_and_known_codes_are_given() -> None:
    models = Direct()
    await speak(models, initial=10)
    sizes = [job.max_codes for name, job in models.jobs.items() if name.split(".")[2] == "1"]
    first = [job.max_codes for name, job in models.jobs.items() if name.startswith("s.0.1.")]
    assert first[0] == 10
    assert all(size <= 24 for size in sizes)
    later = next(job for name, job in models.jobs.items() if name == "s.0.1.10")
    earlier = models.jobs["s.0.1.0"]
    assert len(later.input.ids) == len(earlier.input.ids) + later.max_codes + 10


async def test_speed_shortens_and_keeps_the_order() -> None:
    plain, fast = Direct(), Direct()
    await speak(plain)
    await speak(fast, speed=2.0)
    assert len(fast.samples) == round(len(plain.samples) / 2)
    starts = [chunk.start for chunk in fast.chunks]
    assert starts == [0, *np.cumsum([len(c.samples) for c in fast.chunks])[:-1]]


# Retries -----------------------------------------------------------------------------------------


def never_before(attempts: int) -> Callable[[StageJob], int]:
    """CB0 does not end by itself in the first ``attempts`` tries of each segment."""

    def length(job: StageJob) -> int:
        attempt = int(job.id.rsplit(".", 1)[1])
        return job.max_codes if attempt < attempts else fakes.by_text(job)

    return length


async def test_a_failed_try_is_repeated_with_more_bias_and_another_seed() -> None:
    models = Direct(length=never_before(1))
    await speak(models, "One two three.", initial=1000)
    first, second = models.jobs["s.0.0.0"], models.jobs["s.0.0.1"]
    assert first.input == second.input
    assert first.sampling.seed != second.sampling.seed
    assert second.bias[fakes.ONSET] < first.bias[fakes.ONSET] < 0
    assert all(run.closed for run in models.runs)


async def test_no_try_passes() -> None:
    models = Direct(length=never_before(99))
    with pytest.raises(GenerationFailed):
        await speak(models, "One two three.", initial=1000)
    assert len([name for name in models.jobs if name.startswith("s.0.0.")]) == 3
    assert not models.chunks
    assert all(run.closed for run in models.runs)


async def test_what_is_spoken_already_is_kept() -> None:
    """The first piece has left: a segment that never ends is cut by its cap, not repeated."""
    models = Direct(length=never_before(99))
    codes = await speak(models, "One two three.", initial=10)
    assert [name for name in models.jobs if name.startswith("s.0.0.")] == ["s.0.0.0"]
    assert codes.shape[1] == models.jobs["s.0.0.0"].max_codes + 1 + 2  # the onset, the silence


async def test_later_segments_are_judged_whole() -> None:
    """With as much speech before it as it will take, a segment waits for its verdict."""

    def length(job: StageJob) -> int:
        return job.max_codes if job.id == "s.2.0.0" else fakes.by_text(job)

    models = Direct(length=length)
    await speak(models, initial=10)
    assert "s.2.0.1" in models.jobs


# Failures ----------------------------------------------------------------------------------------


async def test_an_error_in_the_codec_ends_the_request_alone_and_frees_it() -> None:
    class Broken(fakes.FakeDecoder):
        def push(self, codes: Codes) -> Samples:
            raise MemoryError("no room")

    models = Direct()
    speech = Speech(
        "s",
        fakes.reading(GRAMMAR),
        Delivery(initial_frames=10, growth=1.5, max_frames=24),
        Broken,
    )
    segments = tuple(split(TEXT, GRAMMAR.description.segmentation))
    with pytest.raises(MemoryError, match="no room"):
        await speech.speak(in_order(segments), models)
    assert all(run.closed for run in models.runs)
