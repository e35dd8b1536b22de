"""When an incident began: a scan over a stretch, and the window from which on the evidence for its sensors adds up."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eccaht.arrays import Array
from eccaht.incident.judge import Judge, Judgement
from eccaht.incident.seen import Seen
from eccaht.model.normal import FEWEST_BEFORE

SCANNED = (5, 20, 60)  # lengths of the stretches that are looked at
LONGEST = 200  # windows of an incident that are judged: later ones know less of the level before
_AT_ONCE = 64  # stretches that are looked at together
_STEPS = 4  # starts of stretches within a length
_INTERVAL = 3.0  # nats: onsets within so much evidence of the best one are not excluded


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


def window_evidence(judgement: Judgement, usual: Array) -> Array:
    """What each window of the stretch says for the named sensors, (L,), less what sound ones are used to.

    usual: the evidence that a sound sensor reaches by its own past and by the others in a window.
    """
    evidence, named = judgement.evidence, [k for k in judgement.named if k not in judgement.standing]
    by_own = [k for k in named if judgement.views[k] == "own"]
    own = 0.5 * np.nansum(np.square(evidence.innovations[:, by_own]), axis=1)
    course = np.minimum(own, 50.0 * max(len(by_own), 1)) - usual[0] * len(by_own)
    others = [k for k in named if k not in by_own]
    if others:
        course = course + evidence.course(tuple(by_own), tuple(named)) - usual[1] * len(others)
    return np.asarray(course)


def onset_of(judgement: Judgement, usual: Array, start: int) -> tuple[Onset, Array]:
    """The onset within a judged stretch that begins at window `start`, and the evidence of each of its windows."""
    course = window_evidence(judgement, usual)
    if not len(course):
        return Onset(start, start, start), course
    remaining = np.cumsum(course[::-1])[::-1]  # evidence of an onset at each window
    best = int(remaining.argmax())
    near = np.flatnonzero(remaining >= remaining[best] - _INTERVAL)
    return Onset(start + best, start + int(near.min()), start + int(near.max())), course
