"""What each member of a set adds, and when it began."""

from dataclasses import replace

import numpy as np
import pytest

from eccaht.incident.views import Evidence, Stretch
from eccaht.watch.suspects import losses, onset_of
from tests.watch.plants import plant, readings, scaled


@pytest.mark.parametrize("tails", [np.inf, 5.0])
@pytest.mark.parametrize("silent", [False, True])
def test_members_add_what_they_would_add_to_the_set_without_them(tails: float, silent: bool) -> None:
    normal = plant()[0].normal
    assert normal is not None
    values = scaled(readings(90, 5))
    if silent:
        values[65:70, 1] = np.nan
    inflation = np.linspace(1.0, 3.0, normal.size)
    evidence = Evidence.of(replace(normal, tails=tails), Stretch(values, np.zeros(90), 60, 90), inflation)
    chosen = [4, 1, 3]
    found = losses(evidence, chosen)
    for place, k in enumerate(chosen):
        rest = tuple(j for j in chosen if j != k)
        np.testing.assert_allclose(found[:, place], evidence.gains(rest)[:, k], rtol=1e-8)


def test_the_interval_of_an_onset_holds_it_in_nineteen_cases_of_twenty() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        onset = int(rng.integers(5, 35))
        scores = rng.standard_normal((40, 1))
        scores[onset:] += rng.choice([1.5, 3.0, 6.0])
        found = onset_of(scores)
        assert found.first <= found.best <= found.last
        inside += found.first <= onset <= found.last
    assert inside / 400 >= 0.93
