"""When an incident began: a scan over a stretch, and the window in which the named sensors change their course."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eccaht.arrays import Array
from eccaht.incident.changes import log_onsets
from eccaht.incident.judge import Judge, Judgement
from eccaht.incident.seen import Seen
from eccaht.model.normal import FEWEST_BEFORE

SCANNED = (5, 20, 60)  # lengths of the stretches that are looked at
LONGEST = 200  # windows of an incident that are judged: later ones know less of the level before
_AT_ONCE = 64  # stretches that are looked at together
_STEPS = 4  # starts of stretches within a length
CREDIBLE = 0.95  # of the interval of an onset


class Onset(NamedTuple):
    """The window where it began, and the first and the last one where it may have."""

    best: int
    first: int
    last: int


def scan(
    judge: Judge, values: Array, moments: Array, start: int, stop: int, progress: Callable[[float], object]
) -> tuple[int, float]:
    """Look at all of windows [start, stop): where the most unusual stretch begins, and by how much it passes.

    The promise of one alarm in 1 / alpha stretches is kept for all of it: the more stretches, the rarer each must be.
    """
    best, place = -np.inf, start
    for number, length in enumerate(SCANNED):
        begins = range(
            max(start, min(FEWEST_BEFORE, stop - 1)), max(stop - length, start) + 1, max(1, length // _STEPS)
        )
        looks = max(1.0, (stop - start) / length) * len(SCANNED)
        yardstick = judge.quiet.yardstick(length)
        threshold = yardstick.threshold(judge.alpha / looks)
        for done in range(0, len(begins), _AT_ONCE):
            some = begins[done : done + _AT_ONCE]
            seen = Seen.of([judge.evidence(values, moments, begin, min(begin + length, stop)) for begin in some])
            passed = yardstick.statistic(seen) - threshold
            if passed.max() > best:
                best, place = float(passed.max()), some[int(passed.argmax())]
            progress((number + done / len(begins)) / len(SCANNED))
    return place, best


def onset_of(judgement: Judgement, values: Array, start: int) -> Onset:
    """The onset within a judged stretch of the values, (T, K), that begins at window `start`.

    All onsets in the stretch are equally likely beforehand; the interval holds 95 % of what the windows leave of them.
    A sensor that stands still shows its onset exactly, which counts if it is among those or comes before them.
    """
    moving = [k for k in judgement.named if k not in judgement.standing]
    onsets = [_still_since(judgement, values, start)] if judgement.standing or not moving else []
    onsets += [_moved_since(judgement, moving, start)] if moving else []
    return onsets[0] if onsets[0].best <= onsets[-1].last else onsets[-1]


def _moved_since(judgement: Judgement, moving: list[int], start: int) -> Onset:
    """Since when these sensors deviate."""
    chances = np.exp(log_onsets(judgement, moving))
    order = np.argsort(-chances, kind="stable")
    likely = order[: 1 + int(np.searchsorted(np.cumsum(chances[order]), CREDIBLE * chances.sum()))]
    return Onset(start + int(order[0]), start + int(likely.min()), start + int(likely.max()))


def _still_since(judgement: Judgement, values: Array, start: int) -> Onset:
    """Since when the first of the sensors that stand still does: the first reading repeated, or the first missing."""
    stop = start + judgement.evidence.length
    since = []
    for k, what in judgement.standing.items():
        course = values[:stop, k]
        if what == "silent":
            since.append(start + int(np.isnan(course[start:]).argmax()))
        else:
            changes = np.flatnonzero(course != course[-1])
            since.append(int(changes.max(initial=-1)) + 2)  # the first that is repeated may still be sound
    onset = min(max(min(since, default=start), start), stop - 1)
    return Onset(onset, onset, onset)
