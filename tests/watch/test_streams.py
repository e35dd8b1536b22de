"""What streams show window by window is what the views of an incident show of the same stretch."""

from dataclasses import replace

import numpy as np
import pytest

from eccaht.incident.views import Evidence, Stretch
from eccaht.model.normal import Level, Normal
from eccaht.watch.history import law_of
from eccaht.watch.streams import Lookup, Streams
from tests.watch.plants import SENSORS, plant, readings, scaled


def _normal(level: Level, tails: float) -> Normal:
    normal = plant()[0].normal
    assert normal is not None
    return replace(normal, level=level, tails=tails)


def test_scores_of_few_windows_are_those_of_the_model() -> None:
    normal = _normal("fixed", np.inf)
    deviations = np.random.default_rng(0).standard_cauchy((50, SENSORS))
    deviations[3, 2] = np.nan
    np.testing.assert_allclose(Lookup(normal)(deviations), normal.scores(deviations), rtol=1e-12)


@pytest.mark.parametrize("level", ["fixed", "local"])
@pytest.mark.parametrize("tails", [np.inf, 5.0])
def test_stretches_are_seen_as_incidents_are(level: Level, tails: float) -> None:
    normal = _normal(level, tails)
    values = scaled(readings(300, 1))
    moments = np.zeros(len(values))
    law = law_of(normal, values, moments)
    streams = Streams(normal, law)
    for x in values[:60]:
        streams.follow(x)
    for x in values[60:]:
        look = streams.update(x, 0.0)
    assert (look.lengths > 0).all()
    for j, length in enumerate(look.lengths.tolist()):
        start = len(values) - length
        evidence = Evidence.of(normal, Stretch(values, moments, start, len(values)))
        sums = evidence.sums / np.sqrt(length * normal.precision.diagonal())
        np.testing.assert_allclose(look.shift[j], sums, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(look.free[j] * length, evidence.free() + 0.5 * length, rtol=1e-9, atol=1e-9)
        fresh = law.scores(evidence.innovations)
        np.testing.assert_allclose(look.power[j], (fresh**2).mean(axis=0), rtol=1e-9)
        weights = np.where(np.arange(length)[:, None] == 0, 1.0, 1.0 - normal.memory)
        own = (weights * fresh).sum(axis=0) / np.sqrt((weights**2).sum(axis=0))
        np.testing.assert_allclose(look.own[j], own, rtol=1e-9, atol=1e-9)


def test_silent_sensors_are_left_to_the_others() -> None:
    normal = _normal("fixed", np.inf)
    values = scaled(readings(40, 1))
    values[20:, 2] = np.nan
    moments = np.zeros(len(values))
    streams = Streams(normal, law_of(normal, scaled(readings(200, 2)), np.zeros(200)))
    for x in values:
        look = streams.update(x, 0.0)
    place = look.lengths.tolist().index(40)
    evidence = Evidence.of(normal, Stretch(values, moments, 0, 40))
    sums = evidence.sums / np.sqrt(evidence.total.diagonal())
    np.testing.assert_allclose(look.shift[place], sums, rtol=1e-9, atol=1e-9)
    assert look.shift[0, 2] == 0.0


def test_a_frozen_level_does_not_learn() -> None:
    normal = _normal("local", np.inf)
    streams = Streams(normal, law_of(normal, scaled(readings(200, 2)), np.zeros(200)))
    values = scaled(readings(260, 3))
    for x in values[:60]:
        streams.follow(x)
    before = streams.level()
    streams.frozen[:, 4] = before[0, 4]
    for x in values[60:] + 5.0:
        streams.update(x, 0.0)
    assert streams.level()[0, 4] == before[0, 4]
    assert (np.delete(streams.level() - before, 4, axis=1) > 3.0).all()


def test_memory_is_constant() -> None:
    normal = _normal("local", np.inf)
    values = scaled(readings(1000, 2))
    streams = Streams(normal, law_of(normal, values, np.zeros(1000)))
    sizes = []
    for x in values:
        streams.update(x, 0.0)
        sizes.append(sum(part.size for part in streams.state().values()))
    assert max(sizes[500:]) <= max(sizes[:500])
