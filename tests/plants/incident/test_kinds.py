"""The kind of a fault is seen in its course."""

import numpy as np
import pytest
from scipy.signal import lfilter

from eccaht.plants.incident.describe import kind_of


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("length", [20, 60, 200])
@pytest.mark.parametrize("seed", range(3))
def test_kinds_are_recognised_by_their_course(sign: float, length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = 0.3 * rng.standard_normal(length)
    walk = 3.0 * np.sin(np.linspace(0.0, 12.0, length) + seed)
    assert kind_of(sign * 3.0 + noise) == "step"
    assert kind_of(sign * np.linspace(0.0, 4.0, length) + noise) == "drift"
    assert kind_of(sign * 20.0 * noise) == "noise"
    assert kind_of(walk + noise) == "free"
    gaps = sign * 3.0 + noise
    gaps[::4] = np.nan
    assert kind_of(gaps) == "step"


@pytest.mark.parametrize("memory", [0.0, 0.8])
@pytest.mark.parametrize("seed", range(3))
def test_readings_of_another_time_differ_from_what_is_added_to_those_of_now(memory: float, seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    predicted, other = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], rng.standard_normal((2, 120)))
    noise = rng.standard_normal(120)
    walk = 3.0 * np.sin(np.linspace(0.0, 12.0, 120) + seed)
    assert kind_of(other - predicted, other) == "replay"
    assert kind_of(0.7 + other - predicted, 0.7 + other) == "replay"
    assert kind_of(noise, predicted + noise) == "noise"
    assert kind_of(walk, predicted + walk) == "free"
    assert kind_of(3.0 + 0.3 * noise, predicted + 3.0 + 0.3 * noise) == "step"


def test_too_little_to_decide_is_a_step() -> None:
    assert kind_of(np.array([1.0, -1.0, 1.0, -1.0])) == kind_of(np.zeros(30)) == kind_of(np.full(30, np.nan)) == "step"
