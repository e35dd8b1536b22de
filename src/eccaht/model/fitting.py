"""Fit normal operation to a history, and let windows that were held back decide between descriptions of it.

Each candidate is fitted to the first two thirds of the windows, in the order of time, and scored by the log density of
the last third. What predicts best is then fitted to all windows. The parts are chosen one after the other:

- level: joint density of the deviations, a multivariate t with 5 degrees of freedom;
- memory: density of each sensor's innovations, a t with 4 degrees of freedom;
- shrinkage towards the diagonal and tails, together: joint density of the normal scores.

Memory, shrinkage and tails are added only where they score better by more than two standard errors.

At most MOST_SCORED windows of either part, evenly spaced, take part in a comparison, fewer for hundreds of sensors.
Only the least deviation that counts is taken from all windows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from eccaht.arrays import Array, as_number
from eccaht.model.choice import MEMORIES, Choice, Scored, check_degrees, check_share, pick
from eccaht.model.estimators import check_estimator
from eccaht.model.normal import (
    DAY,
    FEWEST_BEFORE,
    LEVELS,
    WIDTH,
    Level,
    Normal,
    history_deviations,
    knots_of,
    least_spread,
    memory_of,
    profile_of,
    spread_of,
)
from eccaht.model.scatter import densities_of, scatter_of, shrunk, t_scale
from eccaht.naming import unknown

SHRINKS = (0.0, 0.01, 0.03, 0.1, 0.3)
TAILS = (np.inf, 30.0, 10.0, 5.0, 3.0)
MOST_SCORED = 20_000
FEWEST_DAYS = 3
_LEVEL_TAILS, _MEMORY_TAILS = 5.0, 4.0
_AT_ONCE = 1 << 22  # deviations whose scores are computed together
_MOST_WORK = 5e9  # multiplications for the squared distances of one candidate

Mask = NDArray[np.bool_]


def fit_normal(
    values: Array,
    moments: Array | None,
    *,
    level: str = "auto",
    memory: str = "auto",
    shrink: str | float = "auto",
    tails: str | float = "auto",
    estimator: str = "ledoit-wolf",
    ridge: float = 0.0,
    consecutive: Mask | None = None,
) -> tuple[Normal, Choice]:
    """Fit normal operation to the windows of a history, shape (T, K), without gaps; choose what is "auto".

    moments: seconds since some local midnight of each window, (T,); None if rows have no times.
    level: fixed, daily or local. memory: none or ar. shrink: s of (1 - s) R + s diag(R).
    tails: gaussian, t, or the degrees of freedom of a t.
    estimator, ridge: of the scatter of the normal scores; comparisons are made around Ledoit-Wolf whatever it is.
    consecutive: (T - 1,), whether each window directly follows the one before it; all do if not given.

    >>> rng = np.random.default_rng(0)
    >>> normal, choice = fit_normal(rng.standard_normal((3000, 4)), None)
    >>> choice.level, choice.memory, choice.tails
    ('fixed', 'none', inf)
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or len(values) < FEWEST_BEFORE or not np.isfinite(values).all():
        raise ValueError(f"a history must be a table of at least {FEWEST_BEFORE} windows without gaps")
    follows = np.ones(len(values) - 1, dtype=bool) if consecutive is None else np.asarray(consecutive, dtype=bool)
    check_options(level=level, memory=memory, shrink=shrink, tails=tails)
    levels = level_candidates(level, len(values), moments)
    memories = memory_candidates(memory, follows)
    shrinks, degrees = shrink_candidates(shrink), tails_candidates(tails)
    check_estimator(estimator)
    trial = _Trial(values, np.zeros(len(values)) if moments is None else moments, follows)
    chosen_level, rows = trial.choose_level(levels)
    deviations = trial.deviations(chosen_level)
    chosen_memory, more = trial.choose_memory(memories, deviations)
    rows += more
    pairs = {shown_pair(s, nu): (s, nu) for nu in degrees for s in shrinks}
    chosen_pair, more = trial.choose_scatter(pairs, chosen_level, deviations)
    s, nu = pairs[chosen_pair]
    normal = trial.fitted(chosen_level, chosen_memory, (s, nu), (estimator, ridge))
    return normal, Choice(chosen_level, chosen_memory, s, nu, (*rows, *more))


def check_options(
    *, level: str = "auto", memory: str = "auto", shrink: str | float = "auto", tails: str | float = "auto"
) -> None:
    """Refuse options of `fit_normal` that no history would allow."""
    for given, known, what in ((level, LEVELS, "level"), (memory, MEMORIES, "memory")):
        if given not in ("auto", *known):
            raise unknown(given, ("auto", *known), what)
    shrink_candidates(shrink)
    tails_candidates(tails)


# -- candidates ----------------------------------------------------------------------------------------


def level_candidates(level: str, n_windows: int, moments: Array | None) -> list[Level]:
    """The levels to compare: all that this history allows, or the one that is asked for."""
    days = 0.0 if moments is None else _days(moments)
    lacking: dict[Level, str] = {}
    if days < FEWEST_DAYS:
        lacking["daily"] = f"a history with times of at least {FEWEST_DAYS} days"
    if n_windows < 3 * WIDTH:
        lacking["local"] = f"a history of at least {3 * WIDTH} windows"
    if level == "auto":
        return [name for name in LEVELS if name not in lacking]
    asked = next(name for name in LEVELS if name == level)
    if asked in lacking:
        raise ValueError(f"the level {level!r} needs {lacking[asked]}: give one, or another level")
    return [asked]


def memory_candidates(memory: str, follows: Mask) -> list[str]:
    """The kinds of memory to compare; without windows that follow each other there is none."""
    T = len(follows) + 1
    split, begin = 2 * T // 3, WIDTH if T >= 3 * WIDTH else 0  # a local level would begin there
    if min(int(follows[begin : split - 1].sum()), int(follows[split - 1 :].sum())) < FEWEST_BEFORE:
        if memory == "ar":
            raise ValueError("the memory 'ar' needs more windows that follow each other: give a longer history")
        return ["none"]
    return list(MEMORIES) if memory == "auto" else [memory]


def shrink_candidates(shrink: str | float) -> tuple[float, ...]:
    """The shares of shrinkage to compare."""
    if shrink == "auto":
        return SHRINKS
    if isinstance(shrink, str):
        raise ValueError(f"shrink must be 'auto' or a number of at least 0 and below 1, not {shrink!r}")
    return (check_share(as_number(shrink, "shrink")),)


def tails_candidates(tails: str | float) -> tuple[float, ...]:
    """The degrees of freedom to compare."""
    named = {"auto": TAILS, "gaussian": TAILS[:1], "t": TAILS[1:]}
    if isinstance(tails, str):
        if tails not in named:
            raise ValueError(f"tails must be 'auto', 'gaussian', 't' or degrees of freedom, not {tails!r}")
        return named[tails]
    degrees = np.inf if tails == np.inf else as_number(tails, "tails")
    return (check_degrees(degrees),)


def shown_pair(shrink: float, tails: float) -> str:
    """A candidate of the joint choice in words.

    >>> shown_pair(0.1, 5.0), shown_pair(0.0, np.inf)
    ('t 5, shrink 0.1', 'gaussian, shrink 0')
    """
    return ("gaussian" if np.isinf(tails) else f"t {tails:g}") + f", shrink {shrink:g}"


def _days(moments: Array) -> float:
    """How many days a history spans; times of the day start again each day."""
    steps = np.diff(moments)
    return float((steps + DAY * (steps < -DAY / 2)).sum() / DAY)


# -- comparisons ---------------------------------------------------------------------------------------


class _Trial:
    """A history cut into the part that candidates are fitted to and the part that they are scored on."""

    def __init__(self, values: Array, moments: Array, follows: Mask) -> None:
        self.values, self.moments, self.follows = values, moments, follows
        self.split = 2 * len(values) // 3
        spread = values.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        K = values.shape[1]
        self.most = int(np.clip(_MOST_WORK / K**2, 2_000, MOST_SCORED))

    def deviations(self, level: Level) -> Array:
        """Of all windows, from the level of the first part; those of a local level begin WIDTH windows later."""
        profile = profile_of(self.values[: self.split], self.moments[: self.split], level)
        return history_deviations(self.values, self.moments, level, profile)

    def parts(self, rows: Array) -> tuple[Array, Array]:
        """Fitted and scored ones among rows that end with the last window."""
        split = self.split - (len(self.values) - len(rows))
        return rows[:split], rows[split:]

    def few(self, rows: Array) -> Array:
        """As many rows as take part in a comparison."""
        if len(rows) <= self.most:
            return rows
        return rows[np.linspace(0, len(rows) - 1, self.most).round().astype(np.intp)]

    def choose_level(self, levels: Sequence[Level]) -> tuple[Level, list[Scored]]:
        """The level whose deviations are the most probable."""
        scores: dict[Level, Array] = {}
        for level in levels:
            first, last = map(self.few, self.parts(self.deviations(level)))
            scale = np.maximum(np.sqrt(np.mean(first**2, axis=0)), least_spread(self.spread))
            density = densities_of(first / scale, last / scale, [0.0], [_LEVEL_TAILS])[0.0, _LEVEL_TAILS]
            scores[level] = density - np.log(scale).sum()
        return pick("level", scores, margin=0.0)  # none of them is simpler than the others

    def choose_memory(self, memories: Sequence[str], deviations: Array) -> tuple[str, list[Scored]]:
        """The memory whose innovations are the most probable."""
        follows = self.follows[len(self.follows) + 1 - len(deviations) :]
        follows = follows if "ar" in memories else np.ones_like(follows)
        scores = {}
        for memory in memories:
            first_part = self.parts(deviations)[0]
            phi = self.memory(memory, first_part, follows[: len(first_part) - 1])
            innovations = deviations[1:] - phi * deviations[:-1]
            first, last = self.parts(innovations)
            known_first, known_last = follows[: len(first)], follows[len(first) :]
            first, last = self.few(first[known_first]), self.few(last[known_last])
            scores[memory] = self._innovation_density(first, last)
        return pick("memory", scores)

    def _innovation_density(self, first: Array, last: Array) -> Array:
        """Mean over the sensors of the log density of a t whose scale is the first part's."""
        nu, least = _MEMORY_TAILS, least_spread(self.spread)
        scale = t_scale(first, nu, least)
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
        density = constant - np.log(scale) - 0.5 * (nu + 1) * np.log1p((last / scale) ** 2 / nu)
        return np.asarray(density.mean(axis=1))

    def choose_scatter(
        self, pairs: dict[str, tuple[float, float]], level: Level, deviations: Array
    ) -> tuple[str, list[Scored]]:
        """The shrinkage and the tails under which the normal scores are the most probable."""
        first, last = self.parts(deviations)
        scores = self._unit(level, first).scores
        shrinks, degrees = (list(dict.fromkeys(values)) for values in zip(*pairs.values(), strict=True))
        densities = densities_of(scores(self.few(first)), scores(self.few(last)), shrinks, degrees)
        return pick("shrink and tails", {name: densities[pair] for name, pair in pairs.items()})

    # -- fitting -----------------------------------------------------------------------------------

    def memory(self, memory: str, deviations: Array, follows: Mask) -> Array:
        """phi of each sensor."""
        return memory_of(deviations, follows) if memory == "ar" else np.zeros(deviations.shape[1])

    def _unit(self, level: Level, deviations: Array) -> Normal:
        """Sensors that share nothing and have no memory, for the scores that their deviations give."""
        K = deviations.shape[1]
        knots, scores = knots_of(deviations, self.spread)
        profile = np.zeros((len(profile_of(self.values[:1], self.moments[:1], level)), K))
        return Normal(level, profile, WIDTH, np.zeros(K), np.ones(K), knots, scores, np.eye(K), np.inf)

    def fitted(self, level: Level, memory: str, pair: tuple[float, float], how: tuple[str, float]) -> Normal:
        """What was chosen, fitted to all windows; pair: shrinkage and tails, how: estimator and ridge."""
        shrink, tails = pair
        profile = profile_of(self.values, self.moments, level)
        deviations = history_deviations(self.values, self.moments, level, profile)
        follows = self.follows[len(self.follows) + 1 - len(deviations) :]
        phi = self.memory(memory, deviations, follows)
        innovations = (deviations[1:] - phi * deviations[:-1])[follows]
        spread = spread_of(innovations if len(innovations) else deviations, self.spread)
        unit = self._unit(level, deviations)
        parts = np.array_split(deviations, 1 + deviations.size // _AT_ONCE)
        scores = np.concatenate([unit.scores(part) for part in parts])
        scatter = shrunk(scatter_of(scores, *how), shrink)
        return Normal(level, profile, WIDTH, phi, spread, unit.knots, unit.knot_scores, scatter, tails)
