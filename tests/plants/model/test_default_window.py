"""Without a given length, windows are as long as the rows allow, and no history is refused for its rate."""

from pathlib import Path

import numpy as np
import pytest

from eccaht.plants.data.source import Arrays, read_table
from eccaht.plants.model.calibration import ENOUGH_WINDOWS, calibrate, default_window
from eccaht.plants.model.model import load_model
from tests.plants.model.histories import START, history, signals


def rows(seconds: np.ndarray) -> Arrays:
    """Readings of two sensors at these times."""
    times = START + np.round(seconds * 1e6).astype(np.int64) * np.timedelta64(1, "us")
    return Arrays(signals(len(times), 2), times, ["a", "b"])


def length(seconds: np.ndarray) -> float:
    return default_window(read_table(rows(seconds)))


@pytest.mark.parametrize(
    ("interval", "number", "expected"),
    [
        (1.0, 60 * ENOUGH_WINDOWS, 60.0),
        (1.0, 60 * ENOUGH_WINDOWS - 60, 30.0),
        (1.0, 10_000, 10.0),
        (1.0, 4000, 2.0),
        (1.0, 1500, 1.0),
        (1.0, 400, 1.0),
        (0.1, 1500, 0.1),
        (0.1, 40_000, 2.0),
        (0.004, 12_000, 0.02),
        (15.0, 8000, 60.0),
        (15.0, 3000, 30.0),
        (20.0, 2500, 20.0),  # half a minute would hold one row and two in turn
        (7.0, 20_000, 60.0),
        (7.0, 4000, 20.0),
        (7.0, 2000, 7.0),
        (60.0, 100_000, 60.0),
        (61.0, 100_000, 61.0),
        (300.0, 100, 300.0),
        (3600.0, 8000, 3600.0),
        (86_400.0, 300, 86_400.0),
    ],
)
def test_the_longest_round_length_that_leaves_enough_windows(interval: float, number: int, expected: float) -> None:
    assert length(interval * np.arange(number)) == expected


def test_rows_that_are_missing_or_late_do_not_change_it() -> None:
    rng = np.random.default_rng(0)
    missing = np.flatnonzero(rng.random(1100) > 0.05).astype(float)
    assert length(missing) == 1.0
    for interval in (1.0, 3600.0):
        late = interval * (np.arange(400) + rng.normal(0.0, 0.03, 400))
        assert length(np.sort(late)) == interval


def test_windows_of_jittered_rows_are_kept() -> None:
    """Times a few hundredths off, one in twenty missing: an explicit length as long as the interval is accepted."""
    rng = np.random.default_rng(1)
    present = np.flatnonzero(rng.random(420) > 0.05)
    seconds = present + 0.5 + rng.normal(0.0, 0.05, len(present))
    for window in (None, "1s"):
        model = calibrate(rows(seconds), window=window)
        assert (model.seconds, model.n_windows) == (1.0, len(seconds))


def test_no_history_is_refused_for_its_rate(tmp_path: Path) -> None:
    for step, number in ((3600, 200), (1, 400), (1, 100), (86_400, 100)):
        model = calibrate(history(tmp_path / "h.csv", rows=number, step=step))
        assert (model.seconds, model.n_windows) == (step, number)
        model.save(tmp_path / "m")
        assert len(load_model(tmp_path / "m").prepare(tmp_path / "h.csv").starts) == number


def test_rows_without_times_are_single() -> None:
    for number in (400, 5000):
        model = calibrate(signals(number, 2))
        assert (model.seconds, model.n_windows, model.clock.counted) == (1.0, number, True)
    assert calibrate(signals(400, 2), row_interval="10min").seconds == 600.0
    assert calibrate(signals(6000, 2), row_interval="10s").seconds == 60.0


def test_a_history_that_is_too_short_is_refused_with_what_helps(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"longer history$"):
        calibrate(history(tmp_path / "h.csv", rows=8, step=3600))
    with pytest.raises(ValueError, match="shorter windows"):
        calibrate(history(tmp_path / "h.csv", rows=100), window="1min")
