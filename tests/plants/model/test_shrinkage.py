"""Shrunk covariances are Ledoit and Wolf's; gaps are filled with what the other readings predict."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.covariance import ledoit_wolf

from eccaht.plants.model.fitting import shrunk_covariance
from eccaht.plants.model.residuals import check_precision, completed


@pytest.mark.parametrize(("rows", "columns"), [(5, 3), (40, 12), (30, 60), (4000, 8)])
def test_the_share_is_that_of_ledoit_and_wolf(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    z = rng.standard_normal((rows, columns)) @ rng.standard_normal((columns, columns))
    assert_allclose(shrunk_covariance(z), ledoit_wolf(z, assume_centered=True)[0], rtol=1e-10, atol=1e-10)


def test_rows_without_any_spread_have_a_covariance_of_nothing() -> None:
    assert not shrunk_covariance(np.zeros((5, 3))).any()


def test_missing_readings_are_the_conditional_means() -> None:
    rng = np.random.default_rng(0)
    root = rng.standard_normal((6, 6))
    covariance = root @ root.T + np.eye(6)
    y = rng.standard_normal((7, 6))
    y[1, 2] = y[3, [0, 4]] = y[4, [0, 4]] = y[6, :] = np.nan
    filled = completed(y, np.asarray(np.linalg.inv(covariance), dtype=np.float64))
    for row, whole in zip(y, filled, strict=True):
        gone, there = np.isnan(row), ~np.isnan(row)
        assert_allclose(whole[there], row[there])
        expected = covariance[np.ix_(gone, there)] @ np.linalg.solve(covariance[np.ix_(there, there)], row[there])
        assert_allclose(whole[gone], expected, atol=1e-12)


def test_whole_windows_are_left_as_they_are() -> None:
    y = np.ones((3, 2))
    assert completed(y, np.eye(2)) is y


@pytest.mark.parametrize("matrix", [-np.eye(2), np.ones((2, 2)), np.diag([1.0, 1e-14]), 1e16 * np.eye(2)])
def test_what_is_no_precision_is_refused(matrix: np.ndarray) -> None:
    with pytest.raises(ValueError, match="not positive definite"):
        check_precision(matrix)
