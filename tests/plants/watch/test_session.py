"""The session of a plant: its events, what operators order, and that a file keeps both."""

from copy import deepcopy
from pathlib import Path
from unittest.mock import PropertyMock, patch

import numpy as np
import pytest

from eccaht.base.codec import restore, state_of
from eccaht.plants.data.windows import Sample
from eccaht.plants.watch.events import Event
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Operator, Session
from tests.plants.watch.plants import plant, readings, scaled

START = np.datetime64("1970-01-05T00:00:00", "us")
NOON = np.datetime64("2024-05-01T12:00", "us")


def taken(session: Session, values: np.ndarray) -> list[Event]:
    """The events of windows that follow each other."""
    second, clock = np.timedelta64(round(session.model.seconds * 1e6), "us"), session.model.clock
    first = START if session.position is None else session.position + second
    samples = [Sample(first + t * second, row) for t, row in enumerate(values)]
    return [event for sample in samples for event in session.take(sample, clock)]


def test_a_plant_is_reported_by_the_same_events(tmp_path: Path) -> None:
    model = plant()[0]
    values = scaled(readings(420, 3))
    values[100:150, 0] += 8.0
    values[250:300, 2] = np.nan
    session = Session(PlantWatch(model))
    events = taken(session, values)
    reported = [(event.event, event.sensors, event.onset) for event in events]
    assert [event for event, *_ in reported] == ["alarm", "changed", "over", "silent", "speaking"]
    assert [sensors for _, sensors, _ in reported] == [("c1",), ("c1",), ("c1",), ("c3",), ("c3",)]
    assert reported[3][2] == model.clock.exact(START + 250 * np.timedelta64(round(model.seconds * 1e6), "us"))
    assert events[0].sizes[0] == pytest.approx(8.0 * model.scale[0], rel=0.3)
    session.save(tmp_path / "state")
    loaded = Session.load(tmp_path / "state", model)
    assert loaded.watch.evidence == session.watch.evidence
    assert (loaded.position, loaded.number) == (session.position, session.number)


def test_plants_that_share_a_model_are_watched_as_if_alone(tmp_path: Path) -> None:
    """In turn, window by window; and so after they were saved and restored half way."""
    model, records = plant()[0], [scaled(readings(80, seed)) for seed in (1, 2, 3)]
    for record in records:
        record[53:, 1] += 8.0
    alone = [taken(Session(PlantWatch(model, false_alarm_every=300)), record) for record in records]
    assert all("alarm" in {event.event for event in events} for events in alone)
    sessions = [Session(PlantWatch(model, false_alarm_every=300)) for _ in records]
    found: list[list[Event]] = [[] for _ in records]
    for t in range(80):
        for k, record in enumerate(records):
            if t == 60:
                sessions[k].save(tmp_path / "state")
                sessions[k] = Session.load(tmp_path / "state", model)
                assert sessions[k].watch.normal is model.normal
            found[k] += taken(sessions[k], record[t : t + 1])
    assert found == alone


def test_saving_computes_nothing(tmp_path: Path) -> None:
    session = Session(PlantWatch(plant()[0]))
    with patch.object(PlantWatch, "evidence", PropertyMock(side_effect=AssertionError)):
        session.save(tmp_path / "state")
        session.to_bytes()


def test_a_new_normal_is_taken_off_from_then_on_and_kept() -> None:
    session, values = Session(PlantWatch(plant()[0])), scaled(readings(160, 3))
    values[100:, 0] += 8.0
    taken(session, values[:120])
    alarm = session.watch.alarm
    assert alarm is not None
    assert alarm.names == ("c1",)
    session.acknowledge()
    session.call_normal()
    operator = session.operator
    assert operator.acknowledged == alarm.time
    np.testing.assert_array_equal(operator.offsets, np.append(alarm.sizes, np.zeros(5)))
    assert [event.event for event in taken(session, values[120:])] == ["over"]


def test_a_new_normal_counts_once_for_an_alarm_and_can_be_taken_back(tmp_path: Path) -> None:
    session, values = Session(PlantWatch(plant()[0])), scaled(readings(400, 3))
    values[100:, 0] += 8.0
    taken(session, values[:120])
    assert [event.event for event in session.call_normal()] == ["new-normal"]
    once = session.operator.offsets.copy()
    assert session.call_normal() == []
    np.testing.assert_array_equal(session.operator.offsets, once)
    assert [event.event for event in taken(session, values[120:200])] == ["over"]
    session.save(tmp_path / "state")
    session = Session.load(tmp_path / "state", session.model)
    (event,) = session.obey("restore", START)
    assert (event.event, event.sensors) == ("old-normal", ("c1",))
    assert not session.operator.offsets.any()
    assert "alarm" in [event.event for event in taken(session, values[200:])]
    with pytest.raises(ValueError, match="there is no new normal to take back"):
        session.obey("restore", START)


def test_orders_are_applied_until_their_time_and_kept() -> None:
    operator = Operator("abc")
    operator.offsets[1] = 1.5
    operator.shelve("c", NOON)
    operator.acknowledged = NOON
    again = Operator("abc")
    restore(again, deepcopy(state_of(operator)), {"K": 3})
    assert again.acknowledged == NOON
    x = np.array([1.0, 2.0, 3.0])
    assert again.apply(x, NOON - 1).tolist()[:2] == [1.0, 0.5]
    assert np.isnan(again.apply(x, NOON - 1)[2])
    assert again.apply(x, NOON).tolist() == [1.0, 0.5, 3.0]
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_orders_that_make_no_sense_are_refused() -> None:
    session, operator = Session(PlantWatch(plant()[0])), Operator(["flow", "level"])
    with pytest.raises(ValueError, match=r"no sensor 'flw' to shelve.*'flow'"):
        operator.shelve("flw", NOON)
    with pytest.raises(ValueError, match="no alarm to acknowledge"):
        session.acknowledge()
    with pytest.raises(ValueError, match="no alarm whose state"):
        session.call_normal()
    with pytest.raises(ValueError, match="shelve"):
        restore(operator, state_of(operator) | {"shelved": {"flw": 0}}, {"K": 2})


def test_a_shelved_sensor_shows_nothing_not_even_silence(tmp_path: Path) -> None:
    """c1 is sound, c2 silent, c3 out of range and c4 stuck; also if the program restarts while they are shelved."""
    session, values = Session(PlantWatch(plant()[0])), scaled(readings(200, 3))
    values[40:170, 1], values[40:170, 2], values[20:170, 3] = np.nan, 500.0, values[20, 3]
    taken(session, values[:80])
    assert set(session.watch.still("silent")) == {"c2"}
    assert set(session.watch.still("range")) == {"c3"}
    assert set(session.watch.still("stuck")) == {"c4"}
    for name in ("c1", "c2", "c3", "c4"):
        session.obey(f"shelve {name} 30d", START)
    events = taken(session, values[80:110])
    assert {event.event for event in events} == {"shelved", "over"}
    session.save(tmp_path / "state")
    session = Session.load(tmp_path / "state", session.model)
    assert taken(session, values[110:160]) == []
    assert session.watch.state != "alarm"
    for name in ("c1", "c2", "c3", "c4"):
        session.obey(f"unshelve {name}", START)
    assert taken(session, values[160:161])[0].event == "unshelved"
    assert not session.watch.still("silent")


def test_a_sensor_that_is_silent_after_its_shelving_is_so_since_then() -> None:
    session, values = Session(PlantWatch(plant()[0])), scaled(readings(120, 3))
    values[20:, 1] = np.nan
    session.obey("shelve c2 30d", START)
    taken(session, values[:60])
    session.obey("unshelve c2", START)
    _, silent = taken(session, values[60:])
    second = np.timedelta64(round(session.model.seconds * 1e6), "us")
    assert (silent.event, silent.sensors) == ("silent", ("c2",))
    assert silent.onset == session.model.clock.exact(START + 60 * second)


def test_an_alarm_is_over_once_its_sensors_are_shelved() -> None:
    session, values = Session(PlantWatch(plant()[0])), scaled(readings(160, 3))
    values[100:, 0] += 8.0
    taken(session, values[:110])
    assert session.watch.alarm is not None
    session.obey("shelve c1 30d", START)
    assert [event.event for event in taken(session, values[110:120])] == ["shelved", "over"]
    assert session.watch.state == "quiet"
