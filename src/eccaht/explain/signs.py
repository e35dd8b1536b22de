"""Whether the readings prefer shifts of the other sign than was assumed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from eccaht.arrays import Array, Index
from eccaht.posterior import SufficientStatistics
from eccaht.problem import Problem
from eccaht.run.loop import Window
from eccaht.sets import SetPrior

ODDS = math.log(20.0)  # log-odds of free signs over the assumed ones, from which they are worth a word
_LARGEST, _WINDOWS = 200, 20  # sensors and windows that are looked at


class OtherSigns(NamedTuple):
    """The set that fits best if every sign is free, those of it that have the other sign, and its log-odds."""

    members: Index
    turned: Index
    log_odds: float


def other_signs(problem: Problem, windows: Sequence[Window], decision: Index) -> OtherSigns | None:
    """The best set with free signs, if it beats every set with the assumed ones, and none at all, by ODDS; else None.

    All sensors of the windows are looked at, not only the weighted sums of them that a search has read: these were
    chosen to tell apart sets of the assumed sign. Of many windows some are looked at, of more than 200 sensors nothing.
    Before the readings either sign is as likely as the other, so each member of the free set costs log 2. Unknown sizes
    are taken for what is most likely of them; where both signs are allowed already there is nothing to ask.
    """
    if not problem.shift.all() or problem.size > _LARGEST:
        return None
    spread = np.linspace(0, len(windows) - 1, min(len(windows), _WINDOWS)).round().astype(int)
    evidence = _evidence(problem.replace(shift=problem.shift), [windows[t] for t in spread])
    sizes = SetPrior(problem.size, *problem.sizes)
    starts = (np.zeros(problem.size), _signs(problem.size, decision))
    assumed = max(_climb(evidence, sizes, start, free=False)[1] for start in starts)
    signs, best = max((_climb(evidence, sizes, start, free=True) for start in starts), key=lambda found: found[1])
    nothing = -math.log(sizes.most - sizes.least + 1)  # where a number was given although nothing is wrong
    log_odds = best - np.count_nonzero(signs) * math.log(2.0) - max(assumed, nothing)
    turned = np.flatnonzero(signs < 0)
    return OtherSigns(np.flatnonzero(signs), turned, log_odds) if turned.size and log_odds > ODDS else None


def _evidence(problem: Problem, windows: Sequence[Window]) -> SufficientStatistics:
    evidence = SufficientStatistics(problem)
    for window in windows:
        evidence.add_vector(window.values, None if window.excess is None else window.excess.dense())
    return evidence


def _signs(size: int, members: Index) -> Array:
    signs = np.zeros(size)
    signs[members] = 1.0
    return signs


class _Signed:
    """A set with signs, its log-likelihood against the empty set, and what each stream would add to it."""

    def __init__(self, evidence: SufficientStatistics, size: int) -> None:
        self._rows, self._half = evidence.rows, evidence.half_diagonal[:size]
        self.signs, self.fit, self.field = np.zeros(size), 0.0, evidence.linear[:size].copy()

    @property
    def members(self) -> list[int]:
        return np.flatnonzero(self.signs).tolist()

    def put(self, k: int, sign: float) -> None:
        """Make stream k a member of that sign, or none with 0."""
        row, step = self._rows(np.array([k]))[0, : self.signs.size], sign - self.signs[k]
        self.fit += float(step * self.field[k] - 0.5 * step**2 * row[k])
        self.field = self.field - step * row
        self.signs[k] = sign

    def best(self, *, free: bool) -> tuple[int, float]:
        """Who outside it would add most, with which sign."""
        gains = np.where(self.signs != 0.0, -np.inf, (np.abs(self.field) if free else self.field) - self._half)
        k = int(gains.argmax())
        return k, -1.0 if free and self.field[k] < 0 else 1.0


def _climb(evidence: SufficientStatistics, sizes: SetPrior, start: Array, *, free: bool) -> tuple[Array, float]:
    """Signs of every stream (0 if it is no member) that no single change betters, and their log-posterior."""
    now = _Signed(evidence, sizes.n_streams)
    for k in np.flatnonzero(start).tolist():
        now.put(k, start[k])
    while len(now.members) < sizes.least:
        now.put(*now.best(free=free))
    while True:
        value = now.fit + sizes.log_prior[len(now.members)]
        change = max(_changes(now, sizes, free), key=lambda option: option[0])
        if change[0] <= value + 1e-9 * max(1.0, evidence.misfit):
            return now.signs, float(value)
        for k, sign in change[1]:
            now.put(k, sign)


def _changes(now: _Signed, sizes: SetPrior, free: bool) -> Iterator[tuple[float, list[tuple[int, float]]]]:
    """Every member left out or replaced, and one more taken in: the log-posterior after it, and what to put."""
    n = len(now.members)
    if n < sizes.most:
        yield _tried(now, sizes, [now.best(free=free)])
    for i in now.members:
        sign = float(now.signs[i])
        if n > sizes.least:
            yield _tried(now, sizes, [(i, 0.0)])
        now.put(i, 0.0)
        swap = now.best(free=free)
        now.put(i, sign)
        yield _tried(now, sizes, [(i, 0.0), swap])


def _tried(now: _Signed, sizes: SetPrior, puts: list[tuple[int, float]]) -> tuple[float, list[tuple[int, float]]]:
    """The log-posterior after some puts, which are taken back."""
    before = [(k, float(now.signs[k])) for k, _ in puts]
    for k, sign in puts:
        now.put(k, sign)
    value = now.fit + float(sizes.log_prior[len(now.members)])
    for k, sign in reversed(before):
        now.put(k, sign)
    return value, puts
