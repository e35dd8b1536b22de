"""Times and lengths of time are what people write."""

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from eccaht.base.clock import Clock, parse_duration, show_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1min", 60), ("30s", 30), ("2h", 7200), ("0.5s", 0.5), ("250 ms", 0.25), ("1d", 86400), (".5min", 30), (5, 5)],
)
def test_durations(text: Any, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("seconds", [0.001, 0.5, 1.0, 59.0, 60.0, 90.0, 3600.0, 5400.0, 86400.0])
def test_durations_are_shown_as_they_are_read(seconds: float) -> None:
    assert parse_duration(show_duration(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "60", "1 fortnight", "-1s", "1e3s", "min", "0s", "nan", None, True, 0, 1e12])
def test_what_is_no_duration_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="window") as error:
        parse_duration(text, "window")
    assert "\n" not in str(error.value)


def test_times() -> None:
    moment = np.datetime64("2017-10-09T18:00:00", "us")
    for text in ("2017-10-09T18:00", "2017-10-09 18:00:00", "2017-10-09T18:00:00Z", "2017-10-10T02:00+08:00"):
        assert Clock("UTC").parse(text) == moment
    assert Clock("UTC").parse(datetime(2017, 10, 9, 18)) == moment
    assert Clock("UTC").parse(datetime(2017, 10, 10, 2, tzinfo=timezone(timedelta(hours=8)))) == moment
    assert Clock("UTC").parse(np.datetime64("2017-10-09T18")) == moment


@pytest.mark.parametrize("text", ["", "yesterday", "18:00", 3, None, np.datetime64("NaT")])
def test_what_is_no_time_is_refused(text: Any) -> None:
    with pytest.raises(ValueError, match="start"):
        Clock("UTC").parse(text, "start")
