"""Charts are those of their definitions, and their thresholds keep the given rate."""

import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from eccaht.base.arrays import Array
from eccaht.research.experiments.detection import Alarms
from eccaht.research.experiments.rivals import CHARTS, held, held_out, mewma, pca_q, ridge, t2, threshold
from tests.research.datasets.testbed_format import plant_rows


def standardised(history: Array, rows: Array) -> Array:
    return (rows[:, :3] - history[:, :3].mean(axis=0)) / history[:, :3].std(axis=0)


def shrunk(history: Array) -> Array:
    S = ledoit_wolf(standardised(history, history))[0]
    return np.asarray(S + 1e-3 * np.trace(S) / 3 * np.eye(3))


HISTORY, ROWS = plant_rows(400, seed=0), plant_rows(30, seed=1) + 0.5


def test_t2_is_the_squared_mahalanobis_distance_without_constant_sensors() -> None:
    inverse = np.linalg.inv(shrunk(HISTORY))
    expected = [mahalanobis(z, np.zeros(3), inverse) ** 2 for z in standardised(HISTORY, ROWS)]
    np.testing.assert_allclose(t2(HISTORY)(ROWS), expected)


def test_mewma_is_its_recursion() -> None:
    inverse, w, expected = np.linalg.inv(shrunk(HISTORY) * 0.2 / 1.8), np.zeros(3), []
    for z in standardised(HISTORY, ROWS):
        w = 0.2 * z + 0.8 * w
        expected.append(w @ inverse @ w)
    np.testing.assert_allclose(mewma(HISTORY)(ROWS), expected)


def test_q_is_what_principal_components_leave() -> None:
    z, new = standardised(HISTORY, HISTORY), standardised(HISTORY, ROWS)
    parts = PCA(0.9).fit(z)
    assert parts.n_components_ == 1
    expected = np.sum((new - parts.inverse_transform(parts.transform(new))) ** 2, axis=1)
    np.testing.assert_allclose(pca_q(HISTORY)(ROWS), expected)
    assert (pca_q(HISTORY[:, :1])(ROWS[:, :1]) >= 0).all()  # something is left of a single sensor too


def test_ridge_is_the_regression_of_each_sensor_on_the_others_and_on_the_row_before() -> None:
    def beside(z: Array) -> Array:
        return np.hstack([z, np.vstack([z[:1], z[:-1]])])

    y, new = beside(standardised(HISTORY, HISTORY)), beside(standardised(HISTORY, ROWS))
    sizes = []
    for k in range(3):
        model = Ridge(alpha=1e-3 * len(y), fit_intercept=False).fit(np.delete(y, k, axis=1), y[:, k])
        spread = (y[:, k] - model.predict(np.delete(y, k, axis=1))).std()
        sizes.append(np.abs(new[:, k] - model.predict(np.delete(new, k, axis=1))) / spread)
    np.testing.assert_allclose(ridge(HISTORY)(ROWS), np.max(sizes, axis=0))


@pytest.mark.parametrize("name", CHARTS)
def test_a_large_deviation_is_the_largest_value(name: str) -> None:
    rows = ROWS.copy()
    rows[12, :3] += [9.0, -9.0, 9.0]
    values = CHARTS[name](HISTORY)(rows)
    assert values.shape == (30,)
    assert values.argmax() == 12


def test_a_history_in_which_nothing_moves_is_refused() -> None:
    with pytest.raises(ValueError, match="no sensor varies"):
        t2(np.full((50, 2), 0.1))


def test_each_half_is_judged_by_the_other() -> None:
    first, second = HISTORY[:200], HISTORY[200:]
    values = held_out(t2, HISTORY)
    np.testing.assert_allclose(values, np.r_[t2(second)(first), t2(first)(second)])


# -- thresholds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("history", "rate"), [(20_000, 1 / 1000), (1_000, 1 / 3000)])
def test_the_threshold_is_passed_at_the_given_rate(history: int, rate: float) -> None:
    """Of exponential values, P(value > level) = exp(-level): without simulating what comes, counted or extended."""
    rng = np.random.default_rng(5)
    rates = [np.exp(-threshold(rng.exponential(size=history), rate).level) for _ in range(200)]
    assert np.median(rates) == pytest.approx(rate, rel=0.2)


def test_values_next_to_a_larger_one_are_of_its_cluster() -> None:
    values = np.zeros(1000)
    values[100:110], values[400:405] = 5.0, 4.0
    values[[600, 800]] = 3.0, 2.0
    assert [threshold(values, n / 1000).level for n in (3, 4)] == [3.0, 2.0]


def test_a_history_too_short_for_the_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="give a longer history"):
        threshold(np.arange(100.0), 0.2)
    with pytest.raises(ValueError, match="give a longer history"):
        threshold(np.arange(5.0), 0.01)


def test_an_alarm_is_on_for_ten_rows_and_begins_once() -> None:
    values = np.zeros(40)
    values[[0, 20, 26]] = 2.0, 3.0, 2.0
    alarms = Alarms.where(held(values) > 1.0)
    assert np.flatnonzero(alarms.on).tolist() == [*range(10), *range(20, 36)]
    assert alarms.begins.tolist() == [0, 20]
    assert alarms.changes.tolist() == [0, 10, 20, 36]
