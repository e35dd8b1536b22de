"""When an incident began and when it was over: the likelihood of every beginning and end around an alarm.

A sensor that is off by d spreads from window s to before window t moves its residuals by d h, with h = sqrt(Q_kk) in
window s, (Q_kk + P_kk') / sqrt(Q_kk) after it and P_kk' / sqrt(Q_kk) in window t, k' the sensor in the window before:
the first window stands out most, and the recovery has the other sign. The log-likelihood ratio of the best d is
(h'r)^2 / (2 h'h); likewise for a drift, whose d grows from window to window. A sensor of any other course gains by the
rarity of its residuals beyond what is usual. For each sensor the largest of the three counts, summed over the sensors
that are wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eccaht.base.arrays import Array
from eccaht.plants.model.detectors import LONG
from eccaht.plants.model.normal import Normal

EARLIER = 2 * LONG  # windows before an alarm in which the incident may have begun
LATER = 512  # windows after an alarm that its incident may have gone on for
USUAL = 2.0  # nats of a window that a sound sensor exceeds in one window in seven
_EDGE = 2.576  # deviations that one normal residual in a hundred exceeds
_LEAST_SPREAD = 0.3  # of residuals, in units that they have if the fit is right
_SURE = 0.95  # of the interval of the onset


@dataclass(frozen=True)
class Dates:
    """The first window of an incident, its interval of 95 %, and the first window after it, None if it goes on."""

    onset: int
    first: int
    last: int
    end: int | None


def date(
    normal: Normal, r: Array, e: Array, begun: int, over: int | None, sensors: list[int], latest: int | None = None
) -> Dates:
    """Date the incident of an alarm that began with window `begun` and was over with window `over`, None: goes on.

    r, e: residuals and rarities of the recording, (T, K). sensors: those that are wrong. latest: how far it may have
    lasted, since a small deviation may go on below the thresholds; not beyond `over` if not given.
    """
    stop = len(r) if over is None else min(over if latest is None else min(latest, over + LATER), len(r))
    low = max(0, begun - EARLIER)
    scores = np.zeros((begun - low + 1, stop - low + 1))
    for k in sensors:
        scores += _scores(normal, k, r[low:stop, k], e[low:stop, k], begun - low)
    starts, ends = np.arange(scores.shape[0])[:, None], np.arange(scores.shape[1])[None, :]
    scores = np.where((ends > starts) & (ends > begun - low), scores, -np.inf)
    best = scores.max()
    weights = np.exp(scores - best).sum(axis=1)
    share = np.cumsum(weights) / weights.sum()
    first, last = (int(np.searchsorted(share, tail)) for tail in ((1.0 - _SURE) / 2, (1.0 + _SURE) / 2))
    onset, end = np.unravel_index(int(scores.argmax()), scores.shape)
    last = min(max(last, int(onset)), len(share) - 1)
    finished = int(end) + low if over is not None or int(end) < stop - low else None
    return Dates(low + int(onset), low + min(first, int(onset)), low + last, finished)


def _scores(normal: Normal, k: int, r: Array, e: Array, latest: int) -> Array:
    """The log-likelihood of each onset up to `latest` and each end, (latest + 1, L + 1), for one sensor."""
    L, own, before = len(r), normal.precision[k, k], normal.precision[k, k + normal.size]
    spread = max(float(normal.tails.edge[k]) / _EDGE, _LEAST_SPREAD)
    head, middle, tail = np.array([own, own + before, before]) / np.sqrt(own)
    sums, rare = np.concatenate([[0.0], np.cumsum(r)]), np.concatenate([[0.0], np.cumsum(e - USUAL)])
    moments = np.concatenate([[0.0], np.cumsum(np.arange(L) * r)])
    s, t = np.arange(latest + 1)[:, None], np.arange(L + 1)[None, :]
    lasts = t < L  # a window after the end is there to see
    after = np.where(lasts, np.append(r, 0.0)[None, :], 0.0)
    within, length = sums[t] - sums[s], np.maximum(t - s, 1)
    product = head * r[: latest + 1, None] + middle * (sums[t] - sums[s + 1]) + tail * after
    power = head**2 + middle**2 * (length - 1) + tail**2 * lasts
    step = product**2 / power
    # a drift: d grows by as much in each window
    product = middle * (moments[t] - moments[s] - s * within) + head * within + tail * length * after
    power = middle**2 * (length - 1) * length * (2 * length - 1) / 6.0 + head * middle * length * (length - 1)
    power += head**2 * length + (tail * length) ** 2 * lasts
    drift = product**2 / power
    step = np.maximum(step, drift) / (2.0 * spread**2)
    return np.asarray(np.maximum(step, rare[t] - rare[s]))


def gain(normal: Normal, r: Array, e: Array, sensors: list[int], start: int, stop: int) -> float:
    """The log-likelihood of one incident of these sensors in windows [start, stop)."""
    last = min(stop + 1, len(r))
    scores = [_scores(normal, k, r[start:last, k], e[start:last, k], 0)[0, stop - start] for k in sensors]
    return float(np.sum(scores))
