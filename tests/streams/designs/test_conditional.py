"""The information of a measurement beyond others under way, against quadrature and a grid of directions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from eccaht import Problem
from eccaht.base.arrays import Array
from eccaht.streams.designs import InformationDesign
from eccaht.streams.designs.conditional import Outcomes, left_of
from eccaht.streams.sets import Hypotheses

K, SHIFT = 3, 1.6
PROBLEM = Problem(np.eye(K), shift=SHIFT, n_anomalies=1, budget=5.0)


def hypotheses(chance: list[float]) -> Hypotheses:
    """One stream is anomalous, with these probabilities."""
    sets, shifts = np.arange(K)[:, None], np.full((K, K + 1), SHIFT)
    return Hypotheses.of_sets(sets, np.array(chance), np.empty((K, 0)), shifts)


def means(c: Array) -> Array:
    return SHIFT * c / np.linalg.norm(c)


def information(chance: Array, *measurements: Array) -> float:
    """Nats about the set in readings of one or two measurements, by quadrature."""
    grid = np.linspace(-8.0, 8.0, 161)
    axes = np.meshgrid(*[grid] * len(measurements), indexing="ij")
    each = [
        np.exp(-0.5 * sum((axis - means(c)[s]) ** 2 for axis, c in zip(axes, measurements, strict=True)))
        for s in range(K)
    ]
    each = [density / density.sum() for density in each]
    total = sum(p * density for p, density in zip(chance, each, strict=True))
    own = [p * (d * np.log(np.maximum(d, 1e-300))).sum() for p, d in zip(chance, each, strict=True)]
    return float(sum(own) - (total * np.log(np.maximum(total, 1e-300))).sum())


def directions() -> Iterator[Array]:
    """Directions of contrasts, which add up to 0."""
    for angle in np.linspace(0.0, np.pi, 30, endpoint=False):
        yield np.cos(angle) * np.array([1.0, -1.0, 0.0]) + np.sin(angle) * np.array([1.0, 1.0, -2.0]) / np.sqrt(3.0)


@pytest.mark.parametrize("chance", [[0.34, 0.33, 0.33], [0.45, 0.45, 0.1], [0.4, 0.2, 0.4]])
def test_it_tells_nearly_as_much_as_any_measurement_can_beyond_the_first(chance: list[float]) -> None:
    first = np.array([1.0, -1.0, 0.0])
    best = max(information(np.array(chance), first, c) for c in directions())
    known = information(np.array(chance), first)
    found = []
    for seed in range(6):
        c = InformationDesign(PROBLEM)(hypotheses(chance), np.random.default_rng(seed), [first])
        found.append(information(np.array(chance), first, c) - known)
    assert np.mean(found) >= 0.93 * (best - known)


def test_once_a_set_leads_what_is_left_of_its_rivals_counts() -> None:
    """Of 0.6, 0.3 and 0.1 a precise reading under way settles the first two: the next one is about the third."""
    sharp = Problem(0.05 * np.eye(K), shift=SHIFT, n_anomalies=1, budget=5.0)
    pending = [np.array([2.5, -2.5, 0.0])]
    c = InformationDesign(sharp)(hypotheses([0.6, 0.3, 0.1]), np.random.default_rng(0), pending)
    alone = InformationDesign(sharp)(hypotheses([0.6, 0.3, 0.1]), np.random.default_rng(0))
    gain = abs(c[0] - c[2]) / np.linalg.norm(c)
    assert gain > 1.4  # of at most sqrt(2)
    assert gain > abs(alone[0] - alone[2]) / np.linalg.norm(alone)


def test_the_weights_of_rivals_are_bhattacharyya_bounds() -> None:
    chance, earlier = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 1.0, 4.0], [0.0, -2.0, 0.5]])
    left = np.sqrt(left_of(chance, 0, earlier))
    bound = np.sqrt(chance) * np.exp(-(earlier**2).sum(axis=0) / 8.0)
    assert left[0] == 0.0
    assert np.isclose(left[1] / left[2], bound[1] / bound[2], rtol=1e-12)


def test_probabilities_after_outcomes_are_on_average_those_before() -> None:
    chance, earlier = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 0.7, 1.5]])
    total = np.zeros(3)
    for seed in range(400):
        outcomes = Outcomes(chance, earlier, np.random.default_rng(seed))
        for sets, after in zip(outcomes.sets, outcomes.chances, strict=True):
            total[sets] += after / (400 * len(outcomes.sets))
    assert np.allclose(total, chance, atol=0.01)


def test_where_readings_under_way_settle_everything_something_is_still_in_doubt() -> None:
    outcomes = Outcomes(np.full(3, 1 / 3), np.array([[0.0, 500.0, 1000.0]]), np.random.default_rng(0))
    doubt = [1.0 - after.max() for after in outcomes.chances]
    assert 0.05 <= np.mean(doubt) < 0.5
