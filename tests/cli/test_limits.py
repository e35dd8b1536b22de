"""The limits that the command prints are those of the library."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eccaht import Problem, families
from eccaht.cli import limits as command
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import load_model
from eccaht.streams.limits import limits
from tests.cli import commands

SMALL = ["--streams", "12", "--anomalies", "2", "--rho", "0.7", "--sets", "2"]


invoke, document = partial(commands.invoke, "limits"), partial(commands.document, "limits")


def same(printed: Any, problem: Problem, **options: Any) -> bool:
    expected = json.loads(json.dumps(command.document(limits(problem, **options))))
    return bool({name: printed[name] for name in expected} == expected)


def test_json_holds_what_the_library_computes() -> None:
    printed = document(*SMALL, "--alpha", "0.01", "--seed", "3", "--shift", "2", "--budget", "4")
    problem = Problem(families.toeplitz(12, 0.7), shift=2.0, n_anomalies=2, budget=4.0)
    assert same(printed, problem, alpha=0.01, n_sets=2, seed=3)
    assert printed["settings"]["noise"] == {"family": "toeplitz", "rho": 0.7}
    assert printed["settings"].items() >= {"streams": 12, "anomalies": 2, "shift": 2.0, "budget": 4.0}.items()


def test_each_figure_has_one_line_of_meaning() -> None:
    lines = invoke(*SMALL).splitlines()
    assert lines[0] == "2 of 12 streams shifted by 3, noise toeplitz 0.7, budget 5"
    problem = Problem(families.toeplitz(12, 0.7), shift=3.0, n_anomalies=2, budget=5.0)
    figures = command.figures(limits(problem, n_sets=2))
    assert len(lines) == 2 + len(figures) + 1
    for line, (name, figure) in zip(lines[2:], figures.items(), strict=False):
        assert line.startswith(name)
        assert figure in line
        assert len(line) > len(name) + len(figure) + 20
    assert "every rival was enumerated or ruled out" in lines[-1]
    assert all(line.isascii() and len(line) <= 120 for line in lines)


def test_a_binding_budget_is_said() -> None:
    printed = invoke("--family", "kronecker", "--streams", "16", "--anomalies", "2", "--budget", "0.7", "--sets", "1")
    assert "The budget binds" in printed


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import numpy as np

    place = tmp_path_factory.mktemp("limits")
    values = families.toeplitz(6, 0.8).sample(np.random.default_rng(0), 3000)
    np.savetxt(place / "history.csv", values, delimiter=",", header="a,b,c,d,e,f", comments="")
    calibrate([place / "history.csv"], row_interval="1min").save(place / "plant.eccaht")
    return place / "plant.eccaht"


def test_a_model_replaces_the_family(model: Path) -> None:
    printed = document("--model", str(model), "--anomalies", "1", "--shift", "2", "--sets", "9")
    problem = load_model(model).problem(shift=2.0, n_anomalies=1, budget=5.0)
    assert same(printed, problem, n_sets=9)
    assert printed["every_set"]
    assert printed["settings"]["noise"] == {"model": str(model)}


BAD = {
    "--model missing": "missing",
    "--model x --family toeplitz": "drop one",
    "--model x --streams 4": "drop one",
    "--streams 1000": "512",
    "--anomalies 128": "smaller than the number of streams",
    "--alpha 0": "alpha",
    "--alpha nan": "alpha",
    "--shift 0": "shift",
    "--budget 0": "budget",
    "--family toeplits": "did you mean 'toeplitz'",
    "--family identity --rho 0.5": "no --rho",
    "--sets 0": "--sets",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line_and_exit_code_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert BAD[words] in commands.refused(["limits", *words.split()], capsys)
