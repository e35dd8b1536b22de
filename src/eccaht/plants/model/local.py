"""Normal operation about the level of the windows just before: what says which sensors are wrong once something is.

Deviations d are taken from the median of the `width` windows before a stretch. Residuals come from three systems
(Y, Q), Q the precision of Y in normal operation, as (Y Q)_k / sqrt(Q_kk), which has unit variance in a sound sensor:

- own: innovations d_t - phi d_{t-1} in units of their spread, Q = I; unbounded, so that what leaps is found;
- others: normal scores of d, given the other sensors now;
- both: normal scores of d, given the other sensors now and all sensors in the window before.

The evidence against a sensor is half the sum of its squared residuals over L windows, less L/2 for chance, in nats, in
its strongest system. How rare that is, is counted on stretches of the history that the fit has not seen, by length.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.base.codec import Field, settle
from eccaht.plants.model.residuals import SMALLEST_SPREAD, check_precision, completed, patterns, symmetric
from eccaht.plants.tuning import TUNING

_LEAST = 1e-9
_HIGHEST = 40.0  # normal score
_TIE = 1e-9  # of the last knot: by so much equal knots are moved apart


class Before(NamedTuple):
    """The level before a stretch and the window right before it, (K,) each; NaN where there is none."""

    level: Array
    last: Array


class System(NamedTuple):
    """Residuals before they are scaled, Y Q, (L, K or 2K), Q, and which entries of Y are missing."""

    G: Array
    Q: Array
    missing: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Local:
    """What windows of K sensors do about the level just before, in robust units.

    width: windows that the level is taken from. middle: the median of the history, (K,). memory, unit: phi, and the
    spread of innovations, (K,). knots: deviations whose scores are known, (KNOTS + 1, K), from 0; heights: the scores.
    others, both: precisions of scores, (K, K) and (2K, 2K). lengths: of quiet stretches, (J,); usual: what evidence
    stays below in nine of ten of them, as `logged` gives it, (J, K); slope: of its tail beyond, (J,).
    """

    width: float
    middle: Array
    memory: Array
    unit: Array
    knots: Array
    heights: Array
    others: Array
    both: Array
    lengths: Array
    usual: Array
    slope: Array

    FIELDS = (
        Field("width", low=1.0),
        Field("middle", ("K",)),
        Field("memory", ("K",), low=0.0, high=1.0),
        Field("unit", ("K",), low=SMALLEST_SPREAD),
        Field("knots", ("H", "K"), low=0.0),
        Field("heights", ("H",), low=0.0, high=_HIGHEST),
        Field("others", ("K", "K")),
        Field("both", ("P", "P")),
        Field("lengths", ("J",), low=1.0),
        Field("usual", ("J", "K"), low=0.0),
        Field("slope", ("J",), low=0.0),
    )

    def __post_init__(self) -> None:
        settle(self)
        increase = (np.diff(self.knots, axis=0) > 0).all() and (np.diff(self.heights) > 0).all()
        if len(self.heights) < 2 or not increase or not len(self.lengths) or (np.diff(self.lengths) <= 0).any():
            raise ValueError("its knots or lengths must increase")
        if self.knots[0].any() or self.heights[0] != 0.0 or self.knots[-1].min() < SMALLEST_SPREAD:
            raise ValueError("its knots must begin at 0")
        if (self.slope < TUNING.least_tail_slope).any() or (self.memory > TUNING.longest_memory).any():
            raise ValueError("its memory and its tails are those of no history")
        if self.width > TUNING.level_windows or len(self.both) != 2 * len(self.middle):
            raise ValueError("its level is damaged: it is taken from too many windows, or of other sensors")
        for precision in (self.others, self.both):
            check_precision(precision)

    def of(self, chosen: Index) -> Local:
        """The same for some of the sensors: the others are integrated out."""
        both = np.concatenate([chosen, chosen + len(self.middle)])
        parts = {name: getattr(self, name)[..., chosen] for name in ("middle", "memory", "unit", "knots", "usual")}
        precisions = {"others": _marginal(self.others, chosen), "both": _marginal(self.both, both)}
        return Local(**{**{field.name: getattr(self, field.name) for field in fields(self)}, **parts, **precisions})

    def rounded(self, steps: Array) -> Local:
        """The same for readings that are rounded to steps of this length, in robust units, (K,)."""
        noise = steps**2 / 12.0
        usual = np.array([np.interp(1.0, self.heights, knots) for knots in self.knots.T])
        scores = noise / np.maximum(usual**2 + noise, _LEAST**2)  # the variance that rounding adds to scores of 1
        knots = increasing(np.sqrt(self.knots**2 + noise * (self.heights[:, None] > 0)))
        precisions: dict[str, Any] = {
            name: symmetric(np.linalg.inv(np.linalg.inv(getattr(self, name)) + np.diag(np.tile(scores, times))))
            for name, times in (("others", 1), ("both", 2))
        }
        return replace(self, unit=np.sqrt(self.unit**2 + 2.0 * noise), knots=knots, **precisions)

    def level(self, before: Array) -> Array:
        """The level after these windows, (K,): their median, or the history's where there are too few."""
        recent = np.sort(before[-int(self.width) :], axis=0)  # NaN last; np.nanmedian takes ten times as long
        known, every = (~np.isnan(recent)).sum(axis=0), np.arange(recent.shape[1])
        if len(recent) < TUNING.least_level_readings:
            return self.middle.copy()
        medians = 0.5 * (recent[(known - 1) // 2, every] + recent[known // 2, every])
        return np.where(known >= TUNING.least_level_readings, medians, self.middle)

    def scores(self, deviations: Array) -> Array:
        """Normal scores of |d| with the sign of d, (T, K); beyond the history they grow with log |d|. NaN stays."""
        sizes = np.abs(deviations)
        inside = np.stack([np.interp(sizes[:, k], self.knots[:, k], self.heights) for k in range(sizes.shape[1])], 1)
        return np.asarray(np.copysign(inside + np.log(np.maximum(sizes / self.knots[-1], 1.0)), deviations))

    def before(self, windows: Array) -> Before:
        last = windows[-1] if len(windows) else np.full(len(self.middle), np.nan)
        return Before(self.level(windows), np.array(last, dtype=np.float64))

    def systems(self, before: Before, rows: Array) -> tuple[System, System, System]:
        """Own, others and both, of windows `rows`, (L, K), after those `before`; silent sensors bear no evidence."""
        d = np.vstack([before.last[None, :], rows]) - before.level
        own = (d[1:] - self.memory * np.where(np.isnan(d[:-1]), 0.0, d[:-1])) / self.unit
        y = self.scores(d)
        now, pairs = y[1:], np.hstack([y[1:], y[:-1]])
        return (
            System(np.where(np.isnan(own), 0.0, own), np.eye(rows.shape[1]), np.isnan(own)),
            System(completed(now, self.others) @ self.others, self.others, np.isnan(now)),
            System(completed(pairs, self.both) @ self.both, self.both, np.isnan(pairs)),
        )

    def rarity(self, evidence: Array, length: int) -> Array:
        """-log of the share of quiet stretches of this length with as much evidence of that sensor, (K,)."""
        place = float(np.interp(np.log(length), np.log(self.lengths), np.arange(len(self.lengths))))
        low = int(place)
        high, share = min(low + 1, len(self.lengths) - 1), place - low
        usual = (1.0 - share) * self.usual[low] + share * self.usual[high]
        slope = (1.0 - share) * self.slope[low] + share * self.slope[high]
        return np.asarray(
            np.maximum((logged(evidence, length) - usual) / slope - np.log(1.0 - TUNING.quiet_quantile), 0.0)
        )


def evidence_of(systems: tuple[System, ...]) -> Array:
    L, K = systems[0].G.shape
    sums = [(G[:, :K] ** 2).sum(axis=0) / np.maximum(Q.diagonal()[:K], _LEAST) for G, Q, _ in systems]
    return 0.5 * (np.stack(sums) - L)


def without(systems: tuple[System, ...], k: int) -> tuple[System, ...]:
    """The systems in which sensor k is free, now and in the window before: one step of elimination each.

    What is missing is then what the sensors that are left predict: predicted by a wrong one too, it would pass for a
    reading that contradicts the sound ones.
    """
    K = systems[0].G.shape[1]
    found = [systems[0]]
    for G, Q, missing in systems[1:]:
        for j in range(k, len(Q), K):
            pull = Q[j] / max(float(Q[j, j]), _LEAST)
            G, Q = G - G[:, j, None] * pull, Q - Q[j, :, None] * pull
        for rows, gone in patterns(missing & (Q.diagonal() > _LEAST)):
            G[rows] -= np.linalg.solve(Q[np.ix_(gone, gone)], G[np.ix_(rows, gone)].T).T @ Q[gone]
        found.append(System(G, Q, missing))
    return tuple(found)


def increasing(knots: Array) -> Array:
    """Knots of each sensor, from 0, (n, K), that increase; equal ones are moved apart by what no reading shows."""
    rising: Array = np.maximum.accumulate(knots, axis=0)
    if (np.diff(rising, axis=0) > 0).all():
        return rising
    return np.asarray(rising + np.arange(len(knots))[:, None] * _TIE * rising[-1])


def logged(evidence: Array, length: int) -> Array:
    """Evidence a window, with what chance gives, on a scale on which its tail is exponential."""
    return np.asarray(np.log1p(np.maximum(evidence + 0.5 * length, 0.0) / length))


def _marginal(precision: Array, chosen: Index) -> Array:
    return symmetric(np.linalg.inv(np.linalg.inv(precision)[np.ix_(chosen, chosen)]))
