"""Nothing that is judged in a drill has been seen: neither by the fit, nor by the yardstick, nor by the promise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eccaht.arrays import Array
from eccaht.data.windows import Windows
from eccaht.incident import drill
from eccaht.incident.drill import BLOCKS, drill_history, drilled
from eccaht.incident.drilling import Drill, run_drills
from eccaht.incident.judge import Judge
from eccaht.incident.promise import Promise, fit_factor
from eccaht.incident.quiet import FEWEST_STRETCHES, LONGER
from eccaht.model.calibration import calibrate_with_windows
from eccaht.model.model import Model
from tests.incident.judges import telling
from tests.model.histories import history

REPEATED = 40  # windows for which the first sensor repeats one value in the last part of the history


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Windows]:
    path = history(tmp_path_factory.mktemp("history") / "h.csv", rows=700, step=60)
    return calibrate_with_windows(path, window="1min", level="fixed", memory="none", shrink=0.0, tails="gaussian")


@pytest.fixture(autouse=True)
def few_quiet_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eccaht.incident.quiet.STRETCHES", FEWEST_STRETCHES)


def repeating(windows: Windows) -> Windows:
    """The windows with a value of the first sensor that is repeated at the end."""
    values = windows.values.copy()
    values[-REPEATED:, 0] = values[-1, 0]
    return replace(windows, values=values)


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    """For how many windows sensors may repeat a value, as the judge of each block of drills has it."""
    allowed: list[Array] = []

    def remember(judge: Judge, *arguments: Any, **options: Any) -> list[Drill]:
        allowed.append(judge.quiet.still)
        return run_drills(judge, *arguments, **options)

    monkeypatch.setattr(drill, "run_drills", remember)
    return allowed


def test_a_block_is_judged_by_the_repetitions_of_the_others(
    calibrated: tuple[Model, Windows], still: list[Array]
) -> None:
    model, windows = calibrated[0], repeating(calibrated[1])
    found = drill_history(model, windows, runs=6)
    assert len(still) == BLOCKS
    assert [allowed[0] for allowed in still[:2]] == [LONGER * REPEATED] * 2
    assert still[2][0] < REPEATED  # the repetition is in the block that is judged
    assert_array_equal(found.quiet.still, np.max(still, axis=0))


def test_new_data_are_judged_by_the_repetitions_of_their_first_half(
    calibrated: tuple[Model, Windows], still: list[Array]
) -> None:
    model, windows = calibrated[0], repeating(calibrated[1])
    found = drilled(model, windows, runs=6)
    assert still[0][0] < REPEATED
    assert found.quiet.still[0] == LONGER * REPEATED


def test_counts_are_of_one_half_and_what_is_kept_is_fitted_to_both(
    calibrated: tuple[Model, Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    drills: list[list[Drill]] = []

    def tell(*_: Any, **__: Any) -> list[Drill]:
        drills.append(telling(rng, 400, boast=4.0, range_of=(0.3, 1.0)))
        return drills[-1]

    monkeypatch.setattr(drill, "run_drills", tell)
    found = drill_history(*calibrated)
    told = [each for block in drills for each in block]
    fitted = Promise.fitted(told)
    sure = [each for each in told if each.part == "count" and fitted.confidence(each) >= 0.95]
    assert found.counts.faults == len(told) // 2
    assert (found.counts.sure, found.counts.sure_and_wrong) == (len(sure), sum(not each.right for each in sure))
    assert found.factor == found.counts.factor == fit_factor([replace(each, part="fit") for each in told])
