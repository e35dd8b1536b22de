"""Normal operation fitted to a history: residuals, and normal operation about the level just before.

What is rare is counted on windows that the fit has not seen.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

from eccaht.base.arrays import Array
from eccaht.plants.model.detectors import Peaks, Residuals, Tails, counted
from eccaht.plants.model.local import Local, evidence_of, logged
from eccaht.plants.model.residuals import Normal, before_of, clipped, symmetric
from eccaht.plants.tuning import TUNING

FEWEST_NORMAL = 40  # windows of a history that say what is rare at all
_PARTS = 5  # of a history, held back in turn
LENGTHS = (1, 3, 10, 30, 100, 300)  # of held-out stretches
_LEAST, _UNKNOWN = 1e-12, 1e30
_LONG_ENOUGH = 5  # times the windows of a level: a shorter history has none to hold back


def fit_normal(values: Array, follows: NDArray[np.bool_] | None = None) -> Normal:
    """Normal operation of a history, (T, K), in robust units and without gaps.

    follows: (T - 1,), whether each window directly follows the one before it; all do if not given. Each fifth of the
    history is judged by a fit to the others, and what is rare is counted there. A sensor that is still in the others
    moves all the same: windows in which it does are judged by the fit to the whole, which alone knows what that means.
    """
    T = len(values)
    follows = np.ones(T - 1, dtype=bool) if follows is None else follows
    whole = _bare(*_fitted(values, follows, None), values)
    shown = []
    for held, judge in held_out(values, follows):
        rows = values[held], before_of(values[held], follows[held.start : held.stop - 1])
        moves = np.any((judge.scale == _UNKNOWN) & (np.abs(rows[0] - judge.centre) > _LEAST), axis=1, keepdims=True)
        both = zip(whole.residuals(*rows), judge.residuals(*rows), strict=True)
        shown.append(Residuals(*(np.where(moves, known, unseen) for known, unseen in both)))
    rarity, peaks = counted(shown, whole.unit)
    return replace(whole, rarity=rarity, peaks=peaks, local=fit_local(values))


def held_out(values: Array, follows: NDArray[np.bool_]) -> Iterator[tuple[slice, Normal]]:
    """Each fifth of a history, and normal operation as the others show it, before anything was counted."""
    for part in np.array_split(np.arange(len(values)), _PARTS):
        held = slice(int(part[0]), int(part[-1]) + 1)
        yield held, _bare(*_fitted(values, follows, held), values)


def longest_repeats(values: Array) -> Array:
    """For how many windows each sensor repeated one value at most, (K,)."""
    T, K = values.shape
    longest = np.ones(K)
    for k in range(K):
        changes = np.flatnonzero(np.diff(values[:, k]) != 0)  # NaN differs from everything
        longest[k] = np.diff(changes, prepend=-1, append=T - 1).max()
    return longest


def _fitted(values: Array, follows: NDArray[np.bool_], held: slice | None) -> tuple[Array, Array, Array]:
    """Centre, scale and precision of the windows that are not held back."""
    kept = np.ones(len(values), dtype=bool)
    if held is not None:
        kept[held] = False
    learnt = values[kept]
    quartiles = np.percentile(learnt, [25, 50, 75], axis=0)
    spread, deviation = (quartiles[2] - quartiles[0]) / 1.349, learnt.std(axis=0)
    scale = np.where(spread > TUNING.still_spread_share * deviation, spread, deviation)
    scale = np.where(scale > _LEAST, scale, _UNKNOWN)  # still there, which cannot say what a move is worth
    z = clipped((values - quartiles[1]) / scale)
    mean = z[kept].mean(axis=0)
    pairs = follows & kept[1:] & kept[:-1]
    y = np.hstack([z[1:][pairs], z[:-1][pairs]]) - np.tile(mean, 2)
    if len(y) < 2:
        raise ValueError("the history has no two windows that follow each other: give one without so many gaps")
    covariance = shrunk_covariance(y)
    ridge = max(TUNING.ridge_share * float(np.trace(covariance)) / len(covariance), _LEAST)
    precision = symmetric(np.linalg.inv(covariance + ridge * np.eye(len(covariance))))
    return quartiles[1] + mean * scale, scale, precision


def _bare(centre: Array, scale: Array, precision: Array, values: Array) -> Normal:
    """Normal operation before anything was counted."""
    low, high, repeats = values.min(axis=0), values.max(axis=0), longest_repeats(values)
    return Normal(centre, scale, precision, low, high, repeats, Tails.none(len(centre)), Peaks.none())


def shrunk_covariance(z: Array) -> Array:
    """The covariance of centred rows, (n, p), shrunk towards a multiple of the identity by Ledoit and Wolf's share."""
    n, p = z.shape
    sample = z.T @ z / n
    mean = float(np.trace(sample)) / p
    away = float(np.sum(sample**2)) - p * mean**2  # |S - mean I|^2
    error = (float(np.mean(np.einsum("tk,tk->t", z, z) ** 2)) - float(np.sum(sample**2))) / n
    share = min(max(error, 0.0) / away, 1.0) if away > 0 else 1.0
    return np.asarray((1.0 - share) * sample + share * mean * np.eye(p))


def explained(values: Array) -> Array:
    """The share of each sensor's variance that all others in the same window explain in windows held back, (K,).

    values: a history, (T, K). NaN where a sensor does not move in two of the parts that are held back in turn, which
    then cannot say.
    """
    left, all_of_it = np.zeros((2, values.shape[1]))
    for held in np.array_split(np.arange(len(values)), _PARTS):
        learnt = np.delete(values, held, axis=0)
        mean, spread = learnt.mean(axis=0), learnt.std(axis=0)
        judged = (spread > _LEAST) & (np.ptp(values[held], axis=0) > _LEAST)
        z = clipped((values - mean) / np.where(spread > _LEAST, spread, _UNKNOWN))
        precision = np.linalg.inv(
            shrunk_covariance(np.delete(z, held, axis=0)) + TUNING.ridge_share * np.eye(len(mean))
        )
        residual = z[held] @ precision / precision.diagonal()  # each less what the others predict
        left += np.where(judged, (residual**2).sum(axis=0), 0.0)
        all_of_it += np.where(judged, (z[held] ** 2).sum(axis=0), 0.0)
    return np.where(all_of_it > 0.0, 1.0 - left / np.where(all_of_it > 0.0, all_of_it, 1.0), np.nan)


def fit_local(values: Array) -> Local:
    """Fit a history, (T, K), in robust units and without gaps; rarities are counted on thirds by fits to the rest."""
    from scipy.ndimage import median_filter  # which takes longer to load than a model

    T = len(values)
    width = min(TUNING.level_windows, max(min(TUNING.least_level_windows, T // 4), T // 10) | 1)
    levels = median_filter(values, size=(width, 1))[width // 2 : width // 2 + T - width]
    d = values[width:] - levels
    seen: dict[int, list[Array]] = {length: [] for length in LENGTHS}
    blocks = np.array_split(np.arange(T), TUNING.held_out_parts) if _LONG_ENOUGH * width < T else []
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
    memory = np.clip(np.einsum("tk,tk->k", d[1:], d[:-1]) / np.where(power > 0, power, 1.0), 0.0, TUNING.longest_memory)
    moves = np.diff(values, axis=0)
    moved = (moves != 0).mean(axis=0)
    usual = (d[1:] - memory * d[:-1]).std(axis=0)
    rare = np.sqrt((moves**2).mean(axis=0) / np.maximum(moved, 1.0 / T))
    unit = np.maximum(np.where(moved < TUNING.rare_move_share, rare, usual), 1e-4 * spread)
    shares = 1.0 - 10.0 ** -np.linspace(0.3, max(np.log10(T / 3.0), 0.6), TUNING.score_knots)
    knots = np.quantile(np.abs(d), shares, axis=0)
    knots[-1] = np.maximum(knots[-1], 1e-3 * spread)  # less is no deviation
    knots = (
        np.maximum.accumulate(knots, axis=0) + np.arange(1, TUNING.score_knots + 1)[:, None] * 1e-9 * knots[-1]
    )  # ties
    heights = np.concatenate([[0.0], ndtri(0.5 + 0.5 * shares)])
    found = {"width": float(width), "middle": np.median(values, axis=0), "memory": memory, "unit": unit}
    found |= {"knots": np.vstack([np.zeros_like(knots[:1]), knots]), "heights": heights}
    identity = np.eye(values.shape[1])
    blank = Local(**found, others=identity, both=np.eye(2 * len(identity)), **_by_chance(len(identity)))
    y = blank.scores(d)
    return found | {"others": _precision(y), "both": _precision(np.hstack([y[1:], y[:-1]]))}


def _precision(y: Array) -> Array:
    covariance = shrunk_covariance(y)
    least = np.maximum(covariance.diagonal(), TUNING.least_score_variance)
    return symmetric(np.linalg.inv(covariance + np.diag(least - covariance.diagonal() + TUNING.ridge_share * least)))


def _quiet(local: Local, values: Array, width: int) -> list[tuple[int, Array]]:
    """The evidence of sound sensors in stretches of windows that the fit has not seen."""
    found = []
    for length in LENGTHS:
        last = len(values) - length
        if last <= width:
            continue
        for start in np.unique(np.linspace(width, last, TUNING.quiet_stretches).astype(int)).tolist():
            systems = local.systems(local.before(values[start - width : start]), values[start : start + length])
            found.append((length, logged(evidence_of(systems).max(axis=0), length)))
    return found


def _counted(seen: dict[int, list[Array]]) -> dict[str, Any]:
    """What is rare, by the lengths of which enough stretches were seen; nothing if there is none."""
    rows = {length: np.array(found) for length, found in seen.items() if len(found) >= TUNING.least_quiet_stretches}
    if not rows:
        return {}
    usual = [np.quantile(found, TUNING.quiet_quantile, axis=0) for found in rows.values()]
    slopes = []
    for found, level in zip(rows.values(), usual, strict=True):
        beyond = found - level  # of all sensors together: one alone shows too few
        slopes.append(max(float(beyond[beyond > 0].mean()) if (beyond > 0).any() else 0.0, TUNING.least_tail_slope))
    return {"lengths": np.array(list(rows), dtype=np.float64), "usual": np.stack(usual), "slope": np.array(slopes)}


def _by_chance(K: int) -> dict[str, Any]:
    """The same if residuals were normal and independent, the largest of three systems."""
    lengths = np.array(LENGTHS, dtype=np.float64)
    quantiles = [2.0 * gammaincinv(0.5 * lengths, share) for share in (0.966, 0.9966)]  # of chi-square
    levels = [logged(0.5 * (quantile - lengths), 1) for quantile in quantiles]
    usual, rarer = (np.log1p(np.expm1(level) / lengths) for level in levels)
    slope = np.maximum((rarer - usual) / np.log(10.0), TUNING.least_tail_slope)
    return {"lengths": lengths, "usual": np.repeat(usual[:, None], K, axis=1), "slope": slope}
