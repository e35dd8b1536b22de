"""Which sensors are wrong in a stretch: sets grown by what each sensor adds, refined, and weighed against rivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.special import expit, pdtrc

from eccaht.arrays import Array
from eccaht.incident.quiet import PASSES, Quiet, Yardstick
from eccaht.incident.seen import Seen
from eccaht.incident.views import VIEWS, Evidence, Stretch, View
from eccaht.model.normal import Normal

MOST_REFINED = 5  # sets up to this size are refined by exchanges
MOST_GROWN = 40  # sensors beyond are ranked by what they would add
MOST_SILENT = 0.5  # share of the windows; a sensor silent in more of them is a fault of its own
CHANCE = 0.05  # what so few quiet stretches show is not put down to chance
_BELOW = (-2.0, 4.0)  # nats that the strongest sensor outside counts for
_ROUNDS = 3
Standing = Literal["stuck", "silent"]
Basis = Literal["nothing", "silent", "stuck", "evidence"]


@dataclass(frozen=True)
class Judgement:
    """The named set of a stretch, and what the evidence says about it.

    order: all sensors, the most suspect first. named: those that are wrong, none if nothing is.
    gains: what each sensor adds to the others of the set, or would add, in its strongest view, (K,); bars: what it must
    add to join them, (K,); net: the gains beyond the bars, in units in which chance is e times as rare, (K,).
    log_odds: of the named set, before drills say what they are worth; 0 where no evidence names a sensor.
    exchanges: by which it beats the best exchange of each sensor, (K,). standing: sensors that are stuck or silent.
    statistic, threshold: how unusual the stretch is, and from where on something is said to be wrong.
    """

    order: tuple[int, ...]
    named: tuple[int, ...]
    views: tuple[View, ...]  # by sensor
    gains: Array
    bars: Array
    net: Array
    log_odds: float
    exchanges: Array
    standing: dict[int, Standing]
    statistic: float
    threshold: float
    evidence: Evidence = field(repr=False)

    @property
    def alarm(self) -> bool:
        """Is something wrong at all?"""
        return self.statistic > self.threshold

    def posterior(self, factor: float = 1.0) -> float:
        """The probability of the named set by its log-odds, times `factor`.

        If no evidence names a sensor, that no more is wrong, by how far the stretch stays below its threshold.
        """
        odds = factor * self.log_odds if self.basis == "evidence" else self.threshold - self.statistic
        return float(expit(odds))

    @property
    def basis(self) -> Basis:
        """What the answer stands on: evidence for a sensor, or only that some are stuck or silent, or nothing."""
        if any(k not in self.standing for k in self.named):
            return "evidence"
        if not self.named:
            return "nothing"
        return "stuck" if "stuck" in (self.standing[k] for k in self.named) else "silent"

    def without(self, sensors: Sequence[int]) -> Judgement:
        """The same with some sensors no longer named."""
        if not sensors:
            return self
        named = tuple(k for k in self.named if k not in sensors)
        order = (*named, *(k for k in self.order if k not in named))
        return replace(self, named=named, order=order)

    def without_alarm(self) -> Judgement:
        """The same where, on all that was looked at, nothing but sensors that stand still is wrong."""
        left = self.without([k for k in self.named if k not in self.standing])
        return replace(left, threshold=max(self.threshold, self.statistic))

    def beliefs(self, factor: float = 1.0) -> Array:
        """The probability of each sensor to be wrong if evidence is worth `factor` of itself, (K,)."""
        K = len(self.order)
        named = np.isin(np.arange(K), self.named)
        inside = 1.0 / (1.0 + np.exp(-factor * _within(self.net)) + np.exp(-factor * _within(self.exchanges)))
        outside = 1.0 / (1.0 + K * np.exp(-factor * _within(self.net)))
        beliefs = np.where(named, inside, outside)
        beliefs[list(self.standing)] = 1.0 - 1.0 / K
        return np.asarray(beliefs)


def _within(net: Array) -> Array:
    """Net evidence within bounds that its exponential can take."""
    return np.clip(net, -500.0, 500.0)


@dataclass(frozen=True)
class Judge:
    """Judges stretches by normal operation and by what quiet stretches showed.

    alpha: the share of quiet stretches in which something may be named. correlation: use what sensors share.
    """

    normal: Normal
    quiet: Quiet
    alpha: float = 0.05
    correlation: bool = True

    def __call__(self, values: Array, moments: Array, start: int, stop: int, *, number: int | None = None) -> Judgement:
        """Judge windows [start, stop); number: of wrong sensors, if it is known."""
        standing = standing_still(values, start, stop, self.quiet.still)
        evidence = self.evidence(values, moments, start, stop, standing)
        return _Search(evidence, self.quiet.yardstick(stop - start)).judgement(self.alpha, number, standing)

    def evidence(
        self, values: Array, moments: Array, start: int, stop: int, standing: dict[int, Standing] | None = None
    ) -> Evidence:
        """The views of windows [start, stop); sensors that stand still bear no evidence in them."""
        stretch = Stretch(values[:stop], moments, start, stop)
        gone = [k for k, what in (standing or {}).items() if what == "stuck"]
        if gone:
            shown = values[:stop].copy()
            shown[start:, gone] = np.nan
            stretch = stretch._replace(values=shown)
        return Evidence.of(self.normal, stretch, self.quiet.yardstick(stop - start).inflation, self.correlation)


class _Search:
    """Grows and refines sets of one stretch."""

    def __init__(self, evidence: Evidence, yardstick: Yardstick) -> None:
        self.evidence, self.yardstick = evidence, yardstick
        self._known: dict[tuple[int, ...], Array] = {}
        self._bars: dict[int, Array] = {}

    def bars(self, number: int) -> Array:
        """What the `number`-th sensor must pass, (3, K): the common bar; by its own past, what is usual for itself."""
        if number not in self._bars:
            bars = np.repeat(self.yardstick.bar(number)[:, None], self.evidence.normal.size, axis=1)
            bars[0] = np.maximum(bars[0], self.yardstick.usual)
            self._bars[number] = bars
        return self._bars[number]

    def gains(self, chosen: tuple[int, ...]) -> Array:
        """What each further sensor adds, by view, (3, K); kept, since sets come back."""
        chosen = tuple(sorted(chosen))
        if chosen not in self._known:
            self._known[chosen] = self.evidence.gains(chosen)
        return self._known[chosen]

    def net(self, chosen: tuple[int, ...]) -> Array:
        """The same beyond the bars, in units of their tails."""
        gains = self.gains(chosen) - self.bars(len(chosen) + 1)
        return np.asarray(gains / self.yardstick.tails[:, None])

    def best(self, chosen: tuple[int, ...]) -> tuple[int, bool]:
        """The sensor that adds most, and whether it passes a bar; those that pass come first."""
        gains = self.gains(chosen)
        passing = gains > self.bars(len(chosen) + 1)
        if passing.any():
            return int(np.where(passing, gains, -np.inf).max(axis=0).argmax()), True
        return int(gains[:2].max(axis=0).argmax()), False

    def grown(self, number: int | None) -> list[int]:
        """The named set: grown while a sensor passes its bar, or to `number`; refined by exchanges on the way."""
        chosen: list[int] = []
        judged = int(self.evidence.judged.sum())
        most = judged - 1 if number is None else min(number, judged)
        while len(chosen) < most:
            k, passes = self.best(tuple(chosen))
            if number is None and not passes:
                break
            chosen.append(k)
            if len(chosen) <= MOST_REFINED:
                chosen = self.refined(chosen)
        return chosen if number is not None else self.without_chance(chosen)

    def without_chance(self, chosen: list[int]) -> list[int]:
        """The set without its weak sensors, unless they are more than chance explains and no minority.

        Weak is what a sound sensor somewhere among K reaches in more than one quiet stretch of twenty. A few weak ones
        beside strong ones are chance, or what errors of R make of the strong ones; many are a broad incident.
        """
        strong = np.log(max(PASSES[-1] * self.evidence.normal.size / CHANCE, 1.0))
        weak = [k for k in chosen if self.net(tuple(j for j in chosen if j != k))[:, k].max() < strong]
        passing = self.yardstick.share(len(chosen)) * len(VIEWS) * self.evidence.normal.size  # sound ones, at most
        broad = 2 * len(weak) >= len(chosen) and pdtrc(len(weak) - 1, passing) < CHANCE
        return chosen if broad else [k for k in chosen if k not in weak]

    def refined(self, chosen: list[int]) -> list[int]:
        """Take each sensor out and put the best one in, until nothing changes."""
        for _ in range(_ROUNDS):
            before = set(chosen)
            for k in list(chosen):
                chosen.remove(k)
                chosen.append(self.best(tuple(chosen))[0])
            if set(chosen) == before:
                break
        return chosen

    def ranked(self, chosen: list[int]) -> list[int]:
        """All sensors: the chosen ones by what the set would lose, then as they would join it."""
        inside = sorted(chosen, key=lambda k: -self.loss(k, chosen))
        order = list(inside)
        judged = int(self.evidence.judged.sum())
        while len(order) < min(judged, MOST_GROWN):
            order.append(self.best(tuple(order))[0])
        left = [k for k in range(self.evidence.normal.size) if k not in set(order)]
        gains = self.gains(tuple(order))[:2].max(axis=0) if left else np.zeros(0)
        return order + sorted(left, key=lambda k: -gains[k])

    def loss(self, k: int, chosen: list[int]) -> float:
        """What the set loses without one of its sensors, in the strongest view."""
        return float(self.gains(tuple(j for j in chosen if j != k))[:, k].max())

    def judgement(self, alpha: float, number: int | None, standing: dict[int, Standing]) -> Judgement:
        """Search and weigh; sensors that stand still are named first."""
        size = self.evidence.normal.size
        statistic = float(self.yardstick.statistic(Seen.of([self.evidence]))[0])
        threshold = self.yardstick.threshold(alpha)
        left = None if number is None else max(number - len(standing), 0)
        grown = self.grown(left)
        found = grown or ([] if left == 0 else self.ranked([])[:1])
        named = found if left is not None or statistic > threshold else []
        order = self.ranked(grown)
        net, gains, bars, views, exchanges = np.empty(size), np.empty(size), np.empty(size), [], np.full(size, np.inf)
        for k in range(size):
            rest = tuple(j for j in named if j != k)
            by_view = self.net(rest)
            view = int(by_view[:, k].argmax())
            views.append(VIEWS[view])
            gains[k], net[k] = self.gains(rest)[view, k], by_view[view, k]
            bars[k] = self.bars(len(rest) + 1)[view, k]
            if k in named:
                outside = [j for j in range(size) if j not in named]
                exchanges[k] = net[k] - by_view[:, outside].max(initial=-np.inf)
        order = [*standing, *(k for k in order if k in named), *(k for k in order if k not in named)]
        order = list(dict.fromkeys(order))
        return Judgement(
            order=tuple(order),
            named=tuple(k for k in order if k in standing or k in named),
            views=tuple(views),
            gains=gains,
            bars=bars,
            net=net,
            log_odds=self.log_odds(named, net, exchanges, number is not None),
            exchanges=exchanges,
            standing=standing,
            statistic=statistic,
            threshold=threshold,
            evidence=self.evidence,
        )

    def log_odds(self, named: list[int], net: Array, exchanges: Array, fixed: bool) -> float:
        """The log-odds of sensors that evidence names, 0 if there are none; fixed: their number is known.

        The logarithm of the net evidence by which the weakest one is in the set, since errors of heavy-tailed evidence
        are relative ones, and how far the strongest sensor outside stays below its bar.
        """
        if not named:
            return 0.0
        outside = np.setdiff1d(np.flatnonzero(self.evidence.judged), named)
        weakest = min([*exchanges[named], *([] if fixed else net[named])])
        below = 0.0 if fixed or not outside.size else -float(net[outside].max())
        return float(np.log1p(np.clip(weakest, 0.0, 1e12)) + np.clip(below, *_BELOW))


def standing_still(values: Array, start: int, stop: int, still: Array) -> dict[int, Standing]:
    """Sensors that are silent in most of the windows [start, stop), or repeat one value for longer than they may.

    still: for how many windows each may repeat a value, (K,). A sensor that was silent before too is no news.
    """
    found: dict[int, Standing] = {}
    silent = np.isnan(values[start:stop]).mean(axis=0) > MOST_SILENT
    for k in np.flatnonzero(silent).tolist():
        if not start or np.isnan(values[:start, k]).mean() <= MOST_SILENT:
            found[k] = "silent"
    for k in np.flatnonzero(~silent).tolist():
        limit = int(still[k])
        course = values[max(0, stop - limit - 1) : stop, k]
        if len(course) > limit and limit >= 0 and (course == course[0]).all() and stop - start > limit // 2:
            found[k] = "stuck"
    return found
