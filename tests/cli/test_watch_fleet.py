"""`eccaht watch --fleet` on a few small plants: the events of each are those of that plant watched alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.cli.main import run
from eccaht.cli.watch_fleet import FleetPlant, Member, replay, shared_model
from eccaht.plants.model.model import Notation
from tests.cli.watched import lines, make_model, until_it_ends
from tests.clusters import cluster

RATE = ("--false-alarms", "1/5000w")
PLANTS = ("boiler", "mill", "pump 2")
SHORT = 451  # lines of a record: the first fault begins and ends


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet: a plant with its own model file, one with a copy of it, and one that names both in a plant.toml."""
    directory = tmp_path_factory.mktemp("fleet")
    model = make_model(directory)
    fleet = directory / "fleet"
    for seed, name in enumerate(PLANTS, 1):
        folder = fleet / name
        folder.mkdir(parents=True)
        (folder / "live.csv").write_text("\n".join(lines(seed)[:SHORT]) + "\n")
        if name == "pump 2":
            said = f'model = "../../{model.name}"\ndata = "live.csv"\nfalse_alarms = "1/2000w"\n'
            (folder / "plant.toml").write_text(said)
            shutil.copy(directory / "history.csv", folder)
        else:
            shutil.copy(model, folder / "boiler.model")
    return directory


@pytest.fixture(scope="module")
def alone(place: Path) -> dict[str, list[dict[str, Any]]]:
    """The events of each plant watched alone, the last window, of which rows may follow, left out."""
    found = {}
    for name in PLANTS:
        log, state = place / f"{name}.jsonl", place / f"{name}.state"
        rate = ("--false-alarms", "1/2000w") if name == "pump 2" else RATE
        data = place / "fleet" / name / "live.csv"
        model = ("--model", str(place / "plant.eccaht"), "--data", str(data))
        assert run(["watch", *model, *rate, "--state", str(state), "--log", str(log)]) == 0
        found[name] = [event for event in read(log) if event["number"] is not None]
        assert "alarm" in {event["event"] for event in found[name]}
    return found


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def command(fleet: Path, *more: str) -> list[str]:
    return ["watch", "--fleet", str(fleet), *RATE, *more]


def by_plant(documents: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in PLANTS}
    for document in documents:
        plant = document.pop("plant")
        assert (plant is None) == (document["number"] is None)
        if plant is not None:
            found[plant].append(document)
    return found


def copied(place: Path, tmp_path: Path) -> Path:
    shutil.copy(place / "plant.eccaht", tmp_path)
    return Path(shutil.copytree(place / "fleet", tmp_path / "fleet"))


# -- the same events -----------------------------------------------------------------------------------


def test_recordings_one_after_the_other(
    place: Path, alone: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, states = tmp_path / "log", tmp_path / "states"
    arguments = command(place / "fleet", "--log", str(log), "--state", str(states), "--json")
    assert run(arguments) == 0
    printed = capsys.readouterr().out
    assert printed == log.read_text()
    documents = read(log)
    assert [documents[0]["text"], documents[-1]["event"]] == ["started: 3 plants with 12 sensors", "stopped"]
    assert next(iter(documents[1])) == "plant"
    assert by_plant(documents) == alone
    assert sorted(path.name for path in states.iterdir()) == [f"{name}.state" for name in PLANTS]
    log.unlink()
    assert run(arguments) == 0  # nothing is counted twice
    assert [document["event"] for document in read(log)] == ["started", "stopped"]


def test_lines_for_people_begin_with_the_plant(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command(place / "fleet")) == 0
    out = capsys.readouterr().out.splitlines()
    assert "started: 3 plants" in out[0]
    assert all(line.split("  ", 1)[1].startswith(tuple(f"{name}: " for name in PLANTS)) for line in out[1:-1])


@pytest.mark.slow
def test_a_cluster_replays_the_same(place: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert run(command(place / "fleet", "--log", str(here))) == 0
    with cluster() as address:
        started = [sys.executable, "-m", "eccaht", *command(Path("fleet"), "--log", str(there))]
        started += ["--scheduler", address]
        done = subprocess.run(started, cwd=place, env=_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    events = [event for event in read(here) if event["number"] is not None]
    assert [event for event in read(there) if event["number"] is not None] == events
    assert read(there)[-1]["text"] == read(here)[-1]["text"]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


# -- killed, and broken --------------------------------------------------------------------------------


def test_killed_at_any_write_it_goes_on_with_the_same_events(
    place: Path,
    alone: dict[str, Any],
    tmp_path: Path,
    killer: Callable[[int | None], list[str]],
) -> None:
    def arguments(name: object) -> list[str]:
        return command(place / "fleet", "--log", str(tmp_path / f"{name}.log"), "--state", str(tmp_path / f"{name}"))

    moments = killer(None)
    assert until_it_ends(arguments("undisturbed"))
    for number in np.linspace(2, len(moments) - 6, 3).astype(int).tolist():
        killer(number)
        assert not until_it_ends(arguments(number))
        killer(number // 3)  # and once more, earlier
        until_it_ends(arguments(number))
        killer(None)
        assert until_it_ends(arguments(number))
        assert by_plant(read(tmp_path / f"{number}.log")) == alone, number


def test_a_plant_that_breaks_ends_no_other(
    place: Path, alone: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rows cannot be read, which its first lines do not show."""
    fleet, log = copied(place, tmp_path), tmp_path / "log"
    path = fleet / "mill" / "live.csv"
    path.write_text(path.read_text().replace("timestamp", "s9").replace("2017-09-26T", "soon "))
    assert run(command(fleet, "--log", str(log), "--state", str(tmp_path / "states"))) == 1
    said = capsys.readouterr().err
    assert said.count("mill cannot be read: ") == 1
    assert by_plant(read(log)) == {**alone, "mill": []}


# -- bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--model", "m"], "--fleet watches many plants, each with its own data: leave out --model"),
        (["--data", "d", "--shelve", "s1:1h"], "leave out --data, --shelve"),
        (["--orders", "o"], "leave out --orders"),
        (["--follow"], "--fleet replays recordings; to follow growing files of many plants run 'eccaht serve"),
        (["--scheduler", "tcp://here:1", "--state", "s"], "keeps no state: leave out --state"),
        (["--log", "PLACE/fleet/mill/live.csv"], "--log PLACE/fleet/mill/live.csv would overwrite the data of mill"),
        (["--state", "PLACE/plant.eccaht"], "--state PLACE/plant.eccaht is a file: give a directory"),
        (["--fleet", "PLACE/none"], "there is no directory PLACE/none"),
        (["--fleet", "PLACE/fleet/mill"], "PLACE/fleet/mill has no plants: make a folder for each"),
    ],
)
def test_options_that_make_no_sense(
    place: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert run([*command(place / "fleet"), *(text.replace("PLACE", str(place)) for text in more)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said.replace("PLACE", str(place)) in err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--scheduler", "tcp://here:1"], "--scheduler is for replays of many plants: add --fleet DIR"),
        (["--model", "m"], "give --model and --data, or --fleet DIR for many plants"),
    ],
)
def test_neither_one_plant_nor_many(capsys: pytest.CaptureFixture[str], more: list[str], said: str) -> None:
    assert run(["watch", *more]) == 2
    assert said in capsys.readouterr().err


def test_all_faulty_plants_are_listed(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = copied(place, tmp_path)
    expected = {}

    def faulty(name: str, said: str, settings: str | None = None) -> Path:
        expected[name] = said
        folder = Path(shutil.copytree(fleet / "mill", fleet / name))
        if settings is not None:
            (folder / "plant.toml").write_text(settings)
        return folder

    (faulty("a", "it needs one model, *.model or *.eccaht") / "boiler.model").unlink()
    (faulty("b", "it has no data: add CSV or Parquet files") / "live.csv").unlink()
    shutil.copy(fleet.parent / "plant.eccaht", faulty("c", "found boiler.model, other.eccaht") / "other.eccaht")
    (faulty("d", "is not a valid model file") / "boiler.model").write_text("no model")
    (faulty("e", "has no column for 1 of the model's sensors: 's1'") / "live.csv").write_text(
        "time,s0,s2,s3\n1,2,3,4\n"
    )
    faulty("f", "plant.toml says 'modell', which is none of model, data, false_alarms", 'modell = "m"')
    faulty("g", "plant.toml: data must be a text or a list of texts", "data = [1]")
    faulty("h", "plant.toml cannot be read: ", "data = ")
    faulty("i", "no model file at", 'model = "none.model"')
    faulty("j", "--false-alarms 'often' is no rate", 'false_alarms = "often"')
    (fleet / ".git").mkdir()
    states = tmp_path / "states"
    states.mkdir()
    expected["mill"] = "is not a valid watch-state file"
    (states / "mill.state").write_text("no state")
    assert run(command(fleet, "--state", str(states))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    found = dict(line.removeprefix("eccaht: plant ").split(": ", 1) for line in err.splitlines())
    assert list(found) == sorted(expected)
    for name, said in expected.items():
        assert said in found[name]


# -- what plants share ---------------------------------------------------------------------------------


def test_copies_of_a_model_file_are_one_model(place: Path) -> None:
    model, digest = shared_model(place / "plant.eccaht")
    copy, same = shared_model(place / "fleet" / "mill" / "boiler.model")
    assert copy is model
    assert same == digest


def test_a_recording_that_cannot_be_read_on_a_worker_is_reported(place: Path, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3,4\n")
    plant = FleetPlant("p", place / "plant.eccaht", (tmp_path / "data.csv",))
    _, found = replay(0, Member(plant, 300.0, None), {"missing": "refuse", "notation": Notation(None, None, None)})
    assert found.events == ()
    assert found.error is not None
    assert "has no column for 4 of the model's sensors" in found.error
