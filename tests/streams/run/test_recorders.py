"""The ledger holds every measurement, for people and for programs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from eccaht import Problem, Simulator, families, make_policy
from eccaht.plants.incident.picture import draw_search
from eccaht.plants.incident.search import Finding, investigate
from eccaht.plants.replay import Replay
from eccaht.streams.run.loop import steps
from eccaht.streams.run.recorders import Ledger

START = np.datetime64("2024-05-01T08:00", "us")


@pytest.fixture(scope="module")
def problem() -> Problem:
    names = ["in, let", "out=let", "tank;1", "é", "x"]
    return Problem(families.toeplitz(5, 0.6), shift=3.0, n_anomalies=2, budget=3.0, names=names)


@pytest.fixture(scope="module")
def search(problem: Problem) -> tuple[Finding, Ledger]:
    x = Simulator(problem, anomalies=[1, 4], seed=0).sample(25)
    x[3, 1] = np.nan
    rows = [(START + np.timedelta64(k * 500, "ms"), row) for k, row in enumerate(x)]
    policy = make_policy("ecc-aht", problem, stopping=None)
    ledger = Ledger(policy)
    return investigate(policy, Replay(rows, problem, per_window=2), ledger=ledger), ledger


@pytest.fixture(scope="module")
def finding(search: tuple[Finding, Ledger]) -> Finding:
    return search[0]


@pytest.fixture(scope="module")
def ledger(search: tuple[Finding, Ledger]) -> Ledger:
    return search[1]


def test_scores_can_be_added_up_from_the_table(
    problem: Problem, finding: Finding, ledger: Ledger, tmp_path: Path
) -> None:
    table = pl.read_parquet(ledger.save(tmp_path / "l.parquet"))
    assert len(table) == finding.n_measurements > 25
    moved = table.select("moved").explode("moved").unnest("moved").group_by("sensor").agg(pl.col("value").sum())
    total = dict(moved.iter_rows())
    for k, name in enumerate(problem.names or ()):
        # changes below 0.005 are not listed
        assert total[name] == pytest.approx(finding.scores[k] - np.log(2 / 3), abs=len(table) * 0.005)
    for entry, row in zip(finding.entries, table.iter_rows(named=True), strict=True):
        c = np.zeros(5)
        for pair in row["weights"]:
            c[(problem.names or ()).index(pair["sensor"])] = pair["value"]
        assert np.array_equal(c, entry.weights)
        assert row["reading"] == entry.reading
        assert row["time"] == entry.time.item()
        assert (row["expected"], row["expected_if_swapped"]) == (entry.expected, entry.expected_swapped)


def test_csv_and_parquet_say_the_same(ledger: Ledger, tmp_path: Path) -> None:
    table = pl.read_parquet(ledger.save(tmp_path / "l.parquet"))
    with ledger.save(tmp_path / "l.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == table.columns
    for written, row in zip(rows, table.iter_rows(named=True), strict=True):
        assert float(written["reading"]) == row["reading"]
        assert written["weights"] == "; ".join(f"{p['sensor']}={p['value']:.6g}" for p in row["weights"])
        assert written["set"] == "; ".join(row["set"])
    assert [written["time"] for written in rows[:3]] == [
        "2024-05-01 08:00:00",
        "2024-05-01 08:00:00",
        "2024-05-01 08:00:00.500000",
    ]


def test_a_ledger_that_cannot_be_written_leaves_nothing(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.csv or \.parquet"):
        ledger.save(tmp_path / "l.xlsx")
    assert list(tmp_path.iterdir()) == []


def test_the_picture_shows_the_scores_over_time_and_the_set(problem: Problem, finding: Finding, tmp_path: Path) -> None:
    figure = draw_search(problem, finding, 0.5)
    top, bottom, *_ = figure.axes
    drawn = {tuple(np.round(np.asarray(line.get_ydata(), dtype=float)[1:], 6)) for line in top.lines[:5]}
    track = np.round(np.array([entry.scores for entry in finding.entries]), 6)
    assert drawn == {tuple(track[:, k]) for k in range(5)}
    assert {text.get_text() for text in top.texts} >= set(finding.names)
    labels = [label.get_text() for label in bottom.get_yticklabels()]
    assert set(labels[:2]) == set(finding.names)
    title = top.get_title(loc="left") + top.get_title()
    assert title == f"out=let, x: data end after {finding.n_measurements} measurements"
    figure.savefig(tmp_path / "evidence.png")


def test_one_measurement_can_be_drawn(problem: Problem, tmp_path: Path) -> None:
    x = Simulator(problem, anomalies=[1, 4], seed=0).sample(1)
    single = investigate(make_policy("ecc-aht", problem, stopping=None), Replay([(START, x[0])], problem))
    draw_search(problem, single, 60.0).savefig(tmp_path / "evidence.png")


@pytest.mark.parametrize("whole", [False, True])
def test_a_simulated_search_has_a_ledger_without_times(problem: Problem, whole: bool, tmp_path: Path) -> None:
    policy = make_policy("joint", problem, stopping=None)
    ledger = Ledger(policy)
    made = list(steps(policy, Simulator(problem, anomalies=[1, 4]), 5, whole=whole, recorders=[ledger]))
    assert len(pl.read_parquet(ledger.save(tmp_path / "l.parquet"))) == len(made) == len(ledger.entries) == 5
    assert len(ledger.save(tmp_path / "l.csv").read_text(encoding="utf-8").splitlines()) == 6
    assert np.array_equal(ledger.entries[-1].decision, policy.decision)
    rival = ledger.evidence.best_change(policy.decision)
    assert rival.log_odds == pytest.approx(policy.lead)  # search and report have one evidence


def test_a_ledger_begins_with_the_search_or_knows_what_was_read(problem: Problem) -> None:
    world = Simulator(problem, anomalies=[1, 4], seed=0)
    early = make_policy("ecc-aht", problem, stopping=None)
    for _ in steps(early, world, 3):
        pass
    with pytest.raises(ValueError, match=r"was given 3 readings that the ledger lacks: begin the ledger .* joint"):
        Ledger(early)
    joint = make_policy("joint", problem, stopping=None)
    for _ in steps(joint, world, 3):
        pass
    ledger = Ledger(joint)
    for _ in steps(joint, world, 4, recorders=[ledger]):
        pass
    assert [entry.number for entry in ledger.entries] == [1, 2, 3, 4]


def test_a_ledger_is_about_one_policy(problem: Problem) -> None:
    world, (one, other) = Simulator(problem, seed=0), (make_policy("ecc-aht", problem, seed=k) for k in range(2))
    ledger = Ledger(one)
    with pytest.raises(ValueError, match="a ledger is about one policy: make another Ledger for this one"):
        next(steps(other, world, recorders=[ledger]))
    with pytest.raises(ValueError, match="a ledger is about one policy"):
        investigate(other, world, ledger=ledger, max_measurements=3)
    assert (other.n_told, ledger.entries) == (0, [])
