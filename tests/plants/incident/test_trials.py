"""Trials lie in windows that the fit has not seen, are the same for the same seed, and are judged as they should be."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.plants.incident import trials as module
from eccaht.plants.incident.alarms import run_engine
from eccaht.plants.incident.faults import KINDS, SIZED
from eccaht.plants.incident.naming import LONGEST_DRILL
from eccaht.plants.incident.trials import SHORTEST, Judge, Trial, halves_of, quiet_of, run_trials
from eccaht.plants.model.fitting import fit_normal
from tests.plants.incident.worlds import quiet

SENSORS, WINDOWS = 6, 1400
EVERY = 3.0 * WINDOWS


def judges_of(values: np.ndarray) -> list[Judge]:
    return halves_of(values, np.zeros(len(values), dtype=np.intp), np.zeros(values.shape[1]))


@pytest.fixture(scope="module")
def judges() -> list[Judge]:
    return judges_of(quiet(SENSORS, WINDOWS, 3))


@pytest.fixture(scope="module")
def trials(judges: list[Judge]) -> list[Trial]:
    return run_trials(judges, EVERY, 140, 0)


def test_each_half_is_judged_by_the_other(judges: list[Judge]) -> None:
    values = quiet(SENSORS, WINDOWS, 3)
    first, second = judges
    assert_allclose(first.values, values[: WINDOWS // 2])
    assert_allclose(first.normal.precision, fit_normal(values[WINDOWS // 2 :]).precision)
    assert_allclose(second.normal.precision, fit_normal(values[: WINDOWS // 2]).precision)
    assert second.first == WINDOWS // 2


def test_all_kinds_take_turns_and_last_a_while(trials: list[Trial]) -> None:
    assert {trial.kind for trial in trials} == set(KINDS)
    assert len(trials) > 120
    assert all(SHORTEST <= trial.lasted <= LONGEST_DRILL for trial in trials)
    assert all((trial.size > 0) == (trial.kind in SIZED) for trial in trials)


def test_the_same_seed_gives_the_same_trials_however_many(judges: list[Judge], trials: list[Trial]) -> None:
    again = run_trials(judges, EVERY, 20, 0)
    assert all(trial in trials for trial in again)
    assert run_trials(judges, EVERY, 20, 1) != again


def test_large_faults_are_found_dated_and_named(trials: list[Trial]) -> None:
    large = [trial for trial in trials if trial.kind == "step" and trial.size > 4.0]
    assert len(large) >= 5
    assert all(trial.found and trial.delay is not None and trial.delay <= 1 for trial in large)
    assert np.mean([trial.right for trial in large]) >= 0.8
    assert np.mean([trial.onset_error is not None and abs(trial.onset_error) <= 2 for trial in large]) >= 0.8
    for trial in large:
        assert trial.at_alarm is not None
        assert trial.answers[0].right == trial.right


def test_stuck_and_silent_sensors_are_noticed_and_stand_still(trials: list[Trial]) -> None:
    standing = [trial for trial in trials if trial.kind in ("stuck", "silent")]
    assert np.mean([trial.found for trial in standing]) > 0.9
    assert np.mean([trial.right for trial in standing]) > 0.8
    assert np.mean([trial.answers[0].standing for trial in standing if trial.answers]) > 0.9


def test_what_was_not_found_has_no_dates_and_no_names(trials: list[Trial]) -> None:
    for trial in trials:
        if not trial.found:
            assert (trial.delay, trial.onset_error, trial.end_error, trial.at_alarm) == (None,) * 4
            assert trial.named == trial.raised == ()
            assert not any(answer.right for answer in trial.answers)


def test_quiet_windows_are_counted_as_one_run_over_each_half_counts_them(
    judges: list[Judge], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces side by side, and in one; with a rate at which there are many alarms."""
    whole = [run_engine(judge.normal, judge.values, 40.0).alarms for judge in judges]
    begun = sorted(judge.first + t for judge, alarms in zip(judges, whole, strict=True) for t, _, _ in alarms)
    monkeypatch.setattr(module, "_PIECE", 10_000)
    one = quiet_of(judges, 40.0)
    assert one.begun == tuple(begun)
    assert one.alarms == len(begun) > 10
    assert one.windows == WINDOWS
    monkeypatch.setattr(module, "_PIECE", 100)
    pieces = quiet_of(judges, 40.0)
    assert pieces.windows == WINDOWS
    assert len(set(pieces.begun) ^ set(one.begun)) <= 0.1 * one.alarms
    assert pieces.in_alarm == pytest.approx(one.in_alarm, rel=0.1)


def test_windows_that_are_missing_are_no_jumps() -> None:
    values, missing = quiet(SENSORS, WINDOWS, 3, memory=0.97), np.zeros(WINDOWS, dtype=np.intp)
    cut = values[np.arange(WINDOWS) % 100 < 60]  # forty windows are missing after every sixty
    missing = np.zeros(len(cut), dtype=np.intp)
    missing[60::60] = 40
    with_gaps = halves_of(cut, missing, np.zeros(SENSORS))
    without = [replace(judge, missing=np.zeros(len(judge.values), dtype=np.intp)) for judge in with_gaps]
    assert quiet_of(with_gaps, 500.0).alarms < quiet_of(without, 500.0).alarms


def test_short_histories_are_drilled_and_progress_is_reported() -> None:
    done: list[int] = []
    found = run_trials(judges_of(quiet(4, 100, 5)), 300.0, 28, 0, done.append)
    assert sum(done) == 28
    assert len(found) > 14


def test_a_plant_in_which_nothing_varies_has_no_trials() -> None:
    judge = judges_of(quiet(4, 200, 5))[0]
    still = replace(judge, values=np.zeros((100, 4)))
    assert run_trials([still], 300.0, 14, 0) == []
