"""Is a segment's C0 speech of its text? Pure verdicts by the report's rules (contract, section 7).

While a segment is spoken before CB0 has written all of it, only ``judge_beginning`` can be asked
before its first audio leaves: it sees silence, but no wrong length and no speech that never ends.
Those are then only bounded, by ``frame_cap``. No verdict can tell whether the words are right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum

from tontaube.bundle import SamplingDefaults, Silence

FRAMES_PER_SECOND = 12.5
_EXPECTED_CHARACTERS_PER_SECOND = 14.0
_SHORT_TEXT_GRACE = 2.0  # seconds; a single word may be drawn out
_FEW_FRAMES = 25  # of which a larger share may be silent: pauses surround a single word


class Verdict(IntEnum):
    """From best to worst."""

    PASSED = 0
    WRONG_RATE = 1  # too many or too few characters a second
    CAPPED = 2  # it did not end by itself
    SILENT = 3
    SHORT = 4


def frame_cap(text: str, rules: SamplingDefaults) -> int:
    """The most frames this text may take: fewer than the rate check would refuse anyway."""
    seconds = len(text) / rules.min_characters_per_second
    if len(text) <= rules.rate_checked_above_characters:
        seconds += _SHORT_TEXT_GRACE
    cap = math.ceil(seconds * FRAMES_PER_SECOND) + 1
    return max(rules.min_frames + 1, min(rules.max_frames, cap))


def expected_frames(text: str) -> int:
    """A guess at the length of spoken text."""
    return math.ceil(len(text) / _EXPECTED_CHARACTERS_PER_SECOND * FRAMES_PER_SECOND)


def judge_beginning(frames: Sequence[int], rules: SamplingDefaults, silence: Silence) -> Verdict:
    """What can be said of the first ``frames`` while more are to come; nothing of a handful."""
    checked = frames[: rules.silence_checked_frames]
    if len(checked) < rules.min_frames:
        return Verdict.PASSED
    silent = {*silence.codes, *silence.more_codes}
    limit = rules.max_silence_ratio * (1 if len(checked) >= _FEW_FRAMES else 2)
    ratio = sum(code in silent for code in checked) / len(checked)
    return Verdict.SILENT if ratio > limit else Verdict.PASSED


def judge(
    frames: Sequence[int],
    text: str,
    ended: bool,
    rules: SamplingDefaults,
    silence: Silence,
) -> Verdict:
    """The verdict on a segment's complete C0; ``ended``: by itself, not by its cap."""
    if len(frames) < rules.min_frames:
        return Verdict.SHORT
    beginning = judge_beginning(frames, rules, silence)
    if beginning is not Verdict.PASSED:
        return beginning
    if not ended:
        return Verdict.CAPPED
    if len(text) > rules.rate_checked_above_characters:
        rate = len(text) / (len(frames) / FRAMES_PER_SECOND)
        if not rules.min_characters_per_second <= rate <= rules.max_characters_per_second:
            return Verdict.WRONG_RATE
    return Verdict.PASSED
