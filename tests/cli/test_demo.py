"""The demo shows what the library does, in plain lines, in a live view and as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from eccaht import Simulator, make_policy
from eccaht.base.statistics import reached_for_good
from eccaht.cli import demo as command
from eccaht.cli.main import app
from eccaht.research.experiments.comparison import compare
from eccaht.research.paper import fig1
from eccaht.research.paper.fig1 import Needed, problems

SEED = 6  # the gap rule stops within its 20 measurements
FEW = {"RUNS": 2, "LONGEST": 60}


@pytest.fixture(autouse=True)
def _few_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in FEW.items():
        monkeypatch.setattr(fig1, name, value)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "deep" / "er"


def run(out: Path, *arguments: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in FEW.items():
            patch.setattr(fig1, name, value)
        result = CliRunner().invoke(app, ["demo", "--out", str(out), *arguments])
    assert result.exit_code == 0
    assert result.stderr == ""
    return result.stdout


@pytest.fixture(scope="module")
def plain(out: Path) -> list[str]:
    """One demo that many tests look at."""
    return run(out, "--seed", str(SEED)).splitlines()


@pytest.fixture(scope="module")
def document(out: Path) -> dict[str, Any]:
    """The same one for programs."""
    document: dict[str, Any] = json.loads(run(out, "--seed", str(SEED), "--json"))
    return document


def test_plain_output_is_one_line_a_measurement_without_control_characters(plain: list[str]) -> None:
    measured = [line for line in plain if line.startswith("measurement ")]
    assert [int(line.split()[1].rstrip(":")) for line in measured] == list(range(1, 21))
    assert all(line.isascii() and line.isprintable() for line in plain)
    assert max(len(line) for line in measured) <= 80


@pytest.mark.parametrize(("seed", "right"), [(SEED, True), (4, False)])
def test_the_demo_says_plainly_whether_it_is_right(seed: int, right: bool, plain: list[str], tmp_path: Path) -> None:
    lines = plain if seed == SEED else run(tmp_path, "--seed", str(seed)).splitlines()
    (named,) = (line for line in lines if line.startswith("Named "))
    assert ("right" in named) == right
    assert ("WRONG" in named) == (not right)


def test_the_figures_and_the_table_are_saved_where_asked(plain: list[str], out: Path) -> None:
    saved = sorted(path.name for path in out.iterdir())
    assert saved == ["fig1.csv", "fig1.pdf", "fig1.png"]
    assert all(name in plain[-1] for name in saved)


def test_json_is_the_search_that_the_library_replays(document: dict[str, Any], out: Path) -> None:
    world = Simulator(fig1.problem(), seed=SEED)
    policy = make_policy("ecc-aht", fig1.problem(), seed=SEED)
    assert len(document["steps"]) == 20
    for step in document["steps"]:
        c = policy.ask()
        assert policy.pair == (step["champion"], step["challenger"])
        policy.tell(c, world.measure(c))
        assert step["weights"] == c.tolist()
        assert step["beliefs"] == policy.beliefs.tolist()
        assert (step["step"], step["lead"]) == (policy.n_told, policy.lead)
        assert step["decision"] == policy.decision.tolist()
    assert document["decision"] == policy.decision.tolist()
    assert document["truth"] == world.anomalies.tolist()
    assert document["right"] == (document["decision"] == document["truth"])
    assert document["settings"]["seed"] == SEED
    assert [Path(file) for file in document["files"]] == [out / f"fig1.{end}" for end in ("pdf", "png", "csv")]
    assert all(Path(file).stat().st_size > 0 for file in document["files"])


def test_json_says_when_the_gap_rule_stops(document: dict[str, Any]) -> None:
    rule = document["gap_rule"]
    leads = [step["lead"] for step in document["steps"]]
    assert rule["stopped_at"] == next(t for t, lead in enumerate(leads, 1) if lead >= rule["threshold"])
    assert rule["decision"] == document["steps"][rule["stopped_at"] - 1]["decision"]
    assert rule["right"] == (rule["decision"] == document["truth"])
    assert rule["threshold"] == pytest.approx(np.log(3 * 12 / 0.05))


def test_the_counts_that_the_demo_quotes_are_true() -> None:
    ends = [fig1.outcome(fig1.trace(seed)) for seed in range(command.SEEDS)]
    assert sum(end.right for end in ends) == command.RIGHT
    assert sum(end.stopped_at is not None for end in ends) == command.STOPPED
    assert sum(end.stopped_right is True for end in ends) == command.STOPPED_RIGHT


def test_both_policies_are_counted_side_by_side(plain: list[str], document: dict[str, Any]) -> None:
    rows = document["side_by_side"]
    assert [row["policy"] for row in rows] == ["ecc-aht", "joint"] * 2
    for (name, problem), pair in zip(problems().items(), (rows[:2], rows[2:]), strict=True):
        records = compare(problem, ["ecc-aht", "joint"], runs=2, horizon=60, seed=SEED)
        for row in pair:
            assert row["problem"] == name
            n = records.n_anomalies
            assert row["times"] == [reached_for_good(hits, n) for hits in records.hits[row["policy"]]]
    expected = command.beside([Needed(row["problem"], row["policy"], row["times"]) for row in rows])
    first = plain.index(expected[1]) - 1
    assert plain[first : first + len(expected)] == expected


def test_counts_side_by_side_are_put_plainly() -> None:
    rows = [
        Needed("kronecker noise, 4 of 64 streams", "ecc-aht", [3, None, 40]),
        Needed("kronecker noise, 4 of 64 streams", "joint", [4, 9, 5]),
        Needed("other", "ecc-aht", [None, None, 7]),
        Needed("other", "joint", [None, None, None]),
    ]
    lines = command.beside(rows)
    assert max(map(len, lines)) < 80
    assert [line.split()[-5:] for line in lines[3:5]] == [
        ["40", "never", "1", "of", "3"],
        ["5", "9", "0", "of", "3"],
    ]
    assert lines[5].split() == ["other", "ecc-aht", "over", "60", "never", "2", "of", "3"]
    assert lines[6].split() == ["joint", "over", "60", "never", "3", "of", "3"]


def test_every_summary_fits_a_terminal() -> None:
    worst = [12, 13, 14]
    for stopped in (None, worst, [10, 11, 12]):
        at = None if stopped is None else 20
        for decision, since in ((worst, 20), ([10, 11, 12], None)):
            end = fig1.Fig1Outcome(decision, worst, since, at, stopped)
            assert max(map(len, command.summary(end))) < 80
            assert len(command.summary(end)) == 5


def test_a_terminal_gets_the_live_view(tmp_path: Path) -> None:
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    main, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    few = "; ".join(f"fig1.{name} = {value}" for name, value in FEW.items())
    code = f"from eccaht.__main__ import main; from eccaht.research.paper import fig1; {few}; main()"
    arguments = [sys.executable, "-c", code, "demo", "--delay", "0", "--out", str(tmp_path)]
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    process = subprocess.Popen(arguments, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
    os.close(terminal)
    shown = bytearray()
    try:
        while chunk := os.read(main, 65536):
            shown += chunk
    except OSError:  # how Linux says that the other end was closed
        pass
    finally:
        os.close(main)
    assert process.wait() == 0
    text = shown.decode()
    assert "\x1b[" in text
    assert all(f"measurement {step} of 20" in text for step in range(1, 21))
    assert "Named streams 2, 6 and 11: right" in text
