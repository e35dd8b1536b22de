"""Filling, scaling and windows against plain Python that looks at one row after another."""

import math
import statistics
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from eccaht.plants.data import cleaning
from eccaht.plants.data.windows import Cut, Times, Windows
from eccaht.plants.model.history import longest_run

NAN = math.nan
readings = st.one_of(st.just(NAN), st.integers(-3, 3).map(float), st.floats(-100, 100))
gappy = st.lists(readings, min_size=1, max_size=40).filter(lambda values: not all(map(math.isnan, values)))


def moments(seconds: list[int]) -> Times:
    return (np.cumsum(np.array(seconds, dtype=np.int64)) * 1_000_000).view("datetime64[us]")


def interpolated(column: list[float], t: list[int]) -> list[float]:
    """Row by row: the nearest readings before and after, and the straight line between them."""
    filled = []
    for k, value in enumerate(column):
        before = [q for q in range(k) if not math.isnan(column[q])]
        after = [q for q in range(k + 1, len(column)) if not math.isnan(column[q])]
        if not math.isnan(value):
            filled.append(value)
        elif before and after:
            a, b = before[-1], after[0]
            share = (t[k] - t[a]) / (t[b] - t[a]) if t[b] > t[a] else 0.0
            filled.append(column[a] + share * (column[b] - column[a]))
        else:
            filled.append(column[before[-1]] if before else column[after[0]])
    return filled


@given(gappy, st.data())
def test_continuous_columns_are_interpolated_in_time(column: list[float], data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.integers(0, 100), min_size=len(column), max_size=len(column)))
    times = moments(steps)
    t = [int(x) for x in times.astype(np.int64)]
    assert cleaning.fill_continuous(np.array(column), times) == pytest.approx(interpolated(column, t), abs=1e-9)


@given(gappy)
def test_status_columns_keep_their_last_value(column: list[float]) -> None:
    expected, last = [], next(value for value in column if not math.isnan(value))
    for value in column:
        last = last if math.isnan(value) else value
        expected.append(last)
    assert cleaning.fill_status(np.array(column)).tolist() == expected


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([0, 1, 1, 0], "status"),
        ([0, 1, NAN], "status"),
        ([1000, -7, 12], "status"),
        (list(range(10)), "status"),
        (list(range(11)), "continuous"),
        ([0, 1, 0.5], "continuous"),
        ([0] * 2000 + [0.5], "continuous"),
        ([0] * 2000 + list(range(20)), "continuous"),
    ],
)
def test_few_whole_values_are_a_status(column: list[float], kind: str) -> None:
    assert cleaning.kind_of(np.array(column, dtype=float)) == kind


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200))
def test_scaling_is_by_median_and_interquartile_range(column: list[float]) -> None:
    quartiles, scale, by = cleaning.robust_scale(np.array(column))
    assert quartiles[1] == pytest.approx(statistics.median(column), abs=1e-6)
    if len(column) > 1:
        expected = statistics.quantiles(column, n=4, method="inclusive")
        assert quartiles == pytest.approx(np.array(expected), rel=1e-9, abs=1e-6)
    if by == "iqr":
        assert scale == quartiles[2] - quartiles[0] > 0
    else:
        assert quartiles[2] == quartiles[0]
        assert scale == pytest.approx(statistics.pstdev(column), rel=1e-6, abs=1e-6)


def test_row_numbers() -> None:
    assert cleaning.is_row_number(np.arange(7.0, 100.0))
    assert not cleaning.is_row_number(np.array([1.0, 2.0, 3.0, 3.0]))
    assert not cleaning.is_row_number(np.array([0.0, 2.0, 4.0]))


# -- windows -------------------------------------------------------------------------------------------


@given(gappy, st.integers(1, 50), st.data())
def test_windows_are_whole_and_means(column: list[float], seconds: int, data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.integers(0, 40), min_size=len(column), max_size=len(column)))
    times = moments([1000 + steps[0], *steps[1:]])
    groups: dict[int, list[float]] = {}
    for t, value in zip(times.astype(np.int64) // 1_000_000, column, strict=True):
        groups.setdefault(int(t) // seconds * seconds, []).append(value)
    cut = Cut.of(times, float(seconds))
    assert (cut.starts.astype(np.int64) // 1_000_000).tolist() == sorted(groups)
    assert cut.rows.tolist() == [len(groups[start]) for start in sorted(groups)]
    present = [[value for value in groups[start] if not math.isnan(value)] for start in sorted(groups)]
    expected = [statistics.fmean(values) if values else NAN for values in present]
    assert cut.means_of_present(np.array(column)) == pytest.approx(expected, abs=1e-9, nan_ok=True)


def test_between_is_half_open() -> None:
    starts = np.datetime64("2020-01-01T00:00", "us") + np.arange(5) * np.timedelta64(60, "s")
    windows = Windows(starts, np.arange(10.0).reshape(5, 2), ("a", "b"), 60.0)
    part = windows.between("2020-01-01T00:01", "2020-01-01T00:03")
    assert part.values.tolist() == [[2, 3], [4, 5]]
    assert part.starts[0] == np.datetime64("2020-01-01T00:01")
    assert len(windows.between(stop="2019-01-01").starts) == 0
    assert len(windows.between("2020-01-01T00:03", "2020-01-01T00:01").starts) == 0
    assert len(windows.between().starts) == 5


# -- shares of the rows ----------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 2), min_size=1, max_size=60))
def test_the_longest_run(column: list[int]) -> None:
    longest = current = 1
    for before, now in pairwise(column):
        current = current + 1 if before == now else 1
        longest = max(longest, current)
    assert longest_run(np.array(column, dtype=float)) == longest / len(column)
