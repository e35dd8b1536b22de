"""Untrusted files: refused in one line or soundly used, in bounded memory, whatever was done to them."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from eccaht import Problem, families, load_policy, make_policy
from eccaht.cli.main import run
from tests.checks.archives import Arrays, Change, edit

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")


def faults(kind: str, count: int, seed: int) -> str:
    """What a process with little memory has to say of so many hostile files; one that hangs is ended."""
    command = [sys.executable, "-W", "error", "-m", "tests.checks.hostile", kind, str(count), str(seed)]
    limits = {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | limits, capture_output=True, text=True, timeout=1800, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(("kind", "count"), [("policies", 40), ("models", 20), ("watches", 20)])
def test_hostile_files(kind: str, count: int) -> None:
    assert faults(kind, count, seed=0) == ""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("policies", 8000), ("models", 4000), ("watches", 4000)])
@pytest.mark.parametrize("seed", [1, 2])
def test_many_hostile_files(kind: str, count: int, seed: int) -> None:
    assert faults(kind, count, seed) == ""


@pytest.mark.parametrize("command", ["drill", "identify", "count-errors"])
def test_pipes_and_devices_are_no_models(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "data.csv").write_text("time,a,b\n")
    more = {
        "identify": ["--data", str(tmp_path / "data.csv")],
        "count-errors": ["--anomalies", "1", "--shift", "2"],
    }.get(command, [])
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        model = [path] if command == "drill" else ["--model", path]
        assert run([command, *model, *more]) == 2
        assert "not a regular file" in capsys.readouterr().err


def test_pipes_and_devices_are_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        assert run(["calibrate", path, "--out", str(tmp_path / "model")]) == 2
        assert "not a regular file" in capsys.readouterr().err


# -- states that no search can be in -------------------------------------------------------------------


def scaled(name: str, factor: float) -> Change:
    return lambda _, arrays: arrays.update({name: arrays[name] * factor})


def put(name: str, place: int, value: float) -> Change:
    return lambda _, arrays: arrays[name].reshape(-1).__setitem__(place, value)


def told(count: int) -> Change:
    return lambda content, _: content["state"].update(n_readings=count)


def others(_: object, arrays: Arrays) -> None:
    """Put two streams in the place of the MAP set that are not in it."""
    arrays["state.belief.slots"] = np.setdiff1d(np.arange(8), arrays["state.belief.slots"])[:2]


def flipped(_: object, arrays: Arrays) -> None:
    arrays["state.belief.evidence.matrix"] = np.flip(arrays["state.belief.evidence.matrix"]).copy()


IMPOSSIBLE: dict[str, tuple[str, Change, str]] = {
    "a measurement beyond the budget": ("ecc-aht", scaled("state.choice.weights", 2.0), "exceeds the budget"),
    "a measurement of nothing": ("ecc-aht", scaled("state.choice.weights", 0.0), "all zero"),
    "a pair of one": ("ecc-aht", lambda _, arrays: arrays["state.choice.pair"].fill(3), "pair"),
    "more readings than counted": ("joint", told(2), "n_readings"),
    "fewer readings than counted": ("joint", told(9), "n_readings"),
    "a reversed table": ("joint", flipped, "statistics"),
    "a scaled table": ("joint", scaled("state.belief.evidence.matrix", 2.0), "statistics"),
    "other sums": ("joint", scaled("state.belief.evidence.linear", 1e3), "statistics"),
    "another set": ("joint", others, "MAP set"),
    "another order": ("joint", put("state.belief.order", 0, 3), "order of ties"),
    "a set twice": ("joint-pair", lambda _, a: a["state.belief.posterior.sets"].fill(3), "streams"),
    "scores that moved": ("ecc-aht", told(0), "without a reading"),
    "sums of nothing": ("mean-difference", scaled("state.belief.precisions", 0.0), "agree"),
    "a walk without readings": ("hds", put("state.belief.visit", 0, 4.0), "counts|walk"),
    "declared unread": ("hds", put("state.belief.declared", 7, 1), "a walk cannot"),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_states_that_no_search_can_be_in(name: str, tmp_path: Path) -> None:
    policy_name, change, word = IMPOSSIBLE[name]
    noise = families.identity(8) if policy_name == "hds" else families.toeplitz(8, 0.6)
    policy = make_policy(policy_name, Problem(noise, shift=4.0, n_anomalies=2, budget=3.0))
    for y in (1.0, 3.0, -2.0):
        policy.tell(policy.ask(), y)
    policy.ask()
    policy.save(tmp_path / "policy")
    load_policy(tmp_path / "policy")
    edit(tmp_path / "policy", change)
    with pytest.raises(ValueError, match=word) as error:
        load_policy(tmp_path / "policy")
    assert "\n" not in str(error.value)


def test_a_covariance_whose_indices_lead_out_of_it_is_refused(tmp_path: Path) -> None:
    problem = Problem(families.graph(16, 0.5, p=0.3), shift=3.0, n_anomalies=1, budget=3.0)
    make_policy("ecc-aht", problem).save(tmp_path / "policy")
    edit(tmp_path / "policy", put("problem.covariance.parameters.row_index", 0, 10**9))
    with pytest.raises(ValueError, match="not a valid policy file"):
        load_policy(tmp_path / "policy")
