"""The hardest rival: the one that a given mix of measurements distinguishes least from the true set.

With z = 1_A - 1_A' a rival A' is seen with z'R z / 2 nats a reading, R = Delta S^-1/2 W S^-1/2 Delta. The least of
them is a quadratic program over sets. Rivals that differ in m streams are enumerated where there are few enough.
For larger m the convex relaxation (0 <= z <= 1 on A, -1 <= z <= 0 off it, both parts adding up to m) bounds them from
below, and local search from the corners that the relaxation visits bounds them from above.
"""

import math
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.streams.sets import SetPrior

_LARGEST = 20_000_000  # rivals of one distance that are enumerated
_CHUNK = 2_000_000  # of them at once
_KEPT = 128  # rivals of one distance handed back
_RELAXATION_STEPS = 400
_STARTS = 24  # of the local search


class _Hardest(NamedTuple):
    """`proven` <= min over all rivals of z'R z / 2 <= `found`, and the hardest rivals seen, one a row, ascending."""

    proven: float
    found: float
    rivals: Index
    nats: Array


def hardest_rivals(R: Array, anomalies: Index, aim: float) -> _Hardest:
    """Look at all rivals of a true set; distances whose rivals are proven to have `aim` are not searched further."""
    n, K = anomalies.size, len(R)
    others = np.setdiff1d(np.arange(K), anomalies)
    proven, values, rivals = math.inf, [], []
    for m in range(1, min(n, others.size) + 1):
        if math.comb(n, m) * math.comb(others.size, m - 1) * others.size <= _LARGEST:
            least, sets = _enumerated(R, anomalies, others, m)
            proven = min(proven, float(least[0]))
        else:
            bound, sets = _relaxed(R, anomalies, others, m, aim)
            proven = min(proven, bound)
            if bound < aim:
                sets = np.array([_descended(R, anomalies, rival) for rival in sets[-_STARTS:]])
            z = signs(sets, anomalies, K)
            least = 0.5 * np.einsum("si,si->s", z @ R, z)
        values.append(least)
        rivals.append(sets)
    nats = np.concatenate(values)
    order = np.argsort(nats, kind="stable")
    found = float(nats[order[0]])
    return _Hardest(min(proven, found), found, np.concatenate(rivals)[order], nats[order])


def _enumerated(R: Array, anomalies: Index, others: Index, m: int) -> tuple[Array, Index]:
    """The hardest rivals that lack m of the anomalous streams, proven."""
    inner = R[np.ix_(others, others)]
    heads = SetPrior(others.size, m - 1, m - 1).all_sets()  # all but the last of the streams that come instead
    last = heads.max(axis=1, initial=-1)
    within = inner[heads[:, :, None], heads[:, None, :]].sum(axis=(1, 2))
    rows = max(_CHUNK // others.size, 1)
    values, sets = [np.full(0, math.inf)], [np.empty((0, anomalies.size), dtype=np.intp)]
    leaving = anomalies[SetPrior(anomalies.size, m, m).all_sets()]
    for start in range(0, len(heads), rows):
        some = slice(start, start + rows)
        pairs = within[some, None] + 2.0 * inner[heads[some]].sum(axis=1) + inner.diagonal()
        pairs[np.arange(others.size) <= last[some, None]] = math.inf  # each set once
        for out in leaving:
            pull = R[np.ix_(others, out)].sum(axis=1)
            nats = pairs - 2.0 * (pull[heads[some]].sum(axis=1)[:, None] + pull)
            nats = 0.5 * (nats + R[np.ix_(out, out)].sum()).ravel()
            best = np.argpartition(nats, min(_KEPT, nats.size - 1))[:_KEPT]
            best = best[np.isfinite(nats[best])]
            row, column = np.divmod(best, others.size)
            new = np.column_stack([others[heads[start + row]], others[column]])
            stay = np.broadcast_to(np.setdiff1d(anomalies, out), (best.size, anomalies.size - m))
            values.append(nats[best])
            sets.append(np.column_stack([stay, new]))
    every = np.concatenate(values)
    order = np.argsort(every, kind="stable")[:_KEPT]
    return every[order], np.concatenate(sets)[order]


def _relaxed(R: Array, anomalies: Index, others: Index, m: int, aim: float) -> tuple[float, Index]:
    """A lower bound for the rivals that lack m streams, and corners of the relaxation, by Frank and Wolfe's method."""
    z = np.zeros(len(R))
    z[anomalies], z[others] = m / anomalies.size, -m / others.size
    slope, bound, corners = R @ z, -math.inf, []
    for _ in range(_RELAXATION_STEPS):
        out = anomalies[np.argpartition(slope[anomalies], m - 1)[:m]]
        new = others[np.argpartition(-slope[others], m - 1)[:m]]
        corners.append(np.concatenate([np.setdiff1d(anomalies, out), new]))
        step = -z
        step[out] += 1.0
        step[new] -= 1.0
        gain = float(slope @ step)  # convexity: every rival has at least z'R z / 2 + gain
        value = 0.5 * float(z @ slope)
        bound = max(bound, value + gain)
        if bound >= aim or value < 0.5 * aim or gain >= -1e-9 * value:
            break
        turned = R @ step
        length = min(1.0, -gain / max(float(step @ turned), 1e-300))
        z += length * step
        slope += length * turned
    return max(bound, 0.0), np.unique(np.sort(np.array(corners), axis=1), axis=0)


def _descended(R: Array, anomalies: Index, rival: Index) -> Index:
    """Swap streams of the rival while that makes it harder to tell from the truth."""
    rival, K = rival.copy(), len(R)
    while True:
        z = signs(rival[None], anomalies, K)[0]
        slope = R @ z
        free = np.setdiff1d(np.arange(K), rival)
        change = slope[rival, None] - slope[free] + 0.5 * (R.diagonal()[rival, None] + R.diagonal()[free])
        change -= R[np.ix_(rival, free)]
        if (z > 0).sum() == 1:  # one swap from the truth, which is no rival
            change[np.ix_(z[rival] < 0, z[free] > 0)] = math.inf
        place, stream = np.unravel_index(int(change.argmin()), change.shape)
        if change[place, stream] >= -1e-12 * abs(float(z @ slope)):
            return rival
        rival[place] = free[stream]


def signs(rivals: Index, truth: Index, size: int) -> Array:
    """1_A - 1_A' for each rival, shape (N, K)."""
    z = np.zeros((len(rivals), size))
    z[:, truth] = 1.0
    np.put_along_axis(z, rivals, np.take_along_axis(z, rivals, axis=1) - 1.0, axis=1)
    return z
