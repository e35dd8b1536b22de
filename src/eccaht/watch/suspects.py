"""Which sensors are wrong while an alarm goes on, in a bounded time a window.

`identify` searches the best set of a stretch anew, which takes as long as there are sensors that are wrong. A watch has
a window's time, and knows what it found a window ago: it adds the few sensors that now add most, beyond the bars of
`incident.quiet`, and drops those that no longer do. What each member adds to the others is known in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from eccaht.arrays import Array
from eccaht.incident.judge import CHANCE
from eccaht.incident.kinds import SPREADS, kind_of
from eccaht.incident.onset import CREDIBLE, Onset
from eccaht.incident.others import Free, Shifts
from eccaht.incident.quiet import PASSES, Quiet, Yardstick
from eccaht.incident.views import STEP_SPREAD, VIEWS, Evidence, recent_given, recent_spread
from eccaht.model.normal import Normal
from eccaht.watch.streams import Lookup

MOST = 12  # sensors that are named at most: with more it is the plant that is wrong
_AT_ONCE = 2  # sensors that join in a window
_LOOKS = 30  # at a set that goes on, in each of which a sound sensor could join
_JOINS = 2.0  # what a sensor must add beyond its bar to join, at least; it stays while it adds anything beyond it
_SIZES = np.array([1.0, 3.0, 10.0, 30.0])  # of a step, in standard deviations, for the onset
_SPREADS = np.array([2.0, 4.0, 8.0, 16.0])  # of any course, likewise
_SHOWN = 60  # windows that say of what kind a course is, evenly spaced
_TOLD = 3  # sensors that say when it began
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Suspects:
    """The sensors that are wrong in a stretch, the strongest first.

    members: sensors. own: whether its own past is the strongest witness of each, (n,).
    net: what each sensor of the model adds beyond its bar, in units in which chance is e times as rare, (K,).
    """

    members: tuple[int, ...]
    own: NDArray[np.bool_]
    net: Array

    def beliefs(self) -> Array:
        """The probability of each sensor to be wrong, given that the others are in the set or out as they are, (K,)."""
        odds = np.clip(self.net, -500.0, 500.0)
        outside = np.ones(len(odds), dtype=bool)
        outside[list(self.members)] = False
        return np.asarray(expit(odds - np.log(len(odds)) * outside))


class Courses(NamedTuple):
    """What sensors that are not named leave unexplained of suspects, and what these read, in robust units, (L, n)."""

    unexplained: Array
    read: Array


def described(courses: Courses) -> tuple[tuple[str, ...], Array]:
    """The kind of each course and its size: the mean, the end of a drift, the spread of noise or a replay."""
    kinds, sizes = [], []
    for course, read in zip(courses.unexplained.T, courses.read.T, strict=True):
        present = course[~np.isnan(course)]
        kind = kind_of(course, read) if present.size else "step"
        kinds.append(kind)
        sizes.append(_size(present, kind) if present.size else np.nan)
    return tuple(kinds), np.array(sizes)


def onset_of(scores: Array) -> Onset:
    """When sensors began to deviate, by their residuals in standard deviations, (L, n).

    All windows are equally likely beforehand; from the onset on a residual has an unknown mean, or an unknown spread.

    >>> onset_of(np.array([[0.3], [-0.8], [5.0], [6.0]])).best
    2
    """
    x = np.where(np.isnan(scores), 0.0, scores)
    number = np.arange(len(x), 0, -1.0)[:, None, None]
    sums = np.cumsum(x[::-1], axis=0)[::-1, :, None]
    powers = np.cumsum(x[::-1] ** 2, axis=0)[::-1, :, None]
    steps = 0.5 * sums**2 / (number + _SIZES**-2) - 0.5 * np.log1p(_SIZES**2 * number)
    wide = 0.5 * powers * (1.0 - _SPREADS**-2) - number * np.log(_SPREADS)
    chances = logsumexp(np.concatenate([steps, wide], axis=2), axis=2).sum(axis=1)
    chances = np.exp(chances - logsumexp(chances))
    order = np.argsort(-chances, kind="stable")
    likely = order[: 1 + int(np.searchsorted(np.cumsum(chances[order]), CREDIBLE))]
    return Onset(int(order[0]), int(likely.min()), int(likely.max()))


def _size(present: Array, kind: str) -> float:
    if kind in SPREADS:
        return float(np.sqrt(np.mean(present**2)))
    shape = np.arange(1, present.size + 1) / present.size if kind == "drift" else np.ones(present.size)
    return float(present @ shape / (shape @ shape))


class Before(NamedTuple):
    """The windows before a stretch, and what they say about it: see `Evidence`."""

    values: Array
    recent: Array
    given: Array


class Namer:
    """Names sensors of stretches by the evidence and the bars of a judge."""

    def __init__(self, normal: Normal, quiet: Quiet) -> None:
        self.normal, self.quiet = normal, quiet
        self._scores = Lookup(normal)

    def before(self, values: Array, moment: float) -> Before:
        """Take the windows before a stretch that begins at this second of the day."""
        values = values[-self.normal.width :]
        level = self.normal.level_at(values, np.array([moment]))[0]
        return Before(values, recent_spread(self.normal, values, level), recent_given(self.normal, values, level))

    def __call__(self, before: Before, values: Array, moments: Array, known: Sequence[int] = ()) -> Suspects:
        """Windows, (L, K), NaN where a sensor is silent or stands still; known: what joined a window ago."""
        evidence = self._evidence(before, values, moments)
        return _Search(evidence, self.quiet.yardstick(len(values))).suspects([k for k in known if evidence.judged[k]])

    def onset(self, before: Before, values: Array, moments: Array, suspects: Suspects) -> Onset:
        """Which of these windows, from 0, is the first in which the strongest of the suspects deviates."""
        evidence = self._evidence(before, values, moments)
        own, members = suspects.own[:_TOLD], list(suspects.members[:_TOLD])
        return onset_of(_residuals(evidence, members, own)[1])

    def courses(self, before: Before, values: Array, moments: Array, suspects: Suspects) -> Courses:
        """Those of all suspects, at most _SHOWN windows."""
        chosen = np.unique(np.linspace(0, len(values) - 1, min(len(values), _SHOWN)).round().astype(np.intp))
        evidence, members = self._evidence(before, values[chosen], moments[chosen]), list(suspects.members)
        return Courses(_residuals(evidence, members, suspects.own)[0], evidence.deviations[:, members])

    def _evidence(self, before: Before, values: Array, moments: Array) -> Evidence:
        normal = self.normal
        level = normal.level_at(before.values, moments)
        deviations = values - level
        previous = before.values[-1] - level[0] if len(before.values) else np.full(normal.size, np.nan)
        return Evidence(
            normal=normal,
            deviations=deviations,
            innovations=normal.innovations(previous, deviations),
            scores=self._scores(deviations),
            level=level,
            recent=before.recent,
            given=before.given,
            inflation=self.quiet.yardstick(len(values)).inflation,
        )


class _Search:
    def __init__(self, evidence: Evidence, yardstick: Yardstick) -> None:
        self.evidence, self.yardstick = evidence, yardstick

    def suspects(self, chosen: list[int]) -> Suspects:
        """The set that the known one becomes."""
        most = min(MOST, int(self.evidence.judged.sum()) - 1)
        # sound sensors pass a bar in a share PASSES of the stretches; there are K of them, and many looks at an alarm
        looks = _LOOKS if chosen else 1
        passing = PASSES[-1] * len(VIEWS) * self.evidence.normal.size * looks
        joins = max(_JOINS, np.log(passing / CHANCE))
        outside = self._outside(chosen)
        for _ in range(_AT_ONCE):
            k = int(outside.max(axis=0).argmax())
            if len(chosen) >= most or (chosen and outside[:, k].max() <= joins):
                break
            chosen = [*chosen, k]
            outside = self._outside(chosen)
        inside = self._inside(chosen)
        weakest = int(inside.max(axis=0).argmin())
        if len(chosen) > 1 and inside[:, weakest].max() <= 0.0:
            chosen = [k for k in chosen if k != chosen[weakest]]
            outside, inside = self._outside(chosen), self._inside(chosen)
        net = outside.max(axis=0)
        net[chosen] = inside.max(axis=0)
        order = sorted(range(len(chosen)), key=lambda place: -net[chosen[place]])
        members = [chosen[place] for place in order]
        own = np.array([VIEWS[int(inside[:, place].argmax())] == "own" for place in order])
        return Suspects(tuple(members), own, net)

    def _outside(self, chosen: list[int]) -> Array:
        """What each further sensor adds beyond its bar, by view, (3, K)."""
        return self._beyond(self.evidence.gains(tuple(chosen)), len(chosen) + 1)

    def _inside(self, chosen: list[int]) -> Array:
        """What each member adds to the others, beyond its bar, by view, (3, n)."""
        return self._beyond(losses(self.evidence, chosen), len(chosen), chosen)

    def _beyond(self, gains: Array, number: int, sensors: list[int] | slice = slice(None)) -> Array:
        bars = np.repeat(self.yardstick.bar(number)[:, None], gains.shape[1], axis=1)
        bars[0] = np.maximum(bars[0], self.yardstick.usual[sensors])
        return np.asarray((gains - bars) / self.yardstick.tails[:, None])


def _residuals(evidence: Evidence, members: list[int], own: NDArray[np.bool_]) -> tuple[Array, Array]:
    """What those not named leave unexplained, (L, n): in robust units and in standard deviations.

    own: members whose own past is the stronger witness; their scores are not explained by others.
    """
    normal = evidence.normal
    scores = evidence.scores[:, members]
    left, spread = _left(evidence.free_state, members)
    left = np.where(np.isnan(scores), np.nan, left)
    expected = np.column_stack(
        [normal.deviation_of(k, scores[:, place] - left[:, place]) for place, k in enumerate(members)]
    )
    alone = scores / np.sqrt(normal.scatter.diagonal()[members]) / evidence.recent[members]
    given = left / spread / evidence.given[members]
    return evidence.deviations[:, members] - expected, np.where(own, alone, given)


def losses(evidence: Evidence, chosen: Sequence[int]) -> Array:
    """What each of the chosen sensors adds to the others of them, by view, (3, n): `Evidence.gains` in one step."""
    A, nu, L = list(chosen), evidence.normal.tails, evidence.length
    left, spread = _left(evidence.free_state, A)
    explained = (left / spread) ** 2
    if np.isinf(nu):
        free = 0.5 * explained.sum(axis=0)
    else:
        state = evidence.without(tuple(A))
        weight = 0.5 * (nu + state.left + 1.0)[:, None]
        free = (weight * np.log1p(explained / (nu + state.q)[:, None])).sum(axis=0)
    step = _shift_losses(evidence.shifts, A)
    return np.stack([evidence.own[A], free - 0.5 * L, np.minimum(step, free)])


def _left(state: Free, A: list[int]) -> tuple[Array, Array]:
    """Scores of the sensors A that all others leave unexplained, and their standard deviations, (L, n) each."""
    left, spread = np.zeros((len(state.G), len(A))), np.ones((len(state.G), len(A)))
    for number, Q in enumerate(state.Q):
        rows = state.which == number
        inner = Q[np.ix_(A, A)]
        inner[np.diag_indices(len(A))] += inner.diagonal() < _LEAST  # silent ones bear no evidence
        inverse = np.linalg.inv(inner)
        left[rows], spread[rows] = state.G[rows][:, A] @ inverse, np.sqrt(np.maximum(inverse.diagonal(), _LEAST))
    return left, spread


def _shift_losses(shifts: Shifts, A: list[int]) -> Array:
    inverse = np.linalg.inv(shifts.M[np.ix_(A, A)] + np.eye(len(A)) / STEP_SPREAD**2)
    own = np.maximum(inverse.diagonal(), _LEAST)
    return np.asarray(0.5 * (inverse @ shifts.b[A]) ** 2 / own - 0.5 * np.log(STEP_SPREAD**2 / own))
