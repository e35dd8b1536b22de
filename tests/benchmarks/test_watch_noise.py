"""Watching under other noise: a small run of the part, from jobs to the table."""

import pytest

from benchmarks import watch_noise
from eccaht.streams.watch.thresholds import SimulatedNoise, calibrated


def test_every_case_is_a_job() -> None:
    labels = [job.label for job in watch_noise.jobs(False)]
    assert len(set(labels)) == len(labels) == 2 * 2 * len(watch_noise.NOISES)


def test_table_of_a_small_run(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        "EVERY": 50,
        "WINDOWS": 300,
        "RUNS": 80,
        "ESTIMATES": {5: 2},
        "STREAMS": (5,),
        "FAMILIES": ("independent",),
    }
    for name, value in small.items():
        monkeypatch.setattr(watch_noise, name, value)
    monkeypatch.setattr(watch_noise, "calibrated", lambda *known: calibrated(*known, windows=20_000))
    monkeypatch.setattr(watch_noise, "NOISES", {"t5": SimulatedNoise(5.0), "sample": SimulatedNoise(None, 20)})
    rows = [row for job in watch_noise.jobs(False) for row in job.run()]
    assert [row["assumed"] for row in rows] == ["Gaussian", "given"] * 2
    for blind, given in zip(rows[::2], rows[1::2], strict=True):
        assert blind["low"] <= blind["mean_time"] <= blind["high"] < given["mean_time"]
        assert blind["delay"] < given["delay"]
    (table,) = watch_noise.tables(rows)
    assert table.csv()
    assert table.markdown()
