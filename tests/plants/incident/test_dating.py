"""Dates are the maximum of the likelihood that is written down, and its interval holds what is in it."""

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.plants.incident.alarms import date, gain
from eccaht.plants.model.residuals import Normal
from eccaht.plants.tuning import TUNING
from tests.plants.incident.plants import plant, spreads


def residuals_of(normal: Normal, values: Array) -> tuple[Array, Array]:
    before = np.vstack([np.full((1, normal.size), np.nan), values[:-1]])
    r = normal.residuals(values, before).r
    return r, normal.tails(r)


def likelihood(normal: Normal, r: Array, e: Array, k: int, start: int, stop: int) -> float:
    """Of a step of sensor k in windows [start, stop), or of any other course, window by window."""
    own, before = normal.precision[k, k], normal.precision[k, k + normal.size]
    spread = max(normal.tails.edge[k] / 2.576, 0.3)
    course = {start: own / np.sqrt(own)}
    course |= {t: (own + before) / np.sqrt(own) for t in range(start + 1, stop)}
    if stop < len(r):
        course[stop] = before / np.sqrt(own)
    product = sum(h * r[t, k] for t, h in course.items())
    power = sum(h**2 for h in course.values())
    return float(
        max(product**2 / (2.0 * power * spread**2), sum(e[t, k] - TUNING.usual_rarity for t in range(start, stop)))
    )


@pytest.mark.parametrize("sensors", [[3], [3, 1]])
def test_dates_are_those_of_brute_force(sensors: list[int]) -> None:
    normal, values = plant()
    windows = values[:120].copy()
    windows[60:85, sensors] += 2.0
    r, e = residuals_of(normal, windows)
    begun, over = 62, 95
    scores = {
        (start, stop): sum(likelihood(normal, r[:over], e[:over], k, start, stop) for k in sensors)
        for start in range(begun - TUNING.earlier_windows, begun + 1)
        for stop in range(begun + 1, over + 1)
    }
    best = max(scores, key=lambda span: scores[span])
    found = date(normal, r, e, begun, over, sensors)
    assert (found.onset, found.end) == best == (60, 85)
    assert found.first <= 60 <= found.last
    top = max(scores.values())
    inside = sum(np.exp(score - top) for (start, _), score in scores.items() if found.first <= start <= found.last)
    assert inside >= 0.95 * sum(np.exp(score - top) for score in scores.values())


def test_an_incident_that_goes_on_has_no_end() -> None:
    normal, values = plant()
    windows = values[:120].copy()
    windows[60:, 3] += 2.0
    r, e = residuals_of(normal, windows)
    assert date(normal, r, e, 61, None, [3]).end is None
    assert date(normal, r, e, 61, None, [3]).onset == 60


def test_the_gain_is_the_likelihood_of_one_incident() -> None:
    normal, values = plant()
    windows = values[:100].copy()
    windows[40:60, 2] += 1.5 * spreads(values)[2]
    r, e = residuals_of(normal, windows)
    expected = likelihood(normal, r, e, 2, 40, 60) + likelihood(normal, r, e, 5, 40, 60)
    assert gain(normal, r, e, [2, 5], 40, 60) == pytest.approx(expected)
    assert gain(normal, r, e, [2], 40, 60) > gain(normal, r, e, [2], 20, 60)
