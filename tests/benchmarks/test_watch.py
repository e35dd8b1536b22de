"""The part as a whole: its jobs, its tables, and the speed of every detector."""

import pytest
from benchmarks.watch_rules import RULES
from benchmarks.watch_simulated import WORLDS

from benchmarks import fleet_plants, watch, watch_speed


def test_every_world_and_rule_is_a_job() -> None:
    labels = [job.label for job in watch.jobs(False)]
    assert len(set(labels)) == len(labels) == len(WORLDS) * (len(RULES) + 1) + 1


def test_tables_of_a_small_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"EVERY": 50, "STREAMS": 8, "SHIFTED": (1, 3), "CHANGES": 40}.items():
        monkeypatch.setattr(watch, name, value)
    wanted = ("watch, independent, T2", "watch, toeplitz 0.8, MEWMA 0.2", "watch, toeplitz 0.8, bounds")
    rows = [row for job in watch.jobs(True) if job.label in wanted for row in job.run()]
    rows += [{"kind": "speed", "detector": "T2", "way": "alone", "rate": 1e5, "ratio": 1.0, "kept": None}]
    tables = {table.name: table for table in watch.tables(rows)}
    assert [row["rule"] for row in tables["watch-false-alarms"].rows][:2] == ["T2", "MEWMA 0.2"]
    delays = tables["watch-delays-independent"].rows
    assert [row["shift"] for row in delays] == [0.5, 1.0, 2.0]
    assert delays[0]["s1"][0] > delays[2]["s3"][0] >= 1.0
    bounded = {row["rule"]: row for row in tables["watch-delays-toeplitz-0.8"].rows if row["shift"] == 1.0}
    least, one, real = (bounded[rule]["s1"][0] for rule in (watch.KNOWN_ALL, watch.KNOWN_ONE, "MEWMA 0.2"))
    assert 1.0 <= least < min(one, real)
    assert "s3" not in bounded[watch.KNOWN_ONE]
    assert "river is not installed: its detectors are left out." in tables["watch-speed"].notes
    assert all(table.csv() and table.markdown() for table in tables.values())


def test_a_fleet_is_watched_and_its_memory_is_measured() -> None:
    rows = fleet_plants.fleet(20, fleet_plants.model_of().parts(), own_models=False)
    assert [row["turn"] for row in rows] == [0, 1, 2]
    assert all(row["rate"] > 0 for row in rows)


@pytest.mark.slow
def test_speed_of_every_rule_is_relative_to_t2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_speed, "PLANTS", 4)
    rows = watch_speed.measure(True)
    alone = {row["detector"]: row for row in rows if row["way"] == "alone"}
    assert set(RULES) <= set(alone)
    assert alone["T2"]["ratio"] == 1.0
    assert all(row["rate"] > 0 for row in rows)
    assert all(0 < row["kept"] < 100_000 for row in rows if row["detector"] in ("Engine", "PlantWatch"))
