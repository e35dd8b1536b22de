"""What newcomers try first: it works, or the error says in one line what to write instead."""

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

import eccaht

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
    with pytest.raises(ValueError, match="times without one"):
        model.watch().update(incident.iloc[0], time)


def test_data_with_a_zone_and_a_history_without_one_are_noted(model: eccaht.Model, incident: pd.DataFrame) -> None:
    plain, zoned = model.identify(incident), model.identify(incident.tz_localize("America/New_York"))
    assert not [note for note in plain.notes if "time zone" in note]
    assert [note for note in zoned.notes if "shown in America/New_York; in Python, onset and end are UTC" in note]
    assert zoned.largest.began - plain.largest.began == np.timedelta64(5, "h")


@pytest.mark.parametrize("window", [timedelta(minutes=2), np.timedelta64(2, "m"), pd.Timedelta("2min"), 120])
def test_a_window_may_be_a_timedelta_or_seconds(history: pd.DataFrame, window: Any) -> None:
    assert eccaht.calibrate(history, drills=0, window=window).seconds == 120.0


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


def test_identify_takes_the_rate_of_a_watch(model: eccaht.Model, incident: pd.DataFrame) -> None:
    by_default, given = model.identify(incident), model.identify(incident, false_alarms="1/5000w")
    assert by_default.every == model.watch().session.watch.false_alarm_every
    assert given.every == model.watch("1/5000w").session.watch.false_alarm_every == 5000
    assert given.evidence < by_default.evidence  # above a higher threshold


GUESSES: dict[str, list[tuple[str, str]]] = {
    "eccaht": [
        ("fit", "eccaht.calibrate"),
        ("train", "eccaht.calibrate"),
        ("read_csv", "eccaht.calibrate"),
        ("load", "eccaht.load_model"),
        ("detect", "model.identify"),
        ("predict", "model.predict"),
        ("watch", "model.watch"),
    ],
    "model": [
        ("fit", "eccaht.calibrate"),
        ("score", "predict"),
        ("detect", "identify"),
        ("transform", "predict"),
        ("load", "eccaht.load_model"),
        ("features", "names"),
        ("plot", "drill().plot()"),
    ],
    "answer": [
        ("anomalies", "named"),
        ("start", "onset"),
        ("to_csv", "to_frame()"),
        ("to_json", "to_dict()"),
        ("save", "html("),
        ("show", "plot("),
        ("summary", "text"),
        ("score", "confidence"),
    ],
}


def test_natural_guesses_say_what_to_write_instead(model: eccaht.Model, incident: pd.DataFrame) -> None:
    answer = model.identify(incident)
    owners: dict[str, list[Any]] = {"eccaht": [eccaht], "model": [model], "answer": [answer, answer.incidents[0]]}
    for kind, guesses in GUESSES.items():
        for owner in owners[kind]:
            for name, hint in guesses:
                with pytest.raises(AttributeError) as error:
                    getattr(owner, name)
                assert hint in str(error.value), (kind, name)
    with pytest.raises(AttributeError, match="no 'detekt'"):
        eccaht.detekt  # type: ignore[attr-defined]  # noqa: B018


def test_what_hints_name_is_there(model: eccaht.Model, incident: pd.DataFrame) -> None:
    answer = model.identify(incident)
    for name in ("identify", "predict", "watch", "drill", "update", "names", "save"):
        assert hasattr(model, name)
    for name in ("named", "onset", "to_frame", "to_dict", "plot", "html", "text", "confidence"):
        assert hasattr(answer, name)


def test_an_incident_draws_itself_as_the_answer_draws_the_largest(model: eccaht.Model, incident: pd.DataFrame) -> None:
    answer = model.identify(incident)
    one, whole = answer.incidents[0].plot(), answer.plot()
    assert [axes.get_title("left") for axes in one.axes] == [axes.get_title("left") for axes in whole.axes]
    assert one.legends[0].get_title().get_text() == whole.legends[0].get_title().get_text()
