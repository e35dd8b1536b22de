"""Tier 1 moves real rows by known amounts, tier 2 scores against labels; full covariance pays where streams agree."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from eccaht.datasets.smd import Segment, calibrate_rows, find_entities, read_entity, scaled_rows
from eccaht.experiments.localisation import RecordedSearch, pooled, savings
from eccaht.experiments.smd import (
    CHANCE,
    POLICIES,
    Z_SCORE,
    Settings,
    correlated,
    injected,
    labelled,
    precision_over,
    precision_table,
    run_tier1,
    run_tier2,
    z_score_hits,
)
from tests.datasets.smd_format import small_rows, write_collection

DATA = os.environ.get("ECCAHT_SERVER_DATA", "")


def test_injected_rows_are_rows_of_the_data_moved_by_the_shift() -> None:
    rows = small_rows(300, seed=0)
    calibration = calibrate_rows(rows[:150])
    settings = Settings(shift=2.5, horizon=100, runs=3)
    searches = injected(calibration, rows[150:], 2, settings, "x")
    assert len({tuple(search.truth) for search in searches}) > 1
    for search in searches:
        moved = np.zeros(7)
        moved[search.truth] = 2.5
        back = search.rows - moved
        real = {tuple(row) for row in scaled_rows(calibration, rows[150:]).round(9).tolist()}
        drawn = [tuple(row) for row in back.round(9).tolist()]
        assert set(drawn) <= real
        assert len(set(drawn)) == 100  # none twice
        assert search.truth.size == search.problem.n_anomalies == 2


def test_a_run_does_not_depend_on_how_many_there_are() -> None:
    rows = small_rows(300, seed=0)
    calibration = calibrate_rows(rows[:150])
    few, many = (injected(calibration, rows[150:], 1, Settings(runs=n, horizon=20), "x") for n in (1, 4))
    np.testing.assert_array_equal(few[0].rows, many[0].rows)
    with pytest.raises(ValueError, match="fewer than the horizon"):
        injected(calibration, rows[290:], 1, Settings(), "x")


def test_correlations_are_described_from_the_correlation_matrix() -> None:
    rows = small_rows(4000, seed=3)
    known = correlated(calibrate_rows(rows, estimator="empirical"))
    R = np.corrcoef(rows[:, [0, 1, 2, 4, 5, 6, 7]].T)
    assert known.metrics == 7
    assert known.closest == pytest.approx(np.median(np.abs(R - np.eye(7)).max(axis=1)), abs=1e-4)
    eigenvalues = np.linalg.eigvalsh(R) / 7
    assert known.effective_rank == pytest.approx(np.exp(-(eigenvalues * np.log(eigenvalues)).sum()), rel=1e-3)


def test_full_covariance_needs_fewer_measurements_where_metrics_are_duplicates(tmp_path: Path) -> None:
    entities = find_entities(write_collection(tmp_path, ["e"]))
    tier = run_tier1(entities, ("ecc-aht", "diagonal"), Settings((1,), shift=1.0, horizon=100, runs=12))
    (saved,) = savings(pooled(tier.records[1]), seed=0)
    assert saved.more.interval is not None
    assert saved.more.interval[0] > 0


def test_labels_on_constant_metrics_or_on_all_are_no_search() -> None:
    rows = small_rows(300, seed=0)
    calibration = calibrate_rows(rows)
    assert labelled(calibration, rows, Segment(0, 10, (3,)), Settings()) == (
        "all its metrics are constant in the training rows"
    )
    assert labelled(calibration, rows, Segment(0, 10, tuple(range(8))), Settings()) == "every metric is labelled"
    search = labelled(calibration, rows, Segment(0, 50, (3, 4)), Settings(horizon=20))
    assert isinstance(search, RecordedSearch)
    assert search.rows.shape == (20, 7)
    assert search.truth.tolist() == [3]


def test_the_z_score_ranks_by_the_distance_of_the_mean() -> None:
    calibration = calibrate_rows(small_rows(300, seed=0))
    rows = small_rows(40, seed=9)
    rows[:, 4] -= 20.0
    rows[:, 0] += 8.0
    search = labelled(calibration, rows, Segment(0, 40, (4, 5)), Settings())
    assert isinstance(search, RecordedSearch)
    assert z_score_hits(search) == 1  # 4 and 0 are farthest, of which 4 is labelled


def test_tier_2_scores_policies_beside_what_sees_everything(tmp_path: Path) -> None:
    entities = find_entities(write_collection(tmp_path, ["e", "f"]))
    names = ("diagonal", "round-robin")
    tier = run_tier2(entities, names, Settings(runs=2, shift=4.0))
    label = entities[0].label
    assert tier.rows[label] == [30, 10]
    assert list(tier.precision[label]) == [*names, Z_SCORE, CHANCE]
    assert tier.precision[label][CHANCE].tolist() == [2 / 7, 1 / 7]
    assert tier.precision[label][Z_SCORE].tolist() == [1.0, 1.0]
    told = precision_over(tier, [label, entities[1].label], seed=0)
    assert told[CHANCE].mean == pytest.approx(3 / 14)
    table = precision_table(tier)
    assert len(table["precision"]) == 2 * 2 * 4
    assert precision_over(tier, [], seed=0) == {}


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="shift 0 is no anomaly"):
        Settings(shift=0.0)
    with pytest.raises(ValueError, match="once"):
        Settings((1, 1))
    with pytest.raises(ValueError, match="number of anomalies"):
        Settings((0,))
    assert {"ecc-aht", "diagonal", "random-sparse", "round-robin"} <= set(POLICIES)


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="ECCAHT_SERVER_DATA does not name a directory with the server data")
def test_full_covariance_pays_on_real_servers() -> None:
    entities = find_entities(Path(DATA))
    assert read_entity(entities[0])[0].shape[1] == read_entity(entities[0])[1].shape[1]
    tier = run_tier1(entities, ("ecc-aht", "diagonal"), Settings((1,), runs=10), jobs=2)
    (saved,) = savings(pooled(tier.records[1]), seed=0)
    assert saved.more.interval is not None
    assert saved.more.interval[0] > 0
