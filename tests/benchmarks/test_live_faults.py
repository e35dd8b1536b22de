"""What the benchmark of faults sends, and how it judges what /healthz said."""

from __future__ import annotations

from benchmarks.live_faults_plants import SECOND, make_plants, streams_of, too_late
from benchmarks.live_faults_troubles import Health


def test_every_row_of_a_plant_has_a_time_of_its_own() -> None:
    plants = make_plants({"http": 2, "mqtt": 2})
    streams = streams_of(plants, 1_000_000, 90)
    for plant in plants:
        times = [time for s in streams if s.plant is plant for rows in s.seconds for time, _ in rows]
        assert len(times) == len(set(times)) == len(plant.sent)
        assert plant.left_out <= plant.sent.keys()


def test_late_rows_are_of_complete_windows_and_new() -> None:
    (plant,) = make_plants({"http": 1})
    streams_of([plant], 1_000_000, 200)
    assert too_late(plant, 1_000_000, 100, old=False) == []  # there are no windows yet
    plant.acknowledged = {(1_000_000 + k) * SECOND for k in range(150)}
    for old in (False, True):
        times = {time for time, _ in too_late(plant, 1_000_000, 1000, old=old)}
        assert len(times) == 1000
        assert max(times) < 1_000_145 * SECOND
        assert not times & plant.sent.keys()


def test_health_is_judged_by_what_was_so_meanwhile() -> None:
    health = Health(away=[(100.0, 110.0)])
    said = {50.0: 200, 60.0: 503, 99.5: 503, 101.0: 200, 104.0: 200, 105.0: 503, 115.0: 503, 121.0: 503}
    health.said = [(at, at + 1.0, status, f"{at:g}") for at, status in said.items()]
    found = health.judged()
    assert (found["away"], found["shown"], found["hidden"], found["false_sick"]) == (10.0, 1, 1, 2)
    assert found["false_details"] == ["121", "60"]
