"""Verdicts on C0, and the silences that are left out of the audio."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tontaube.audio.chunks import Chunker
from tontaube.audio.silence import LeadingSilence
from tontaube.bundle import SamplingDefaults, Silence
from tontaube.stages.quality import Verdict, expected_frames, frame_cap, judge, judge_beginning
from tontaube.types import Samples, Segment

RULES = SamplingDefaults()
SILENCE = Silence(codes=(1, 2), more_codes=(3,))
TEXT = "a text of more than thirty characters"  # 37: 6..24 a second are 19.3..77 frames


def verdict(frames: list[int], text: str = TEXT, ended: bool = True) -> Verdict:
    return judge(frames, text, ended, RULES, SILENCE)


def test_verdicts() -> None:
    speech = list(range(10, 60))
    assert verdict(speech) is Verdict.PASSED
    assert verdict(speech[:12]) is Verdict.SHORT
    assert verdict(speech[:15]) is Verdict.WRONG_RATE
    assert verdict(speech + speech) is Verdict.WRONG_RATE
    assert verdict(speech, ended=False) is Verdict.CAPPED
    assert verdict([1, 2, 3] * 7 + speech[:29]) is Verdict.SILENT
    assert verdict([1, 2, 3] * 6 + speech[:32]) is Verdict.PASSED
    assert verdict(speech[:13], "Hi.") is Verdict.PASSED
    assert verdict(speech + [1] * 15) is Verdict.PASSED  # only the first 50 frames count


def test_a_single_word_may_have_pauses_around_it() -> None:
    assert verdict([1] * 8 + [20] * 8, "Hi.") is Verdict.PASSED
    assert verdict([1] * 14 + [20] * 2, "Hi.") is Verdict.SILENT


def test_little_can_be_said_of_a_beginning() -> None:
    assert judge_beginning([], RULES, SILENCE) is Verdict.PASSED
    assert judge_beginning([1] * 12, RULES, SILENCE) is Verdict.PASSED
    assert judge_beginning([1] * 40, RULES, SILENCE) is Verdict.SILENT


@given(st.integers(1, 350))
def test_the_cap_refuses_nothing_that_would_pass(length: int) -> None:
    text = "x" * length
    cap = frame_cap(text, RULES)
    assert RULES.min_frames < cap <= RULES.max_frames
    assert expected_frames(text) <= cap
    if length > RULES.rate_checked_above_characters and cap < RULES.max_frames:
        assert verdict([20] * (cap + 1), text) is Verdict.WRONG_RATE
    else:
        assert cap >= min(RULES.max_frames, 2 * 12.5)  # a word may take two seconds


# Leading silence ---------------------------------------------------------------------------------

RATE = 24_000


def noise(seconds: float, level: float, seed: int = 0) -> Samples:
    rng = np.random.default_rng(seed)
    return rng.normal(0, level, round(seconds * RATE)).astype(np.float32)


def trimmed(samples: Samples, cuts: list[int] | None = None) -> Samples:
    trim = LeadingSilence(RATE)
    pieces = [trim.push(piece) for piece in np.split(samples, sorted(cuts or []))]
    return np.concatenate([*pieces, trim.finish()])


def test_speech_is_kept_with_a_short_pad_and_its_pauses() -> None:
    speech = np.concatenate([noise(0.3, 0.1), noise(0.8, 1e-4), noise(0.3, 0.1)])
    whole = np.concatenate([noise(0.7, 1e-4), speech])
    result = trimmed(whole)
    assert 0.03 * RATE < len(result) - len(speech) < 0.08 * RATE
    np.testing.assert_array_equal(result, whole[-len(result) :])


def test_a_click_is_not_speech_and_quiet_audio_is_kept_whole() -> None:
    click = np.concatenate([noise(0.3, 1e-4), noise(0.01, 0.3), noise(0.3, 1e-4), noise(0.5, 0.1)])
    assert len(trimmed(click)) < 0.6 * RATE
    quiet = noise(2.0, 1e-4)
    np.testing.assert_array_equal(trimmed(quiet), quiet)
    long = np.concatenate([noise(6.0, 1e-4), noise(0.5, 0.1)])
    np.testing.assert_array_equal(trimmed(long), long)


@given(lead=st.floats(0, 1.5), cuts=st.lists(st.integers(0, 40_000), max_size=8))
def test_cuts_do_not_matter(lead: float, cuts: list[int]) -> None:
    samples = np.concatenate([noise(lead, 1e-4), noise(0.5, 0.1, seed=1)])
    cuts = [min(cut, len(samples)) for cut in cuts]
    np.testing.assert_array_equal(trimmed(samples), trimmed(samples, cuts))


# Chunks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [1.0, 1.5])
def test_chunks_belong_to_their_segments(speed: float) -> None:
    chunker = Chunker(RATE, speed=speed, trim=True)
    first, second = Segment(0, "One.", 0, 4, False), Segment(1, "Two.", 5, 9, True)
    chunker.expect(first, 0, 2 * RATE)
    chunks = chunker.push(np.concatenate([noise(0.5, 1e-4), noise(0.5, 0.1)]))
    assert [chunk.segment for chunk in chunks] == [first]
    assert 0 < chunks[0].text_end < 4
    chunker.expect(first, 0, 3 * RATE // 2)
    chunker.expect(second, 3 * RATE // 2, RATE)
    chunks += chunker.push(noise(1.5, 0.1))
    chunks += chunker.finish()
    assert {chunk.segment.index for chunk in chunks} == {0, 1}
    ends = [chunk.text_end for chunk in chunks]
    assert ends == sorted(ends) and ends[-1] == 9
    starts = [chunk.start for chunk in chunks]
    assert starts == [0, *np.cumsum([len(chunk.samples) for chunk in chunks])[:-1]]
    assert chunker.seconds(RATE) == pytest.approx((1 - 0.44) / speed, abs=0.02)
