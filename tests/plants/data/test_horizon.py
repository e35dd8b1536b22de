"""One row with a wrong time moves nothing, and times that agree are believed however they are cut into parts."""

import time

import numpy as np
from hypothesis import given, settings, strategies as st

from eccaht.base.clock import Clock
from eccaht.plants.data.horizon import BelievedTime, latest_believed

REACH = 2  # windows
STEP, HOUR = 60_000_000, 3_600_000_000


def heard(horizon: BelievedTime, *parts: list[int], limit: int | None = None) -> int | None:
    """The horizon after rows in parts; all of them wait for ever."""
    waiting: list[int] = []
    for part in parts:
        waiting = sorted({*waiting, *part})
        horizon.hear(np.array(part, dtype=np.int64), np.array(waiting, dtype=np.int64), limit)
    return horizon.time


@settings(deadline=None)
@given(
    steps=st.lists(st.integers(1, REACH * STEP), min_size=2, max_size=40),
    wrong=st.lists(st.tuples(st.integers(0, 39), st.integers(10 * HOUR, 10**6 * HOUR)), max_size=10),
)
def test_rows_with_wrong_times_between_others_move_nothing(steps: list[int], wrong: list[tuple[int, int]]) -> None:
    good = np.cumsum([0, *steps]).tolist()
    parts = [[time] for time in good]
    for place, ahead in sorted(wrong, reverse=True):
        if 2 <= place < len(good) - 1 and good[place] > STEP:
            parts.insert(place + 1, [good[place] + ahead])
    single = [part for k, part in enumerate(parts) if k == 0 or part[0] in good or parts[k - 1][0] in good]
    begun = good[-1] // STEP > 0
    assert heard(BelievedTime(STEP), *single) == (good[-1] if begun else None)


@settings(deadline=None)
@given(steps=st.lists(st.integers(1, 5 * STEP), min_size=2, max_size=40), seed=st.integers(0, 1000))
def test_rows_in_order_are_believed_but_for_the_last_after_a_gap(steps: list[int], seed: int) -> None:
    """In parts or at once, whatever the gaps: at most the end after the last gap is doubted."""
    rng, times = np.random.default_rng(seed), np.cumsum([0, *steps]).tolist()
    cuts = np.sort(rng.integers(0, len(times), 3)).tolist()
    parts = [times[a:b] for a, b in zip([0, *cuts], [*cuts, len(times)], strict=True)]
    more = [times[-1] + k * STEP for k in range(1, 4)]
    found = heard(BelievedTime(STEP), *parts, *([time] for time in more))
    assert found == more[-1]


def test_rows_that_are_always_far_apart_are_believed_at_once_after_the_first() -> None:
    horizon = BelievedTime(STEP)
    assert heard(horizon, *([k * HOUR] for k in range(10))) == 9 * HOUR
    assert horizon.usual == HOUR


def test_the_limit_is_the_clock_of_this_machine() -> None:
    now = time.time_ns() // 1000
    utc, local = latest_believed(Clock("UTC"), 60.0), latest_believed(Clock(), 60.0)
    assert utc is not None
    assert local is not None
    assert 0 <= utc - now - STEP < HOUR
    assert abs(local - utc - 14 * HOUR) < HOUR
    assert latest_believed(Clock(row_interval=1.0)) is None
