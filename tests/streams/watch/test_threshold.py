"""The threshold: what evidence exceeds it by."""

import math

import numpy as np
import pytest

from eccaht.streams.watch.threshold import overshoot


def test_overshoot_of_a_walk() -> None:
    """E exp(-excess) over a threshold, for a walk with steps N(d^2 / 2, d^2), as after a change."""
    rng = np.random.default_rng(0)
    for d in (0.3, 1.0, 3.0):
        walks = np.cumsum(0.5 * d**2 + d * rng.standard_normal((2000, math.ceil(200.0 / d**2) + 20)), axis=1)
        over = walks > 15.0
        excess = walks[np.arange(2000), over.argmax(axis=1)] - 15.0
        assert overshoot(np.array([d]))[0] == pytest.approx(np.exp(-excess).mean(), abs=0.03)
