"""What the limits are computed for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eccaht.base.arrays import Index
from eccaht.streams.problem import Problem

LARGEST = 512  # streams: the programs need dense matrices of that size


def check_limits(problem: Problem) -> None:
    """Refuse what the limits do not cover, by name."""
    check_streams(problem.size)
    problem.check_gaussian("limits")
    if problem.unknown_shift:
        raise ValueError("limits are computed for shifts of known size: give numbers instead of UnknownShift")
    if problem.readout_noise > 0.0:
        raise ValueError("limits do not cover readout_noise: leave it out; with it a search can only take longer")


def check_streams(size: int) -> None:
    """Refuse more streams than the programs can hold."""
    if size > LARGEST:
        raise ValueError(f"limits are computed for up to {LARGEST} streams, not {size}: take a part of them")


def check_anomalies(problem: Problem, anomalies: Sequence[int] | Index) -> Index:
    """Return a true set in ascending order, or say what is wrong with it."""
    streams = np.unique(np.asarray(anomalies, dtype=np.intp))
    shown = ", ".join(str(k) for k in anomalies)
    if streams.size != len(anomalies) or streams.size != problem.known_number:
        raise ValueError(f"the true set must hold {problem.known_number} different streams, not {shown or 'none'}")
    if streams[0] < 0 or streams[-1] >= problem.size:
        raise ValueError(f"the true set {shown} names a stream outside 0 to {problem.size - 1}")
    return streams
