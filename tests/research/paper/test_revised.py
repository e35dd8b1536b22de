"""The experiments of the revision: what is run, what the tables and verdicts say of known runs, and the figures."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eccaht.research.paper import runner, storage
from eccaht.research.paper.catalogue import choose
from eccaht.research.paper.experiment import Experiment
from eccaht.research.paper.published import PUBLISHED
from eccaht.research.paper.results import Results
from eccaht.research.paper.revised import REVISED, confidence_table, information_limit
from eccaht.research.paper.revised_claims import REVISED_CLAIMS

BY_ID = {experiment.id: experiment for experiment in REVISED}
CLAIMS = {claim.id: claim for claim in REVISED_CLAIMS}


def known(experiment: Experiment, readings: dict[str, float], runs: int = 40, wrong: int = 0) -> Results:
    """Searches that take about so many readings, the first of them wrong; more nats take more."""
    rng, cells = np.random.default_rng(0), {}
    for k, row in experiment.cells:
        setting = experiment.settings[k]
        nats = math.log(1.0 / setting.options["alpha"])
        mean = readings.get(row, 100.0) * (nats if experiment.id == "revised-rate" else 1.0)
        hits = np.full(runs, setting.n_anomalies)
        hits[:wrong] = 0
        noise = np.zeros(runs) if experiment.id == "revised-sweeps" else rng.normal(0.0, 0.02 * mean, runs)
        cells[k, row] = np.stack([hits, np.maximum(np.round(mean + noise), 1), np.ones(runs)], axis=1).astype(np.int32)
    return Results(experiment, 0, cells)


def test_revised_is_a_group_of_its_own() -> None:
    assert [each.id for each in choose(["revised"])] == [*BY_ID]
    assert not {each.id for each in choose(["all"])} & BY_ID.keys()


def test_every_number_of_the_authors_has_its_place() -> None:
    cells = {(each.id, k, row) for each in REVISED for k, row in each.cells}
    assert PUBLISHED.keys() <= cells
    theirs = {"revised-ablation": 20, "revised-coverage": 12, "revised-rate": 30, "revised-sweeps": 25}
    assert {id: sum(place[0] == id for place in PUBLISHED) for id in theirs} == theirs


def test_it_runs_is_resumed_and_says_what_it_found(tmp_path: Path) -> None:
    whole = BY_ID["revised-coverage"]
    small = replace(whole, settings=whole.settings[:1], policies=whole.policies[:3], searches=3)
    runner.reproduce([small], tmp_path, runs=1)
    before = {path.name: path.read_bytes() for path in (tmp_path / small.id / "cells").iterdir()}
    (tmp_path / small.id / "cells" / "0-two-stage.parquet").unlink()
    runner.reproduce([small], tmp_path, runs=1)
    assert {path.name: path.read_bytes() for path in (tmp_path / small.id / "cells").iterdir()} == before
    table = confidence_table(storage.load(tmp_path, small.id))
    assert table["procedure"].tolist() == ["two-stage", "ecc-aht-verified", "oracle-design"]
    assert table["authors"].tolist() == [31.67, 20.49, 10.59]
    assert table["runs"].tolist() == [3, 3, 3]
    assert table["gamma_star"] == pytest.approx(0.5, rel=1e-3)
    assert (tmp_path / small.id / f"{small.id}.png").stat().st_size > 10_000


def test_the_ratio_is_1_at_the_limit() -> None:
    experiment = BY_ID["revised-rate"]
    limit = information_limit(experiment.settings[0])
    assert limit is not None
    cells = {cell: np.array([[2, 1000, 1]]) for cell in experiment.cells}
    ratio = confidence_table(Results(experiment, 0, cells))["ratio"][0]
    assert ratio == pytest.approx(1000 * limit / math.log(1e3))


@pytest.mark.parametrize(("wrong", "word"), [(0, "holds"), (400, "does not hold")])
def test_errors_are_judged_by_their_interval(wrong: int, word: str) -> None:
    given = {id: known(BY_ID[id], {}, 1000, wrong) for id in ("revised-errors", "revised-coverage")}
    assert CLAIMS["revised-errors"].verdict(given).word == word


def test_the_limit_is_reached_or_not() -> None:
    fast = known(BY_ID["revised-rate"], {"two-stage": 1.0 / 0.5, "ecc-aht-verified": 3.0})
    verdict = CLAIMS["revised-rate"].verdict({"revised-rate": fast})
    assert verdict.sentence.startswith("partly: holds on identity, not on toeplitz 0.5")  # Gamma* 0.5 and 0.92
    assert CLAIMS["revised-no-theorem"].verdict({"revised-rate": fast}).word == "holds"


def test_fewer_readings_are_fewer() -> None:
    found = known(BY_ID["revised-ablation"], {"ecc-aht-verified": 190.0, "plain-contrast": 100.0, "joint-union": 60.0})
    given = {"revised-ablation": found}
    assert CLAIMS["revised-contrast"].verdict(given).word == "holds"
    assert CLAIMS["revised-joint"].verdict(given).word == "holds"


def test_the_budget_makes_no_difference_if_it_makes_none() -> None:
    found = known(BY_ID["revised-sweeps"], {})
    assert CLAIMS["revised-budget"].verdict({"revised-sweeps": found}).word == "holds"
    cells = {cell: values.copy() for cell, values in found.cells.items()}
    cells[0, "ecc-aht-verified"][0, 1] += 1
    other = Results(found.experiment, 0, cells)
    assert CLAIMS["revised-budget"].verdict({"revised-sweeps": other}).word == "does not hold"
