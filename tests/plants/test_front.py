"""What a user of pandas types works as written, and the shell means the same."""

import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import eccaht
from eccaht.base.frames import frame_of
from eccaht.cli.main import run
from eccaht.plants.data.source import Arrays
from eccaht.plants.example import STATUS, write_example

DRILLS = 40
# the contract, word for word
AS_WRITTEN = """
import eccaht, pandas as pd

history = pd.read_csv("history.csv", parse_dates=["time"])       # or a path, several paths, a polars frame, an array with names=
model = eccaht.calibrate(history, exclude=["P-101 mode"])        # window= from the rows' interval, drills=1000 (0: none), progress shown on a terminal
answer = model.identify("incident.csv")                          # start=, stop=; rows before start are used, as on the command line
answer.verdict                                                   # "wrong", "nothing" or "undecided"
answer.incidents[0].named, answer.incidents[0].onset, answer.incidents[0].end, answer.incidents[0].confidence
answer.to_frame()                                                # one row a sensor; pandas if it is installed, else polars
answer.plot("incident.png"); answer.html("incident.html"); answer # a notebook shows the page
watch = model.watch(false_alarms="1/30d")                        # watch.update(row_or_mapping, time) -> list of events; watch.save, eccaht.load_watch
model.drill().to_frame(); model.drill().plot()
model.save("plant.model"); model = eccaht.load_model("plant.model")
"""  # noqa: E501


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in example, with a history of eight hours and an incident of one and a half, half of it wrong."""
    directory = tmp_path_factory.mktemp("plant")
    history, incident, _ = write_example(directory)
    header, *lines = history.read_text(encoding="utf-8").splitlines(keepends=True)
    for name, part in (("history.csv", lines[:3000]), ("first.csv", lines[:1500]), ("second.csv", lines[1500:3000])):
        (directory / name).write_text("".join([header, *part]), encoding="utf-8")
    lines = incident.read_text(encoding="utf-8").splitlines(keepends=True)[1:]
    incident.write_text("".join([header, *lines[450:990]]), encoding="utf-8")
    return directory


@pytest.fixture(scope="module")
def written(plant: Path) -> dict[str, Any]:
    """All that the block of the contract leaves, with fewer drills."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(plant)
        function = inspect.unwrap(eccaht.calibrate)
        patch.setattr(function, "__kwdefaults__", {**(function.__kwdefaults__ or {}), "drills": DRILLS})
        left: dict[str, Any] = {}
        exec(AS_WRITTEN, left)
    return left


@pytest.fixture
def model(written: dict[str, Any]) -> eccaht.Model:
    found = written["model"]
    assert type(found) is eccaht.Model is eccaht.plants.Model
    return found


@pytest.fixture
def answer(written: dict[str, Any]) -> eccaht.Answer:
    found = written["answer"]
    assert isinstance(found, eccaht.Answer)
    return found


def test_the_contract_runs_as_written_and_names_the_wrong_sensors(plant: Path, answer: eccaht.Answer) -> None:
    truth = json.loads((plant / "truth.json").read_text(encoding="utf-8"))
    assert answer.verdict == "wrong"
    assert sorted(answer.named) == sorted(truth["anomalies"])
    assert answer.onset == np.datetime64(truth["onset"])
    assert answer.incidents[0].kinds == ("step",) * len(answer.incidents[0].named)
    assert (plant / "incident.png").read_bytes().startswith(b"\x89PNG")
    assert all(name in (plant / "incident.html").read_text(encoding="utf-8") for name in answer.named)


def test_every_object_prints_itself_in_one_line(written: dict[str, Any], answer: eccaht.Answer) -> None:
    objects = [written["model"], answer, answer.incidents[0], written["watch"], written["model"].drill()]
    lines = [repr(each) for each in objects]
    assert [line.partition("(")[0] for line in lines] == ["Model", "Answer", "Incident", "RowWatch", "Drills"]
    assert not any("\n" in line or len(line) > 300 for line in lines)
    assert all(name in lines[1] for name in answer.named)


def test_a_frame_has_a_row_a_sensor_the_named_ones_first(answer: eccaht.Answer) -> None:
    frame = answer.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["sensor"].tolist() == [suspect.sensor for suspect in answer.sensors]
    assert frame["sensor"][frame["named"]].tolist() == list(answer.named)
    assert frame["belief"].dtype == np.float64


def test_without_pandas_frames_are_those_of_polars(monkeypatch: pytest.MonkeyPatch, answer: eccaht.Answer) -> None:
    monkeypatch.setattr("eccaht.base.frames.find_spec", lambda _: None)
    frame = answer.to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame["sensor"].to_list() == [suspect.sensor for suspect in answer.sensors]
    moments = [np.datetime64("2024-05-01T08:00"), None]
    assert frame_of({"since": moments}, zone="UTC")["since"].dtype == pl.Datetime("us", "UTC")


def test_a_notebook_shows_the_page_and_the_picture(answer: eccaht.Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(answer), "html", lambda _: '<p class="a">page</p>')
    assert '<iframe srcdoc="&lt;p class=&quot;a&quot;&gt;' in answer._repr_html_()


def test_drills_of_calibrate_are_kept_and_can_be_drawn(model: eccaht.Model, plant: Path) -> None:
    drills = model.drill()
    frame = drills.to_frame()
    assert frame["faults"].sum() == drills.counts.drills > 0
    assert (frame["found"] <= frame["faults"]).all()
    with pytest.raises(ValueError, match=r"runs needs new drills: give quiet data"):
        model.drill(runs=5)
    with pytest.raises(ValueError, match=r"must end in \.png"):
        drills.plot(plant / "drills.doc")
    drills.plot(plant / "drills.jpg")
    assert (plant / "drills.jpg").read_bytes().startswith(b"\xff\xd8")


# -- the shell means the same ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"start": "2024-03-07 07:30", "stop": "2024-03-07 08:20", "anomalies": 3}],
    ids=["everything", "a stretch"],
)
def test_the_document_is_that_of_the_shell(
    written: dict[str, Any], plant: Path, options: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    typed = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    files = ["--model", str(plant / "plant.model"), "--data", str(plant / "incident.csv")]
    assert run(["identify", *files, *typed, "--json"]) == 0
    found = written["model"].identify(plant / "incident.csv", **options)
    assert json.loads(capsys.readouterr().out) == found.to_dict()


def test_rows_before_the_start_say_what_was_normal(model: eccaht.Model, plant: Path) -> None:
    found = model.identify(plant / "incident.csv", start="2024-03-07 08:00")
    assert found.onset == np.datetime64("2024-03-07T08:00")
    assert found.n_windows < model.identify(plant / "incident.csv").n_windows


def test_drills_are_those_of_the_shell(
    written: dict[str, Any], plant: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["drill", str(plant / "plant.model"), "--json"]) == 0
    printed, document = json.loads(capsys.readouterr().out), written["model"].drill().to_dict()
    assert {key: printed[key] for key in document} == json.loads(json.dumps(document))


def test_rows_give_the_events_of_the_shell(
    written: dict[str, Any], plant: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["watch", "--model", str(plant / "plant.model"), "--data", str(plant / "incident.csv"), "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    printed = [(e["event"], e["time"], tuple(e["named"])) for e in events if e["number"] is not None]
    watch = written["model"].watch()
    found = [event for row in rows_of(plant) for event in watch.update(row, row["time"])] + watch.finish()
    assert [(event.event, event.time, event.named) for event in found] == printed
    assert watch.state == "changed"


# -- data ------------------------------------------------------------------------------------------------


def test_whatever_holds_the_data_the_answer_is_the_same(
    model: eccaht.Model, answer: eccaht.Answer, plant: Path
) -> None:
    path = plant / "incident.csv"
    indexed = pd.read_csv(path, parse_dates=["time"], index_col="time")
    numbers = indexed.drop(columns=[STATUS])
    forms: dict[str, Any] = {
        "pandas": pd.read_csv(path, parse_dates=["time"]),
        "an index of times": indexed,
        "polars": pl.read_csv(path, try_parse_dates=True),
        "a text": str(path),
        "paths": [path],
        "arrays": Arrays(numbers.to_numpy(), numbers.index.to_numpy(), list(numbers.columns)),
    }
    found = {name: model.identify(data) for name, data in forms.items()}
    found["an array"] = model.identify(numbers.to_numpy(), names=list(numbers.columns), times=numbers.index.to_numpy())
    sensors = numbers[list(model.names)]
    found["an array of the sensors"] = model.identify(sensors.to_numpy(), times=sensors.index.to_numpy())
    for name, each in found.items():
        assert (each.named, each.onset, each.evidence) == (answer.named, answer.onset, answer.evidence), name


def test_a_history_in_several_files_is_one(plant: Path, model: eccaht.Model) -> None:
    parts = eccaht.calibrate([plant / "first.csv", plant / "second.csv"], exclude=STATUS, drills=0)
    assert parts.names == model.names
    np.testing.assert_array_equal(parts.mean, model.mean)


def test_arrays_without_names_are_refused_where_they_do_not_fit(model: eccaht.Model) -> None:
    with pytest.raises(ValueError, match="3 columns"):
        model.identify(np.zeros((50, 3)))
    with pytest.raises(ValueError, match=r"names and times are for arrays"):
        model.identify("incident.csv", names=["a"])


def test_short_histories_are_not_drilled_and_say_so(caplog: pytest.LogCaptureFixture) -> None:
    few = np.random.default_rng(0).standard_normal((60, 3))
    model = eccaht.calibrate(few, names=["a", "b", "c"])
    assert "not drilled: the history has 60 windows" in caplog.text
    with pytest.raises(ValueError, match=r"the model has no drills"):
        model.drill()


def test_a_number_of_anomalies_that_is_none_is_refused(model: eccaht.Model, plant: Path) -> None:
    odd: list[Any] = ["3", (3,), (4, 2), -1, 1.5]
    for anomalies in odd:
        with pytest.raises(ValueError, match=r"anomalies is a number of sensors"):
            model.identify(plant / "incident.csv", anomalies=anomalies)
    with pytest.raises(ValueError, match="more than the 24"):
        model.identify(plant / "incident.csv", anomalies=24)


def test_without_times_an_onset_is_the_number_of_its_row() -> None:
    values = np.random.default_rng(0).standard_normal((400, 3)) + np.random.default_rng(1).standard_normal((400, 1))
    model = eccaht.calibrate(values, names=["a", "b", "c"], drills=0, progress=False)
    wrong = values.copy()
    wrong[250:300, 1] += 12.0
    answer = model.identify(wrong, progress=False)
    (incident,) = answer.incidents
    assert answer.onset == incident.onset == incident.sensors[0].since == 251  # counted from 1
    assert answer.end == incident.end == 301
    assert incident.onset_interval == (251, 251)
    assert "row 251" in repr(incident)
    assert "row 251" in repr(answer)
    assert "1970" not in f"{answer!r}{incident!r}{answer.to_dict()}{answer.to_frame()}"
    again = model.identify(wrong, start=answer.onset, progress=False)  # which is also how a start is given
    assert again.onset == answer.onset


# -- rows as they come -----------------------------------------------------------------------------------


def rows_of(plant: Path) -> list[dict[str, Any]]:
    return pd.read_csv(plant / "incident.csv", parse_dates=["time"]).to_dict("records")


def test_a_saved_watch_goes_on_exactly(model: eccaht.Model, plant: Path) -> None:
    rows = rows_of(plant)
    half = 200  # in the middle of a window, before the alarm
    whole, first = model.watch(), model.watch()
    events = [event for row in rows for event in whole.update(row, row["time"])]
    early = [event for row in rows[:half] for event in first.update(row, row["time"])]
    first.save(plant / "plant.watch")
    second = eccaht.load_watch(plant / "plant.watch")
    assert repr(second) == repr(first)
    late = [event for row in rows[half:] for event in second.update(row, row["time"])]
    assert early + late == events
    assert any(event.event == "alarm" for event in late)


def test_rows_come_as_dicts_series_or_readings_in_order(model: eccaht.Model, plant: Path) -> None:
    frame = pd.read_csv(plant / "incident.csv", parse_dates=["time"])[:200]
    watches = [model.watch() for _ in range(3)]
    for row in frame.to_dict("records"):
        time, series = row["time"], pd.Series(row)
        forms = (row, series, [row[name] for name in model.names])
        assert [watch.update(form, time) for watch, form in zip(watches, forms, strict=True)] == [[], [], []]
    windows = {watch.session.windows for watch in watches}
    evidence = {watch.session.watch.evidence for watch in watches}
    assert len(windows) == len(evidence) == 1


def test_a_setpoint_that_moves_is_reported_once(model: eccaht.Model, plant: Path) -> None:
    watch, found = model.watch(), []
    for k, row in enumerate(rows_of(plant)[:60]):
        moved = row | {"SP-301": 76.0} if k >= 30 else row
        found += watch.update(moved, row["time"])
    assert [(event.event, event.sensors) for event in found] == [("moved", ("SP-301",))]


def test_rows_without_times_are_counted() -> None:
    values = np.random.default_rng(1).standard_normal((300, 3))
    watch = eccaht.calibrate(values, names=["a", "b", "c"], drills=0).watch()
    values[50:, 1] += 15.0
    found = [event for row in values[:70] for event in watch.update(row)]
    assert [(event.event, event.time, event.named) for event in found][:1] == [("alarm", "row 51", ("b",))]


def test_rows_that_come_too_late_are_reported_as_no_data_until_they_come_in_time(tmp_path: Path) -> None:
    start, minute = np.datetime64("2024-05-01T00:00", "us"), np.timedelta64(60, "s")
    values, times = np.random.default_rng(1).standard_normal((200, 3)), start + np.arange(200) * minute
    model = eccaht.calibrate(values, names=["a", "b", "c"], times=times, drills=0, progress=False)
    watch = model.watch()

    def give(minutes: Iterable[int]) -> list[str]:
        return [event.event for k in minutes for event in watch.update(values[k % 200], start + (300 + k) * minute)]

    assert give(range(20)) == []
    assert give([3, 4, 5, 6, 7, 8, 9, 10, 11, 12]) == []
    assert give([5] * 10) == ["no-data"]  # more rows are late than the last windows are made of
    assert give([5] * 10) == []
    watch.save(tmp_path / "kept.watch")
    watch = eccaht.load_watch(tmp_path / "kept.watch")
    assert give(range(20, 40)) == ["late", "data-back"]


def test_a_row_that_cannot_be_one_is_refused(model: eccaht.Model) -> None:
    watch = model.watch()
    for row, time, why in (
        ({"time": 1.0}, "2024-03-07", "the row has none of the model's sensors"),
        ([1.0, 2.0], "2024-03-07", "a row has 24 readings, one for each sensor, not 2"),
        ([1.0] * 24, None, r"give the time of the row"),
        ({"FT-101": "abc"}, "2024-03-07", "FT-101"),
    ):
        with pytest.raises(ValueError, match=why):
            watch.update(row, time)
