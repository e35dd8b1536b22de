"""The comparison on the command line is the library's, checked before it starts and complete when it ends."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, covariance, families, policy_names
from eccaht.research.experiments import comparison
from eccaht.research.experiments.comparison import Records, compare, refusal, summarise
from tests.cli import commands

SMALL = ["--streams", "16", "--anomalies", "2", "--shift", "4", "--budget", "3", "--runs", "3", "--horizon", "25"]
QUICK = [*SMALL, "--jobs", "1"]


def problem() -> Problem:
    return Problem(families.toeplitz(16, 0.8), shift=4.0, n_anomalies=2, budget=3.0)


invoke, document = partial(commands.invoke, "compare"), partial(commands.document, "compare")


def without_times(printed: Any) -> Any:
    return {**printed, "policies": [{**row, "microseconds_per_step": None} for row in printed["policies"]]}


def test_json_holds_what_the_library_computes() -> None:
    printed = document(*QUICK, "--seed", "3", "--policies", "round-robin,ecc-aht")
    rows = summarise(compare(problem(), ["round-robin", "ecc-aht"], runs=3, horizon=25, seed=3))
    assert [row["policy"] for row in printed["policies"]] == ["round-robin", "ecc-aht"]
    for said, row in zip(printed["policies"], rows, strict=True):
        for name, delay in (("first", row.first), ("for_good", row.for_good)):
            assert said[name]["times"] == delay.times
            assert said[name]["mean"] == delay.mean
            assert said[name]["interval"] == (None if delay.interval is None else list(delay.interval))
            assert said[name]["censored"] == delay.times.count(None)
            assert said[name]["lower_bound"] == (None in delay.times)
        assert said["final_f1"]["mean"] == row.final_f1.mean
        assert said["final_hits"] == row.final_hits
        assert said["microseconds_per_step"] > 0
    assert printed["settings"]["covariance"] == {"family": "toeplitz", "rho": 0.8}
    numbers = {"streams": 16, "anomalies": 2, "shift": 4.0, "budget": 3.0, "runs": 3, "horizon": 25, "seed": 3}
    assert printed["settings"].items() >= numbers.items()


def test_the_same_command_prints_the_same_numbers_on_any_number_of_processes() -> None:
    names = ["--policies", "ecc-aht,random-sparse"]
    one, two = (without_times(document(*SMALL, *names, "--jobs", jobs)) for jobs in ("1", "2"))
    assert one == two


def test_all_runs_every_policy_that_applies_and_says_why_others_do_not() -> None:
    printed = document(*QUICK, "--runs", "1", "--horizon", "5")
    reasons = {name: refusal(name, problem()) for name in policy_names()}
    assert [row["policy"] for row in printed["policies"]] == [name for name, why in reasons.items() if why is None]
    assert printed["does_not_apply"] == {name: why for name, why in reasons.items() if why is not None}


def test_censored_runs_are_shown_and_make_the_mean_a_lower_bound() -> None:
    hopeless = [*QUICK, "--shift", "0.34", "--policies", "ecc-aht", "--horizon", "3"]
    assert document(*hopeless)["policies"][0]["for_good"]["censored"] == 3
    lines = invoke(*hopeless).splitlines()
    (line,) = (line for line in lines if line.startswith("ecc-aht"))
    assert line.count(">=3.0") == 2
    assert line.count("3/3 censored") == 2
    assert "counts as 3" in lines[-1]
    easy = invoke(*QUICK, "--shift", "30", "--policies", "ecc-aht")
    assert "censored" not in easy
    assert ">=3" not in easy


FAMILIES = {
    "toeplitz": families.toeplitz(16, 0.8),
    "toeplitz --rho -0.5": families.toeplitz(16, -0.5),
    "equicorrelation --rho 0.3": families.equicorrelation(16, 0.3),
    "block --rho 0.3": families.block(16, 0.3),
    "circulant --rho 0.3": families.circulant(16, 0.3),
    "graph --rho 0.3": families.graph(16, 0.3),
    "exponential": families.toeplitz(16, 0.8),
    "rbf --rho 0.9": families.rbf(16, rho=0.9),
    "kronecker --rho 0.3": families.kronecker(0.3, shape=(2, 8)),
    "spectral-mixture --rho 0.9": families.spectral_mixture(16, 0.9),
    "identity": families.identity(16),
}


@pytest.mark.parametrize(("words", "expected"), FAMILIES.items())
def test_every_family_is_reached_by_its_name(
    words: str, expected: covariance.Covariance, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Problem] = []

    def note(setting: Problem, names: list[str], **_: Any) -> Records:
        asked.append(setting)
        hits = {name: np.ones((3, 25), dtype=np.int32) for name in names}
        return Records(2, 0, hits, {name: np.ones(3) for name in names})

    monkeypatch.setattr(comparison, "compare", note)
    printed = document(*QUICK, "--policies", "ecc-aht", "--family", *words.split())
    assert type(asked[0].covariance) is type(expected)
    np.testing.assert_allclose(asked[0].covariance.dense(), expected.dense(), rtol=1e-12)
    assert printed["settings"]["covariance"]["family"] == words.split()[0]


def test_the_shift_may_differ_by_stream() -> None:
    shifts = [4.0, -3.0] * 8
    printed = document(*QUICK, "--policies", "ecc-aht", "--shift", ",".join(map(str, shifts)))
    setting = Problem(families.toeplitz(16, 0.8), shift=shifts, n_anomalies=2, budget=3.0)
    records = compare(setting, ["ecc-aht"], runs=3, horizon=25)
    assert printed["settings"]["shift"] == shifts
    assert printed["policies"][0]["final_hits"] == records.hits["ecc-aht"][:, -1].tolist()


VALUES = {
    "--rho": "1 nan x",
    "--streams": "1 1000000000000000",
    "--anomalies": "0 128",
    "--shift": "0 x 1,,2 1,2 nan",
    "--budget": "0 nan",
    "--policies": "ecc-aht,ecc-ath ecc-aht,ecc-aht ecc-aht, ecc-aht,all hds",
    "--plot": "f1.svg f1 nowhere/f1.png directory.png",
    "--family": "toeplits",
    "--family identity --rho": "0.5",
    "--family kronecker --streams": "20",
    "--family spectral-mixture --rho": "1",
    "--family exponential --rho": "-0.5 1",
    "--policies ecc-aht --budget": "0.1",
    **dict.fromkeys(("--runs", "--horizon", "--jobs", "surplus"), "0"),
    "--seed": "-1",
}
BAD = [f"{options} {value}" for options, values in VALUES.items() for value in values.split()]


@pytest.mark.parametrize("words", BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("directory.png").mkdir()
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(comparison, "_run", lambda *_: pytest.fail("work began before the input was checked"))
    outputs = [] if "--plot" in words else ["--plot", "kept.png"]
    commands.refused(["compare", *words.split(), *outputs], capsys)
    assert sorted(tmp_path.rglob("*")) == before
