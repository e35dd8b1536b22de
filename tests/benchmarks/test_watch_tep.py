"""The charts of process monitoring, on recordings in the layout of Tennessee Eastman."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.watch_tep import CHARTS, compare, lagged, pca_q, pca_t2, t2
from numpy.testing import assert_allclose

from benchmarks import watch_tep
from eccaht.arrays import Array


def plant(rows: int, seed: int) -> Array:
    """Twelve variables that follow three causes."""
    rng = np.random.default_rng(seed)
    loads = np.random.default_rng(7).standard_normal((3, 12))
    return 5.0 + rng.standard_normal((rows, 3)) @ loads + 0.3 * rng.standard_normal((rows, 12))


def write(path: Path, rows: Array) -> None:
    table = pl.DataFrame(rows, schema=[f"v{k}" for k in range(rows.shape[1])])
    table.insert_column(0, pl.Series("time", [f"row {t}" for t in range(len(rows))]))
    path.write_bytes(table.write_csv().encode())


def test_with_all_components_t2_is_that_of_the_full_covariance_and_q_is_0() -> None:
    learned, new = plant(200, 0), plant(50, 1)
    assert_allclose(pca_t2(learned, 12)(new), t2(learned)(new))
    assert_allclose(pca_q(learned, 12)(new), 0.0, atol=1e-9)


def test_t2_is_the_distance_from_the_mean() -> None:
    learned, new = plant(200, 0), plant(5, 1)
    Q = np.linalg.inv(np.cov(learned.T))
    assert_allclose(t2(learned)(new), [(x - learned.mean(axis=0)) @ Q @ (x - learned.mean(axis=0)) for x in new])


def test_q_is_the_distance_from_the_nearest_point_of_the_plane() -> None:
    learned, new = plant(200, 0), plant(5, 1)
    scaled = (learned - learned.mean(axis=0)) / learned.std(axis=0, ddof=1)
    plane = np.linalg.svd(scaled, full_matrices=False)[2][:3].T
    points = ((new - learned.mean(axis=0)) / learned.std(axis=0, ddof=1)).T
    nearest = plane @ np.linalg.lstsq(plane, points, rcond=None)[0]
    assert_allclose(pca_q(learned, 3)(new), ((points - nearest) ** 2).sum(axis=0))


def test_lagged_windows_stand_beside_the_two_before() -> None:
    seen: list[Array] = []

    def chart(rows: Array, _: int) -> watch_tep.Statistic:
        seen.append(rows)
        return lambda new: new @ np.array([1.0, 10.0, 100.0])

    statistic = lagged(chart)(np.array([[1.0], [2.0], [3.0], [4.0]]))
    assert seen[0].tolist() == [[3.0, 2.0, 1.0], [4.0, 3.0, 2.0]]
    assert statistic(np.array([[5.0], [6.0], [7.0]])).tolist() == [555.0, 556.0, 567.0]


@pytest.mark.parametrize("name", CHARTS)
def test_a_broken_correlation_is_flagged_from_its_onset_on(name: str, tmp_path: Path) -> None:
    broken, same = plant(300, 2), plant(300, 3)
    broken[watch_tep.ONSET :, 4] += 8.0
    recordings = (plant(300, 0), plant(500, 1), broken, same)
    for file, rows in zip(("normal", "normal-test", "fault-01", "fault-02"), recordings, strict=True):
        write(tmp_path / f"{file}.csv.gz", rows)
    first, second = compare(tmp_path, name)
    assert (first["fault"], second["fault"]) == ("01", "02")
    assert second["flagged"] < 0.1
    assert second["minutes"] is None
    if name in ("T2, full covariance", "dynamic PCA Q"):
        assert first["flagged"] > 0.95
        assert first["minutes"] == 0
