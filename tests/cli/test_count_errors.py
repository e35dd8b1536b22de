"""The report says what the library counts; bad input is one line."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, UnknownShift, families
from eccaht.cli import count_errors as command
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import load_model
from eccaht.research.experiments.error_counts import Truth, count_errors, summarise
from tests.cli import commands

SMALL = ["--family", "toeplitz", "--streams", "8", "--rho", "0.6", "--anomalies", "2", "--shift", "1.5"]
FEW = ["--runs", "6", "--jobs", "1"]


invoke, document = partial(commands.invoke, "count-errors"), partial(commands.document, "count-errors")


def same(printed: Any, problem: Problem, **options: Any) -> bool:
    expected = json.loads(json.dumps(command.document(count_errors(problem, **options))))
    return bool({name: printed[name] for name in expected} == expected)


def test_json_holds_what_the_library_counts() -> None:
    options = ["--alpha", "0.01,0.2", "--stopping", "glr", "--policy", "exact", "--seed", "3", "--budget", "4"]
    printed = document(*SMALL, *FEW, *options, "--horizon", "50")
    problem = Problem(families.toeplitz(8, 0.6), shift=1.5, n_anomalies=2, budget=4.0)
    counted = {"alphas": (0.2, 0.01), "runs": 6, "horizon": 50, "seed": 3}
    assert same(printed, problem, policy="exact", stopping="glr", **counted)
    assert printed["settings"]["noise"] == {"family": "toeplitz", "rho": 0.6}
    assert [level["alpha"] for level in printed["levels"]] == [0.2, 0.01]


def test_open_numbers_and_sizes_reach_the_problem() -> None:
    words = ["--family", "identity", "--streams", "5", "--anomalies", "0-2", "--shift", "unknown:4:negative"]
    printed = document(*words, *FEW, "--horizon", "20", "--alpha", "0.2")
    shift = UnknownShift(4.0, "negative")
    problem = Problem(families.identity(5), shift=shift, n_anomalies=(0, 2), budget=5.0)
    assert same(printed, problem, alphas=[0.2], runs=6, horizon=20)
    lines = invoke(*words, *FEW, "--horizon", "20", "--alpha", "0.2").splitlines()
    assert lines[0].startswith("0 to 2 of 5 streams shifted by an unknown size (scale 4, negative), noise identity")


def test_what_is_true_can_be_given() -> None:
    words = ["--family", "identity", "--streams", "5", "--anomalies", "0-2", "--shift", "unknown:4", *FEW]
    words += ["--truly", "1", "--sizes", "3-4.5", "--horizon", "20", "--alpha", "0.2"]
    problem = Problem(families.identity(5), shift=UnknownShift(4.0), n_anomalies=(0, 2), budget=5.0)
    printed = document(*words)
    assert same(printed, problem, alphas=[0.2], runs=6, horizon=20, truth=Truth(1, (3.0, 4.5)))
    assert (printed["settings"]["truly"], printed["settings"]["sizes"]) == (1, "3-4.5")
    assert invoke(*words).startswith("0 to 2 (truly 1) of 5 streams shifted by an unknown size (scale 4) (truly 3-4.5)")


def test_the_table_has_one_line_an_alpha() -> None:
    lines = invoke(*SMALL, *FEW, "--alpha", "0.2,0.05").splitlines()
    problem = Problem(families.toeplitz(8, 0.6), shift=1.5, n_anomalies=2, budget=5.0)
    levels = summarise(count_errors(problem, alphas=(0.2, 0.05), runs=6))
    assert lines[0] == "2 of 8 streams shifted by 1.5, noise toeplitz 0.6, budget 5"
    assert lines[1].startswith("6 searches of at most 1000 ")
    assert lines[2].split()[:3] == ["alpha", "stopped", "wrong"]
    for line, level in zip(lines[3:], levels, strict=False):
        assert line.split()[:3] == [f"{level.alpha:g}", f"{level.stopped}/6", str(level.errors)]
        assert f"{level.measurements.mean:.1f}" in line
    assert any(line.startswith("The set was right for good after") for line in lines)
    assert all(line.isascii() and len(line) <= 130 for line in lines)


def test_searches_that_never_stop_are_named() -> None:
    printed = invoke(*SMALL, *FEW, "--horizon", "1", "--alpha", "0.001")
    assert "alpha 0.001: 6 never stopped" in printed
    assert "never" in printed.splitlines()[3]


def test_a_model_replaces_the_family(tmp_path: Path) -> None:
    values = families.toeplitz(6, 0.8).sample(np.random.default_rng(0), 3000)
    np.savetxt(tmp_path / "history.csv", values, delimiter=",", header="a,b,c,d,e,f", comments="")
    model = tmp_path / "plant.eccaht"
    calibrate([tmp_path / "history.csv"], row_interval="1min").save(model)
    printed = document("--model", str(model), "--anomalies", "1", "--shift", "-2", *FEW)
    assert same(printed, load_model(model).problem(shift=-2.0, n_anomalies=1, budget=5.0), runs=6)
    assert printed["settings"]["noise"] == {"model": str(model)}


NEEDED = "--anomalies 2 --shift 3"
BAD = {
    "--family toeplitz --shift 3": "--anomalies",
    "--family toeplitz --anomalies 2": "--shift",
    NEEDED: "--model MODEL, or --family NAME",
    f"{NEEDED} --model missing": "missing",
    f"{NEEDED} --model x --family toeplitz": "drop one",
    f"{NEEDED} --model x --rho 0.5": "drop one",
    f"{NEEDED} --family toeplits": "did you mean 'toeplitz'",
    f"{NEEDED} --family identity --rho 0.5": "no --rho",
    f"{NEEDED} --family toeplitz --alpha 0.05,x": "0.05,0.01",
    f"{NEEDED} --family toeplitz --alpha 0.05,0": "alpha",
    f"{NEEDED} --family toeplitz --alpha 0.05,0.05": "twice",
    f"{NEEDED} --family toeplitz --stopping never": "posterior, glr, union, own, gap",
    f"{NEEDED} --family toeplitz --policy ecc-aht": "joint and exact",
    f"{NEEDED} --family toeplitz --policy joit": "did you mean 'joint'",
    f"{NEEDED} --family toeplitz --truly 3": "from 2 to 2, not 3",
    f"{NEEDED} --family toeplitz --sizes 2-5": "these are known",
    f"{NEEDED} --family toeplitz --sizes large": "a range such as 2-5",
    f"{NEEDED} --family toeplitz --runs 0": "--runs",
    f"{NEEDED} --family toeplitz --budget 0": "budget",
    "--family toeplitz --anomalies few --shift 3": "whole number",
    "--family toeplitz --anomalies 3-1 --shift 3": "write 1-3",
    "--family toeplitz --anomalies 128 --shift 3": "smaller than the number of streams",
    "--family toeplitz --anomalies 0-2 --shift 3 --policy ecc-aht --stopping gap": "known number",
    "--family toeplitz --anomalies 2 --shift unknown": "unknown:SCALE",
    "--family toeplitz --anomalies 2 --shift unknown:3 --policy ecc-aht --stopping gap": "known shifts",
    "--family toeplitz --anomalies 5 --shift 3 --policy exact": "joint",
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line_and_exit_code_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert BAD[words] in commands.refused(["count-errors", *words.split()], capsys)
