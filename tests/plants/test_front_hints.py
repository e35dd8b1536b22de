"""What newcomers try first: it works, or the error says in one line what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

import eccaht
from tests.plants.incident.example_answers import answer_of

calibrate: Any = eccaht.calibrate  # any keyword
NAMES = ["flow", "level", "heat", "speed"]


def readings(rows: int, seed: int, start: str) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = 50.0 + rng.standard_normal((rows, 1)) + 0.3 * rng.standard_normal((rows, 4))
    return pd.DataFrame(values, index=pd.date_range(start, periods=rows, freq="1min", name="time"), columns=NAMES)


@pytest.fixture(scope="module")
def history() -> pd.DataFrame:
    return readings(600, 0, "2024-01-01")


@pytest.fixture(scope="module")
def incident() -> pd.DataFrame:
    frame = readings(200, 1, "2024-02-01")
    frame.iloc[120:, 1] += 8.0
    return frame


@pytest.fixture(scope="module")
def model(history: pd.DataFrame) -> eccaht.Model:
    return eccaht.calibrate(history, drills=0, window="1min")


ROW_BY_ROW = r"for time, row in frame\.iterrows\(\): watch\.update\(row, time\)"


def test_a_watch_takes_a_rate_and_rows_one_by_one(model: eccaht.Model, incident: pd.DataFrame) -> None:
    given: Any
    for given, hint in ((incident, ROW_BY_ROW), (0.01, "'1/30d'"), ("1/month", "1/30d")):
        with pytest.raises(ValueError, match=hint):
            model.watch(given)
    watch = model.watch()
    for table in (incident, incident.to_numpy()):
        with pytest.raises(ValueError, match=ROW_BY_ROW):
            watch.update(table)
    events = [event.event for time, row in incident.iterrows() for event in watch.update(row, time)]
    assert "alarm" in events


@pytest.mark.parametrize("time", [pd.Timestamp("2024-02-01", tz="UTC"), "2024-02-01T00:00Z"])
def test_a_time_with_a_zone_needs_a_history_with_one(model: eccaht.Model, incident: pd.DataFrame, time: Any) -> None:
    with pytest.raises(ValueError, match="give times without one, or calibrate on times with one"):
        model.watch().update(incident.iloc[0], time)


def test_data_with_a_zone_and_a_history_without_one_are_noted(model: eccaht.Model, incident: pd.DataFrame) -> None:
    plain, zoned = model.identify(incident), model.identify(incident.tz_localize("America/New_York"))
    assert not [note for note in plain.notes if "time zone" in note]
    assert [note for note in zoned.notes if "shown in America/New_York; in Python, onset and end are UTC" in note]
    assert zoned.largest.began - plain.largest.began == np.timedelta64(5, "h")


def test_the_text_is_what_the_shell_prints(model: eccaht.Model, incident: pd.DataFrame) -> None:
    answer = model.identify(incident)
    assert "Why: level" in answer.text
    assert "\n" not in repr(answer)


@pytest.mark.parametrize(("name", "meant"), [("sensors", "names"), ("predict", "identify"), ("dril", "drill")])
def test_an_attribute_by_another_name_is_hinted_at(model: eccaht.Model, name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"^a model has no {name}: did you mean '{meant}'\\?$"):
        getattr(model, name)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda _, data: calibrate(data, no_drill=True), "drills=0"),
        (lambda _, data: calibrate(data, out="plant.model"), r"save\(path\)"),
        (lambda model, data: model.identify(data, end="2024-02-01 01:00"), "stop"),
        (lambda model, data: model.identify(data, starts="2024-02-01 01:00"), "'start'"),
        (lambda model, data: model.update(data=data), "new"),
    ],
)
def test_a_keyword_by_another_name_is_hinted_at(
    model: eccaht.Model, incident: pd.DataFrame, call: Callable[[Any, Any], object], meant: str
) -> None:
    with pytest.raises(TypeError, match=meant):
        call(model, incident)


def test_a_range_of_anomalies_is_shown_by_example(model: eccaht.Model, incident: pd.DataFrame) -> None:
    given: Any = "1-4"
    with pytest.raises(ValueError, match=r"such as \(1, 4\)"):
        model.identify(incident, anomalies=given)


@pytest.mark.parametrize("window", [timedelta(minutes=2), np.timedelta64(2, "m"), pd.Timedelta("2min"), 120])
def test_a_window_may_be_a_timedelta_or_seconds(history: pd.DataFrame, window: Any) -> None:
    assert eccaht.calibrate(history, drills=0, window=window).seconds == 120.0


@pytest.mark.parametrize(("guess", "meant"), [("summary", "text"), ("to_html", "html"), ("to_json", "to_dict")])
def test_an_answer_hints_at_what_it_has(guess: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"an answer has no {guess}.*{meant}"):
        getattr(answer_of(), guess)
    assert answer_of().text.startswith("3 of 24 sensors are wrong")


def test_drills_say_where_their_faults_were_put_and_that_data_are_not_quiet(history: pd.DataFrame) -> None:
    model = eccaht.calibrate(history, drills=40, progress=False)
    assert model.drill().line.startswith("On your own history: ")
    new = readings(300, 1, "2024-02-01")
    quiet = model.drill(new, runs=20, progress=False)
    assert quiet.line.startswith("On these data: ")
    assert quiet.to_dict()["line"] == quiet.line
    new.iloc[100:, 1] += 9.0
    assert any("drill on a time when nothing was wrong" in note for note in model.drill(new, runs=20).notes)
    assert not any("drill on a time" in note for note in quiet.notes)
