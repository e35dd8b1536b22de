"""Alarms of recorded windows: where they begin, and thresholds with at most so many of them."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.watch_real import WATCHERS, alarms, lowest_thresholds, watch
from benchmarks.watch_rules import beyond

from eccaht.datasets.labelled import find_entities
from tests.datasets.labelled_format import write_collection


def test_windows_within_an_hour_are_one_alarm() -> None:
    flagged = np.zeros(300, dtype=bool)
    flagged[[0, 60, 120, 181, 290]] = True
    assert alarms(flagged, 60).tolist() == [0, 181, 290]
    assert alarms(~np.ones(9, dtype=bool), 60).size == 0


@pytest.mark.parametrize("most", [0, 1, 4, 9])
def test_the_lowest_threshold_is_one_step_above_too_many_alarms(most: int) -> None:
    statistic = np.random.default_rng(most).standard_normal(2000)
    (threshold,) = lowest_thresholds(statistic[:, None], 20, most)
    assert alarms(statistic >= threshold, 20).size <= most
    below = statistic[statistic < threshold].max()
    assert alarms(statistic >= below, 20).size > most


def test_a_slow_statistic_is_not_flagged_all_the_time() -> None:
    statistic = np.sin(np.linspace(0.0, 6.0, 1000))
    (threshold,) = lowest_thresholds(statistic[:, None], 20, 9)
    assert alarms(statistic >= threshold, 20).size == 1
    assert np.mean(statistic >= threshold) == pytest.approx(0.05)


def test_several_statistics_share_the_alarms() -> None:
    statistics = np.random.default_rng(0).standard_normal((3000, 3)) * (1.0, 10.0, 100.0)
    thresholds = lowest_thresholds(statistics, 10, 12)
    assert 9 <= alarms(beyond(statistics, thresholds), 10).size <= 12
    alone = [alarms(column >= threshold, 10).size for column, threshold in zip(statistics.T, thresholds, strict=True)]
    assert len(set(alone)) == 1


def test_a_fault_that_breaks_a_correlation_is_found_at_once_by_t2_alone(tmp_path: Path) -> None:
    """Metrics 1 and 4 leave their near-duplicates in row 10; the training rows are less than half a day."""
    (entity,) = find_entities(write_collection(tmp_path / "small", ["one"]))
    assert {"T2", "Mei", "ocd"} <= set(WATCHERS)
    assert not [name for name in WATCHERS if "rising" in name]
    (row,) = watch(entity, "T2")
    assert (row["incidents"], row["false"], row["days"]) == (2, 0, pytest.approx(10 / 1440))
    assert row["minutes"][0] == 0.0
