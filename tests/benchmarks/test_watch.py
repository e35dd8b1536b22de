"""The part as a whole: its jobs, its tables, and the speed of every detector."""

from pathlib import Path

import pytest
from benchmarks.watch_rules import RULES
from benchmarks.watch_simulated import WORLDS

from benchmarks import watch, watch_speed
from tests.datasets.labelled_format import write_collection


def test_every_world_and_rule_is_a_job_and_recorded_data_are_asked_for(tmp_path: Path) -> None:
    simulated = [job.label for job in watch.jobs(False, None)]
    assert len(simulated) == len(WORLDS) * (len(RULES) + 1) + 1
    write_collection(tmp_path / "small", ["one"])
    labels = [job.label for job in watch.jobs(False, tmp_path)]
    assert len(set(labels)) == len(labels) > len(simulated)
    assert "watch, small/one, T2" in labels
    assert not [label for label in labels if "Tennessee" in label]


def test_tables_of_a_small_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_collection(tmp_path / "small", ["one"])
    for name, value in {"EVERY": 50, "STREAMS": 8, "SHIFTED": (1, 3), "CHANGES": 40}.items():
        monkeypatch.setattr(watch, name, value)
    wanted = (
        "watch, independent, T2",
        "watch, toeplitz 0.8, MEWMA 0.2",
        "watch, small/one, T2",
        "watch, toeplitz 0.8, bounds",
    )
    rows = [row for job in watch.jobs(True, tmp_path) if job.label in wanted for row in job.run()]
    rows += [
        {"kind": "tep", "chart": "PCA Q", "fault": "01", "flagged": 0.5, "minutes": 6},
        {"kind": "tep", "chart": "PCA Q", "fault": "02", "flagged": 0.1, "minutes": None},
        {"kind": "speed", "detector": "T2", "way": "alone", "rate": 1e5, "ratio": 1.0},
    ]
    tables = {table.name: table for table in watch.tables(rows)}
    assert [row["rule"] for row in tables["watch-false-alarms"].rows][:2] == ["T2", "MEWMA 0.2"]
    delays = tables["watch-delays-independent"].rows
    assert [row["shift"] for row in delays] == [0.5, 1.0, 2.0]
    assert delays[0]["s1"][0] > delays[2]["s3"][0] >= 1.0
    bounded = {row["rule"]: row for row in tables["watch-delays-toeplitz-0.8"].rows if row["shift"] == 1.0}
    least, one, real = (bounded[rule]["s1"][0] for rule in (watch.TOLD_ALL, watch.TOLD_ONE, "MEWMA 0.2"))
    assert 1.0 <= least < min(one, real)
    assert "s3" not in bounded[watch.TOLD_ONE]
    assert tables["watch-recorded"].cells()[0][:4] == ["small", "T2", "2", "1.00"]
    assert tables["watch-tep"].cells() == [["PCA Q", "0.300", "2", "1", "6.00"]]
    assert "river is not installed: its detectors are left out." in tables["watch-speed"].notes
    assert all(table.csv() and table.markdown() for table in tables.values())


@pytest.mark.slow
def test_speed_of_every_rule_is_relative_to_t2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_speed, "PLANTS", 4)
    rows = watch_speed.measure(True)
    alone = {row["detector"]: row for row in rows if row["way"] == "alone"}
    assert set(RULES) <= set(alone)
    assert alone["T2"]["ratio"] == 1.0
    assert all(row["rate"] > 0 for row in rows)
