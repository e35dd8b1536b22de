"""Rows in any order, twice and one sensor at a time give the windows of the rows in order."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eccaht.base.clock import PLAIN
from eccaht.base.randomness import rng_for
from eccaht.plants.data.windower import Windower
from eccaht.plants.data.windows import Batch
from eccaht.service.runtime.buffer import Buffer, Readings, Seen

NAMES, SECONDS = ("a", "b", "c"), 5.0


def made(lateness: float, most: int = 10_000) -> Buffer:
    return Buffer(NAMES, SECONDS, PLAIN, lateness, most)


def some(rows: int, seed: int) -> Readings:
    """Rows at odd moments, some readings missing."""
    rng = rng_for(seed, "buffer")
    times = np.sort(rng.choice(rows * 2_000_000, rows, replace=False))
    values = rng.standard_normal((rows, len(NAMES)))
    values[rng.random(values.shape) < 0.2] = np.nan
    return Readings(times, values)


def in_order(rows: Readings) -> list[tuple[int, bytes]]:
    """The complete windows of the rows in order, by the library's own windower."""
    windows = Windower(NAMES, SECONDS).add(Batch(rows.times.astype("datetime64[us]"), rows.values))
    return [
        (int(start), value.tobytes()) for start, value in zip(windows.starts.astype(int), windows.values, strict=True)
    ]


def through(buffer: Buffer, parts: list[Readings]) -> tuple[list[tuple[int, bytes]], int, int]:
    windows, late, duplicate = [], 0, 0
    for part in parts:
        released = buffer.add(part)
        found = released.windows
        windows += [
            (int(start), value.tobytes()) for start, value in zip(found.starts.astype(int), found.values, strict=True)
        ]
        late, duplicate = late + released.late, duplicate + released.duplicate
    return windows, late, duplicate


@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 60), seed=st.integers(0, 10_000), data=st.data())
def test_the_order_and_the_parts_do_not_matter_within_the_lateness(rows: int, seed: int, data: st.DataObject) -> None:
    readings = some(rows, seed)
    rng = rng_for(seed, "order")
    lateness = data.draw(st.sampled_from([0.0, 3.0, 20.0]))
    moved = np.argsort(readings.times + rng.uniform(0, lateness * 1e6, rows), kind="stable")
    parts = np.array_split(moved, data.draw(st.integers(1, rows)))
    cells = []
    for part in parts:
        whole = readings.pick(part)
        if data.draw(st.booleans()):  # one sensor at a time
            for row, k in itertools.product(range(len(part)), range(len(NAMES))):
                one = np.full((1, len(NAMES)), np.nan)
                one[0, k] = whole.values[row, k]
                cells.append(Readings(whole.times[row : row + 1], one))
        else:
            cells.append(whole)
        cells += [cells[-1]] * data.draw(st.integers(0, 1))
    buffer = made(lateness)
    windows, late, _ = through(buffer, cells)
    expected = in_order(readings)
    assert late == 0
    # after a gap the buffer, which allows for the lateness, believes the last row sooner than the windower
    assert windows[: len(expected)] == expected[: len(windows)]
    end = Readings(readings.times[-1:] + np.array([10**9, 10**9 + 5_000_000]), np.zeros((2, len(NAMES))))
    rest, _, _ = through(buffer, [end])
    assert [*windows, *rest][: len(expected)] == expected


def test_what_comes_again_is_a_duplicate_and_what_comes_late_is_late_once() -> None:
    times = np.array([0, 1, 6, 12]) * 1_000_000
    rows = Readings(times, np.arange(12.0).reshape(4, 3))
    buffer = made(0.0)
    assert through(buffer, [rows])[1:] == (0, 0)
    assert through(buffer, [rows])[1:] == (0, 4)
    late = Readings(np.array([2_000_000]), np.ones((1, 3)))
    assert through(buffer, [late, late, late])[1:] == (1, 2)


def test_rows_that_wait_survive_as_bytes() -> None:
    rows = some(20, 4)
    again = Readings.parse(rows.to_bytes(), len(NAMES))
    np.testing.assert_array_equal(again.times, rows.times)
    np.testing.assert_array_equal(again.values, rows.values)
    seen = Seen.of(rows)
    parsed = Seen.parse(seen.to_bytes(), len(NAMES))
    np.testing.assert_array_equal(parsed.present, seen.present)
    assert parsed.with_more(seen)[1] == len(rows.times)
    assert parsed.with_more(Seen(rows.times[-1:] + 1, np.zeros((1, 3), dtype=bool)))[1] == 0


def test_a_buffer_built_from_what_was_new_goes_on_the_same() -> None:
    rows = some(60, 9)
    whole, first = made(4.0), made(4.0)
    kept, done = [], []
    for k in range(0, 30, 3):
        released = first.add(rows.pick(slice(k, k + 3)))
        kept.append(first.to_bytes(released.new))
        done += list(zip(released.windows.starts.astype(int).tolist(), released.seen, strict=True))
    second = made(4.0)
    for start, seen in done:
        second.remember(start, seen)
    for new in kept:
        second.put(new)
    for k in range(30, 60, 3):
        first.add(rows.pick(slice(k, k + 3)))
    expected, *_ = through(whole, [rows.pick(slice(k, k + 3)) for k in range(0, 60, 3)])
    found, *_ = through(second, [rows.pick(slice(k, k + 3)) for k in range(30, 60, 3)])
    assert len(found) > 2
    assert expected[len(done) :] == found


def test_no_rows_change_nothing() -> None:
    assert through(made(0.0), [Readings.none(3)]) == ([], 0, 0)


def at(*seconds: float) -> Readings:
    return Readings((np.array(seconds) * 1e6).astype(np.int64), np.tile(np.array(seconds)[:, None], 3))


def complete(buffer: Buffer, *parts: Readings) -> tuple[list[float], int]:
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
            done += list(zip(released.windows.starts.astype(int).tolist(), released.seen, strict=True))
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
    windows = buffer.add(at(2030.0, 2036.0), 10 * limit).windows  # the clock of the machine was set right
    assert windows.starts.astype(int)[-1] == 2030 * 1_000_000


def test_what_waits_drains_when_there_is_too_much_of_it() -> None:
    buffer = made(86_400.0, most=50)
    windows, late = complete(buffer, *(at(*(k + j / 10 for j in range(10))) for k in range(100)))
    assert late == 0
    assert len(buffer.rows.times) <= 50
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
    rows = Readings(np.arange(1, 10_001), np.ones((10_000, 3)))
    first, second = buffer.add(rows), buffer.add(rows)
    assert (first.late, first.duplicate, second.late, second.duplicate) == (10_000, 0, 0, 10_000)
    assert len(first.again) == 1
