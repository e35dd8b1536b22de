"""Rows in any order, twice and one sensor at a time give the windows of the rows in order."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eccaht.data.clock import PLAIN
from eccaht.data.windows import Batch, Windower
from eccaht.live.buffer import Buffer, Readings, Seen
from eccaht.randomness import rng_for

NAMES, SECONDS = ("a", "b", "c"), 5.0


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
    buffer = Buffer(NAMES, SECONDS, PLAIN, lateness)
    windows, late, _ = through(buffer, cells)
    expected = in_order(readings)
    assert late == 0
    assert windows == expected[: len(windows)]
    end = Readings(readings.times[-1:] + 10**9, np.zeros((1, len(NAMES))))
    rest, _, _ = through(buffer, [end])
    assert [*windows, *rest][: len(expected)] == expected


def test_what_comes_again_is_a_duplicate_and_what_comes_late_is_late_once() -> None:
    times = np.array([0, 1, 6, 12]) * 1_000_000
    rows = Readings(times, np.arange(12.0).reshape(4, 3))
    buffer = Buffer(NAMES, SECONDS, PLAIN, 0.0)
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
    assert all(parsed.has(time, ~np.isnan(row)) for time, row in zip(rows.times.tolist(), rows.values, strict=True))
    assert not parsed.has(int(rows.times[-1]) + 1, np.zeros(3, dtype=bool))


def test_a_buffer_built_from_what_was_new_goes_on_the_same() -> None:
    rows = some(60, 9)
    whole, first = Buffer(NAMES, SECONDS, PLAIN, 4.0), Buffer(NAMES, SECONDS, PLAIN, 4.0)
    kept, done = [], []
    for k in range(0, 30, 3):
        released = first.add(rows.pick(slice(k, k + 3)))
        kept.append(released.new)
        done += list(zip(released.windows.starts.astype(int).tolist(), released.seen, strict=True))
    second = Buffer(NAMES, SECONDS, PLAIN, 4.0)
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
    assert through(Buffer(NAMES, SECONDS, PLAIN, 0.0), [Readings.none(3)]) == ([], 0, 0)
