"""Rows in any order, twice and one sensor at a time give the windows of the rows in order."""

import itertools
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.plants.data.lines import Faults
from eccaht.plants.data.source import Arrays
from eccaht.plants.data.windows import Cut, Moved
from eccaht.plants.intake import Intake, ReleasedWindows, Rows, SeenReadings
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model

NAMES, SECONDS = ("a", "b", "c"), 5.0


@lru_cache(maxsize=1)
def model() -> Model:
    """A model that leaves readings as they are; its constant is 7."""
    readings = np.column_stack([rng_for(0, "history").standard_normal((2000, 3)), np.full(2000, 7.0)])
    times = np.datetime64("2024-05-01T08:00", "us") + np.arange(2000) * np.timedelta64(1, "s")
    calibrated = calibrate(Arrays(readings, times, (*NAMES, "valve")), window="5s")
    return replace(calibrated, center=np.zeros(3), scale=np.ones(3))


def made(lateness: float, most: int | None = 10_000) -> Intake:
    return Intake(model(), lateness=lateness, most=most, merging=True)


def rows_of(microseconds: Any, values: Array) -> Rows:
    return Rows(np.asarray(microseconds, dtype=np.int64).astype("datetime64[us]"), NAMES, values)


def some(rows: int, seed: int) -> Rows:
    """Rows at odd moments, some readings missing."""
    rng = rng_for(seed, "buffer")
    times = np.sort(rng.choice(rows * 2_000_000, rows, replace=False))
    values = rng.standard_normal((rows, len(NAMES)))
    values[rng.random(values.shape) < 0.2] = np.nan
    return rows_of(times, values)


def pick(rows: Rows, which: Any) -> Rows:
    return Rows(rows.times[which], NAMES, rows.values[which])


def in_order(rows: Rows) -> list[tuple[int, bytes]]:
    """The windows of the rows in order, as a recording has them; the last is not complete."""
    cut = Cut.of(rows.times, SECONDS)
    values = cut.means_of_present(rows.values[:, :3])
    return [(int(start), value.tobytes()) for start, value in zip(cut.starts.astype(int), values, strict=True)][:-1]


def starts(released: ReleasedWindows) -> list[int]:
    return [int(sample.start.astype(int)) for sample in released.samples]


def through(buffer: Intake, parts: list[Rows]) -> tuple[list[tuple[int, bytes]], int, int]:
    windows, late, duplicate = [], 0, 0
    for part in parts:
        released = buffer.add(part)
        windows += [(int(sample.start.astype(int)), sample.values.tobytes()) for sample in released.samples]
        late, duplicate = late + released.late, duplicate + released.duplicate
    return windows, late, duplicate


@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 60), seed=st.integers(0, 10_000), data=st.data())
def test_the_order_and_the_parts_do_not_matter_within_the_lateness(rows: int, seed: int, data: st.DataObject) -> None:
    readings = some(rows, seed)
    rng = rng_for(seed, "order")
    lateness = data.draw(st.sampled_from([0.0, 3.0, 20.0]))
    moved = np.argsort(readings.times.astype(int) + rng.uniform(0, lateness * 1e6, rows), kind="stable")
    parts = np.array_split(moved, data.draw(st.integers(1, rows)))
    cells = []
    for part in parts:
        whole = pick(readings, part)
        if data.draw(st.booleans()):  # one sensor at a time
            for row, k in itertools.product(range(len(part)), range(len(NAMES))):
                one = np.full((1, len(NAMES)), np.nan)
                one[0, k] = whole.values[row, k]
                cells.append(rows_of(whole.times[row : row + 1], one))
        else:
            cells.append(whole)
        cells += [cells[-1]] * data.draw(st.integers(0, 1))
    buffer = made(lateness)
    windows, late, _ = through(buffer, cells)
    expected = in_order(readings)
    assert late == 0
    # after a gap the buffer, which allows for the lateness, believes the last row sooner
    assert windows[: len(expected)] == expected[: len(windows)]
    end = rows_of(readings.times[-1:].astype(int) + np.array([10**9, 10**9 + 5_000_000]), np.zeros((2, len(NAMES))))
    rest, _, _ = through(buffer, [end])
    assert [*windows, *rest][: len(expected)] == expected


def test_what_comes_again_is_a_duplicate_and_what_comes_late_is_late_once() -> None:
    times = np.array([0, 1, 6, 12]) * 1_000_000
    rows = rows_of(times, np.arange(12.0).reshape(4, 3))
    buffer = made(0.0)
    assert through(buffer, [rows])[1:] == (0, 0)
    assert through(buffer, [rows])[1:] == (0, 4)
    late = rows_of(np.array([2_000_000]), np.ones((1, 3)))
    assert through(buffer, [late, late, late])[1:] == (1, 2)


def test_what_was_seen_survives_as_bytes() -> None:
    rows = made(0.0).scaled(some(20, 4))
    seen = SeenReadings.of(rows)
    parsed = SeenReadings.parse(seen.to_bytes(), 4)
    np.testing.assert_array_equal(parsed.present, seen.present)
    assert parsed.with_more(seen)[1] == len(rows.times)
    assert parsed.with_more(SeenReadings(seen.times[-1:] + 1, np.zeros((1, 4), dtype=bool)))[1] == 0


def test_a_buffer_built_from_what_was_new_goes_on_the_same() -> None:
    rows = some(60, 9)
    whole, first = made(4.0), made(4.0)
    kept, done = [], []
    for k in range(0, 30, 3):
        released = first.add(pick(rows, slice(k, k + 3)))
        kept.append(first.to_bytes(released.new))
        done += list(zip(starts(released), released.seen, strict=True))
    second = made(4.0)
    for start, seen in done:
        second.remember(start, seen)
    for new in kept:
        second.put(new)
    for k in range(30, 60, 3):
        first.add(pick(rows, slice(k, k + 3)))
    expected, *_ = through(whole, [pick(rows, slice(k, k + 3)) for k in range(0, 60, 3)])
    found, *_ = through(second, [pick(rows, slice(k, k + 3)) for k in range(30, 60, 3)])
    assert len(found) > 2
    assert expected[len(done) :] == found


def test_no_rows_change_nothing() -> None:
    assert through(made(0.0), [rows_of([], np.zeros((0, 3)))]) == ([], 0, 0)


def at(*seconds: float) -> Rows:
    return rows_of((np.array(seconds) * 1e6).astype(np.int64), np.tile(np.array(seconds)[:, None], 3))


def complete(buffer: Intake, *parts: Rows) -> tuple[list[float], int]:
    """The starts of the windows that are complete, in seconds, and how many rows were late."""
    windows, late, _ = through(buffer, list(parts))
    return [start / 1e6 for start, _ in windows], late


def test_a_row_from_the_future_closes_no_window() -> None:
    buffer = made(0.0)
    assert complete(buffer, *map(at, range(8))) == ([0.0], 0)
    assert complete(buffer, at(72_000.0)) == ([], 0)
    assert buffer.held == 1
    assert complete(buffer, *map(at, range(8, 1000))) == ([5.0 * k for k in range(1, 199)], 0)


def test_the_same_after_a_restart_and_with_rows_from_the_future_all_along() -> None:
    buffer, kept, done = made(0.0), [], []
    for k in range(100):  # a source whose clock is 20 hours ahead sends beside the others
        for rows in (at(float(k)), at(72_000.0 + k)):
            released = buffer.add(rows)
            kept.append(buffer.to_bytes(released.new))
            done += list(zip(starts(released), released.seen, strict=True))
            assert released.late == 0
    assert [start / 1e6 for start, _ in done] == [5.0 * k for k in range(19)]
    again = made(0.0)
    for start, seen in done:
        again.remember(start, seen)
    for content in kept:
        again.put(content)
    assert (again.horizon.time, again.held, again.horizon.doubted) == (
        buffer.horizon.time, buffer.held, buffer.horizon.doubted
    )  # fmt: skip
    assert complete(again, at(100.0)) == complete(buffer, at(100.0)) == ([95.0], 0)


def test_after_a_gap_two_windows_that_agree_are_believed() -> None:
    buffer = made(0.0)
    assert complete(buffer, *map(at, range(7))) == ([0.0], 0)
    assert complete(buffer, at(3600.0), at(3601.0)) == ([], 0)
    assert complete(buffer, at(3605.0)) == ([5.0, 3600.0], 0)
    assert complete(buffer, at(7200.0, 7201.0, 7206.0, 7211.0)) == ([3605.0, 7200.0, 7205.0], 0)  # all at once


def test_no_gap_is_believed_beyond_the_limit() -> None:
    buffer = made(0.0)
    limit = 1000 * 1_000_000
    buffer.add(at(0.0, 6.0, 11.0), limit)
    for k in range(30):
        buffer.add(at(2000.0 + k), limit)
    assert buffer.horizon.time == 11_000_000
    assert buffer.held == 30
    released = buffer.add(at(2030.0, 2036.0), 10 * limit)  # the clock of the machine was set right
    assert starts(released)[-1] == 2030 * 1_000_000


def test_what_waits_drains_when_there_is_too_much_of_it() -> None:
    buffer = made(86_400.0, most=50)
    windows, late = complete(buffer, *(at(*(k + j / 10 for j in range(10))) for k in range(100)))
    assert late == 0
    assert len(buffer.waiting.times) <= 50
    assert windows == [5.0 * k for k in range(len(windows))]
    assert len(windows) >= 18


def test_a_window_of_more_rows_than_may_wait_is_complete_at_once_and_the_rest_late() -> None:
    buffer = made(0.0, most=20)
    assert complete(buffer, *(at(k / 10) for k in range(49))) == ([0.0], 28)
    assert complete(buffer, at(5.0), at(10.0)) == ([5.0], 0)


def test_rows_from_the_future_do_not_push_out_others() -> None:
    buffer = made(0.0, most=40)
    buffer.add(at(0.0, 6.0))
    left_out = sum(buffer.add(at(90_000.0 + 0.01 * k)).ahead for k in range(100))
    assert (buffer.held, left_out) == (20, 80)
    assert complete(buffer, at(12.0)) == ([5.0], 0)


def test_ten_thousand_late_rows_are_known_when_they_come_again() -> None:
    buffer = made(0.0, most=100_000)
    buffer.add(at(0.0, 6.0, 12.0))
    rows = rows_of(np.arange(1, 10_001), np.ones((10_000, 3)))
    first, second = buffer.add(rows), buffer.add(rows)
    assert (first.late, first.duplicate, second.late, second.duplicate) == (10_000, 0, 0, 10_000)
    assert len(first.again) == 1


def test_rows_of_one_time_all_count_where_they_are_not_merged() -> None:
    intake = Intake(model())
    assert intake.add(at(0.0, 1.0, 1.0, 6.0)).samples[0].values.tolist() == [2 / 3] * 3
    late = intake.add(at(0.0, 0.0))
    assert (late.late, late.duplicate, late.samples) == (2, 0, ())
    assert (intake.n_late, intake.unreported) == (2, 2)
    (second,) = intake.add(at(11.0)).samples
    assert (second.late, intake.n_late, intake.unreported) == (2, 2, 0)
    (last,) = intake.finish().samples
    assert last.values.tolist() == [11.0] * 3
    assert intake.add(at(12.0)).late == 1


def test_rows_that_no_other_agrees_with_can_be_left_out() -> None:
    intake = Intake(model())
    intake.add(at(0.0, 6.0))
    intake.add(at(7200.0))
    assert intake.drop_doubted().astype(int).tolist() == [7200 * 1_000_000]
    assert [sample.values[0] for sample in intake.finish().samples] == [6.0]


def test_impossible_values_are_missing_and_constants_that_move_are_in_their_window() -> None:
    faults = Faults()
    intake = Intake(model(), faults=faults)
    times = at(0.0, 1.0, 6.0, 12.0).times
    values = np.array([[1.0, 1e12, 7.0], [3.0, np.inf, 7.0], [0.0, 0.0, 8.0], [0.0, 0.0, 9.0]])
    first, second = intake.add(Rows(times, ("a", "b", "valve"), values)).samples
    np.testing.assert_array_equal(first.values, [2.0, np.nan, np.nan])
    assert (first.moved, second.moved) == ((), (Moved("valve", 7.0, 8.0, times[2]),))
    assert faults.values["b"][0] == 1
