"""The demo shows what the library does, in plain lines, in a live view and as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eccaht import Simulator, make_policy
from eccaht.cli.main import app
from eccaht.research.paper import fig1

SEED = 6


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "deep" / "er"


def run(out: Path, *arguments: str) -> str:
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
        assert (step["step"], step["lead"]) == (policy.n_readings, policy.lead)
        assert step["decision"] == policy.decision.tolist()
    assert document["decision"] == policy.decision.tolist()
    assert document["truth"] == world.anomalies.tolist()
    assert document["right"] == (document["decision"] == document["truth"])
    assert document["settings"]["seed"] == SEED
    assert [Path(file) for file in document["files"]] == [out / f"fig1.{end}" for end in ("pdf", "png", "csv")]
    assert all(Path(file).stat().st_size > 0 for file in document["files"])
