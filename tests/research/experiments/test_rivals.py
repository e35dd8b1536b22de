"""Each rival computes what it says, and finds an obvious fault."""

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.research.experiments import rivals
from eccaht.research.experiments.rivals import BEFORE, RIVALS, lacking, mahalanobis, z_local, z_max, z_mean


def history(rows: int = 300) -> Array:
    rng = np.random.default_rng(0)
    common = rng.standard_normal((rows, 1))
    return np.cumsum(rng.standard_normal((rows, 4)), axis=0) * 0.05 + common + 0.3 * rng.standard_normal((rows, 4))


@pytest.mark.parametrize("name", RIVALS)
def test_a_sensor_that_jumps_far_is_first(name: str) -> None:
    if (package := lacking(name)) is not None:
        pytest.skip(f"{package} is not installed")
    rows = history()
    score, stretch = RIVALS[name](rows), rows[-30:].copy()
    stretch[:, 2] -= 20.0
    scores = score(rows[-30 - BEFORE : -30], stretch)
    assert scores.shape == (4,)
    assert scores.argmax() == 2
    assert np.isfinite(score(rows[:0], stretch[:1])).all()  # a single row, and nothing before it


def test_z_scores_are_those_of_the_definition() -> None:
    rows = history()
    stretch = rows[100:120] + 1.0
    z = (stretch - rows.mean(axis=0)) / rows.std(axis=0)
    np.testing.assert_allclose(z_mean(rows)(rows[:0], stretch), np.abs(z.mean(axis=0)))
    np.testing.assert_allclose(z_max(rows)(rows[:0], stretch), np.abs(z).max(axis=0))


def test_the_hour_before_is_the_level_of_the_local_z_score() -> None:
    rows = history()
    deviations = np.array([rows[t] - np.median(rows[t - BEFORE : t], axis=0) for t in range(BEFORE, len(rows))])
    before, stretch = rows[40 : 40 + BEFORE], rows[100:120]
    expected = np.abs(stretch - np.median(before, axis=0)).max(axis=0) / deviations.std(axis=0)
    np.testing.assert_allclose(z_local(rows)(before, stretch), expected)


def test_contributions_of_independent_sensors_are_their_squares() -> None:
    rows = np.random.default_rng(1).standard_normal((20_000, 3)) * [1.0, 2.0, 3.0]
    stretch = np.array([[1.0, 2.0, -9.0], [0.0, 4.0, 0.0]])
    scores = mahalanobis(rows)(rows[:0], stretch)
    np.testing.assert_allclose(scores, [1.0, 5.0, 9.0], rtol=0.05)


def test_a_package_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(rivals.NEEDS, "ecod", "no_such_package")
    assert lacking("ecod") == "no_such_package"
    assert lacking("z-mean") is None
