"""What is counted on a history keeps its promise on windows to come."""

import numpy as np
import pytest

from eccaht.watch.history import looks_of
from eccaht.watch.rarity import Passes
from tests.watch.plants import plant, readings, scaled

PROMISE = 100


def test_the_promised_time_to_a_false_alarm_is_kept() -> None:
    model, _, rule = plant()
    assert model.normal is not None
    values = scaled(readings(2000, 11))
    rarities = rule.statistic(looks_of(model.normal, rule.law, values, np.zeros(len(values))))
    passing = np.flatnonzero(rarities.max(axis=(0, 2)) >= rule.passes.threshold(PROMISE))
    alarms = 1 + int((np.diff(passing) > 10).sum()) if passing.size else 0
    assert alarms <= len(values) / PROMISE + 2.0 * np.sqrt(len(values) / PROMISE)


def test_longer_promises_need_higher_values_and_say_where_counting_ends() -> None:
    rule = plant()[2]
    thresholds = [rule.passes.threshold(every) for every in (50, 200, 1000, 10_000, 1e6)]
    assert thresholds == sorted(thresholds)
    assert rule.basis(50) == "counted"
    assert rule.basis(1e6) == "extrapolated"
    for every, threshold in zip((1000, 1e6), (thresholds[2], thresholds[4]), strict=True):
        assert rule.passes.log_time(threshold) >= np.log(every) - 1e-9


def test_the_tail_of_an_exponential_statistic_is_found() -> None:
    values = np.random.default_rng(0).exponential(size=20_000)
    passes = Passes.of([values[:10_000], values[10_000:]])
    assert passes.threshold(1000.0) == pytest.approx(np.log(1000.0), abs=0.6)
    assert passes.threshold(1e6) == pytest.approx(np.log(1e6), rel=0.25)
