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
from scipy.ndimage import median_filter
from scipy.special import ndtri
from scipy.stats import chi2

from eccaht.base.arrays import Array, Index, frozen
from eccaht.plants.model.shrinkage import check_precision, completed, shrunk_covariance, symmetric

WIDEST = 61  # windows before a stretch that say what its level is; odd
NARROWEST = 11
FEWEST_BEFORE = 10  # fewer say no level: the history's median stands in
KNOTS = 25  # of normal scores
LENGTHS = (1, 3, 10, 30, 100, 300)  # of held-out stretches
_BLOCKS, _STRETCHES, _FEWEST_STRETCHES = 3, 60, 20
_LONG_ENOUGH = 5  # times the windows of a level: a shorter history has none to hold back
_RARELY = 0.01  # a sensor that moves in fewer windows has no spread but a size of its moves: a stand-by pump
_QUANTILE = 0.9  # of the evidence in quiet stretches; beyond it a Pareto tail
_LEAST_VARIANCE, _RIDGE = 0.25, 1e-3  # of normal scores: a sensor that moves in few windows keeps one of its own
_LEAST_SLOPE = 1e-3
_LEAST = 1e-9
_LONG_MEMORY = 0.999
_HIGHEST = 40.0  # normal score


class Before(NamedTuple):
    """The level before a stretch and the window right before it, (K,) each; NaN where there is none."""

    level: Array
    last: Array


class System(NamedTuple):
    """Residuals before they are scaled, Y Q, (L, K or 2K), and Q."""

    G: Array
    Q: Array


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

    def __post_init__(self) -> None:
        K, J, H = np.size(self.middle), np.size(self.lengths), np.size(self.heights)
        shapes = {"middle": (K,), "memory": (K,), "unit": (K,), "knots": (H, K), "heights": (H,), "others": (K, K)}
        shapes |= {"both": (2 * K, 2 * K), "lengths": (J,), "usual": (J, K), "slope": (J,)}
        for name, shape in shapes.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{name} must hold finite values of shape {shape}")
            object.__setattr__(self, name, frozen(array))
        increase = (np.diff(self.knots, axis=0) > 0).all() and (np.diff(self.heights) > 0).all()
        if not J or H < 2 or not increase or (np.diff(self.lengths) <= 0).any() or self.lengths[0] < 1:
            raise ValueError("its knots or lengths must increase")
        if self.knots[0].any() or self.heights[0] != 0.0 or self.heights[-1] > _HIGHEST:
            raise ValueError("its knots must begin at 0")
        if (self.unit <= 0).any() or (self.slope < _LEAST_SLOPE).any() or (self.usual < 0).any():
            raise ValueError("its spreads must be positive")
        if not ((self.memory >= 0.0) & (self.memory <= _LONG_MEMORY)).all():
            raise ValueError(f"its memory must lie between 0 and {_LONG_MEMORY}")
        if np.ndim(self.width) or not 1 <= self.width <= WIDEST:
            raise ValueError("its level is taken from an impossible number of windows")
        for precision in (self.others, self.both):
            check_precision(precision)

    def arrays(self) -> dict[str, Array]:
        return {field.name: np.asarray(getattr(self, field.name), dtype=np.float64) for field in fields(self)}

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
        knots = np.sqrt(self.knots**2 + noise * (self.heights[:, None] > 0))
        precisions: dict[str, Any] = {
            name: symmetric(np.linalg.inv(np.linalg.inv(getattr(self, name)) + np.diag(np.tile(scores, times))))
            for name, times in (("others", 1), ("both", 2))
        }
        return replace(self, unit=np.sqrt(self.unit**2 + 2.0 * noise), knots=knots, **precisions)

    def level(self, before: Array) -> Array:
        """The level after these windows, (K,): their median, or the history's where there are too few."""
        recent = before[-int(self.width) :]
        enough = (~np.isnan(recent)).sum(axis=0) >= FEWEST_BEFORE
        level = self.middle.copy()
        if enough.any():
            level[enough] = np.nanmedian(recent[:, enough], axis=0)
        return level

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
        pairs = np.hstack([y[1:], y[:-1]])
        now = completed(y[1:], self.others)
        pairs = completed(pairs, self.both)
        identity = np.eye(rows.shape[1])
        return (
            System(np.where(np.isnan(own), 0.0, own), identity),
            System(now @ self.others, self.others),
            System(pairs @ self.both, self.both),
        )

    def rarity(self, evidence: Array, length: int) -> Array:
        """-log of the share of quiet stretches of this length with as much evidence of that sensor, (K,)."""
        place = float(np.interp(np.log(length), np.log(self.lengths), np.arange(len(self.lengths))))
        low = int(place)
        high, share = min(low + 1, len(self.lengths) - 1), place - low
        usual = (1.0 - share) * self.usual[low] + share * self.usual[high]
        slope = (1.0 - share) * self.slope[low] + share * self.slope[high]
        return np.asarray(np.maximum((logged(evidence, length) - usual) / slope - np.log(1.0 - _QUANTILE), 0.0))


def evidence_of(systems: tuple[System, ...]) -> Array:
    L, K = systems[0].G.shape
    sums = [(G[:, :K] ** 2).sum(axis=0) / np.maximum(Q.diagonal()[:K], _LEAST) for G, Q in systems]
    return 0.5 * (np.stack(sums) - L)


def without(systems: tuple[System, ...], k: int) -> tuple[System, ...]:
    """The systems in which sensor k is free, now and in the window before: one step of elimination each."""
    K = systems[0].G.shape[1]
    found = [systems[0]]
    for G, Q in systems[1:]:
        for j in range(k, len(Q), K):
            pull = Q[j] / max(float(Q[j, j]), _LEAST)
            G, Q = G - G[:, j, None] * pull, Q - Q[j, :, None] * pull
        found.append(System(G, Q))
    return tuple(found)


def logged(evidence: Array, length: int) -> Array:
    """Evidence a window, with what chance gives, on a scale on which its tail is exponential."""
    return np.asarray(np.log1p(np.maximum(evidence + 0.5 * length, 0.0) / length))


# -- fitting ---------------------------------------------------------------------------------------------


def fit_local(values: Array) -> Local:
    """Fit a history, (T, K), in robust units and without gaps; rarities are counted on thirds by fits to the rest."""
    T = len(values)
    width = min(WIDEST, max(min(NARROWEST, T // 4), T // 10) | 1)
    levels = median_filter(values, size=(width, 1))[width // 2 : width // 2 + T - width]
    d = values[width:] - levels
    seen: dict[int, list[Array]] = {length: [] for length in LENGTHS}
    blocks = np.array_split(np.arange(T), _BLOCKS) if _LONG_ENOUGH * width < T else []
    for held in blocks:
        near = np.arange(max(held[0] - width, 0), min(held[-1] + 1, T - width))  # deviations of or from held windows
        parts = _parts(np.delete(values, held, axis=0), np.delete(d, near, axis=0), width)
        learnt = Local(**parts, **_by_chance(values.shape[1]))
        for length, found in _quiet(learnt, values[held], width):
            seen[length].append(found)
    return Local(**_parts(values, d, width), **(_counted(seen) or _by_chance(values.shape[1])))


def _parts(values: Array, d: Array, width: int) -> dict[str, Any]:
    """All but what is rare; d: deviations from the level of the `width` windows before, (n, K)."""
    T = len(values)
    spread = values.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    power = np.einsum("tk,tk->k", d[:-1], d[:-1])
    memory = np.clip(np.einsum("tk,tk->k", d[1:], d[:-1]) / np.where(power > 0, power, 1.0), 0.0, _LONG_MEMORY)
    moves = np.diff(values, axis=0)
    moved = (moves != 0).mean(axis=0)
    usual = (d[1:] - memory * d[:-1]).std(axis=0)
    rare = np.sqrt((moves**2).mean(axis=0) / np.maximum(moved, 1.0 / T))
    unit = np.maximum(np.where(moved < _RARELY, rare, usual), 1e-4 * spread)
    shares = 1.0 - 10.0 ** -np.linspace(0.3, max(np.log10(T / 3.0), 0.6), KNOTS)
    knots = np.quantile(np.abs(d), shares, axis=0)
    knots[-1] = np.maximum(knots[-1], 1e-3 * spread)  # less is no deviation
    knots = np.maximum.accumulate(knots, axis=0) + np.arange(1, KNOTS + 1)[:, None] * 1e-9 * knots[-1]  # ties
    heights = np.concatenate([[0.0], ndtri(0.5 + 0.5 * shares)])
    found = {"width": float(width), "middle": np.median(values, axis=0), "memory": memory, "unit": unit}
    found |= {"knots": np.vstack([np.zeros_like(knots[:1]), knots]), "heights": heights}
    identity = np.eye(values.shape[1])
    blank = Local(**found, others=identity, both=np.eye(2 * len(identity)), **_by_chance(len(identity)))
    y = blank.scores(d)
    return found | {"others": _precision(y), "both": _precision(np.hstack([y[1:], y[:-1]]))}


def _precision(y: Array) -> Array:
    covariance = shrunk_covariance(y)
    least = np.maximum(covariance.diagonal(), _LEAST_VARIANCE)
    return symmetric(np.linalg.inv(covariance + np.diag(least - covariance.diagonal() + _RIDGE * least)))


def _quiet(local: Local, values: Array, width: int) -> list[tuple[int, Array]]:
    """The evidence of sound sensors in stretches of windows that the fit has not seen."""
    found = []
    for length in LENGTHS:
        last = len(values) - length
        if last <= width:
            continue
        for start in np.unique(np.linspace(width, last, _STRETCHES).astype(int)).tolist():
            systems = local.systems(local.before(values[start - width : start]), values[start : start + length])
            found.append((length, logged(evidence_of(systems).max(axis=0), length)))
    return found


def _counted(seen: dict[int, list[Array]]) -> dict[str, Any]:
    """What is rare, by the lengths of which enough stretches were seen; nothing if there is none."""
    rows = {length: np.array(found) for length, found in seen.items() if len(found) >= _FEWEST_STRETCHES}
    if not rows:
        return {}
    usual = [np.quantile(found, _QUANTILE, axis=0) for found in rows.values()]
    slopes = []
    for found, level in zip(rows.values(), usual, strict=True):
        beyond = found - level  # of all sensors together: one alone shows too few
        slopes.append(max(float(beyond[beyond > 0].mean()) if (beyond > 0).any() else 0.0, _LEAST_SLOPE))
    return {"lengths": np.array(list(rows), dtype=np.float64), "usual": np.stack(usual), "slope": np.array(slopes)}


def _by_chance(K: int) -> dict[str, Any]:
    """The same if residuals were normal and independent, the largest of three systems."""
    lengths = np.array(LENGTHS, dtype=np.float64)
    levels = [logged(0.5 * (chi2.ppf(share, lengths) - lengths), 1) for share in (0.966, 0.9966)]
    usual, rarer = (np.log1p(np.expm1(level) / lengths) for level in levels)
    slope = np.maximum((rarer - usual) / np.log(10.0), _LEAST_SLOPE)
    return {"lengths": lengths, "usual": np.repeat(usual[:, None], K, axis=1), "slope": slope}


def _marginal(precision: Array, chosen: Index) -> Array:
    return symmetric(np.linalg.inv(np.linalg.inv(precision)[np.ix_(chosen, chosen)]))
