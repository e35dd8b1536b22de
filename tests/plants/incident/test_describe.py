"""What is reported of each sensor: sizes with intervals that hold them, and nothing learnt from the named ones."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eccaht.base.arrays import Array
from eccaht.plants.answer import Incident, Suspect
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.alarms import Dates, run_engine
from eccaht.plants.incident.describe import SHOWN_BEFORE, Case, _size, gaps_before, incident_of
from eccaht.plants.incident.naming import stretch_of
from eccaht.streams.watch.alarm import Kind
from tests.plants.incident.worlds import MINUTE, SCALE, START, model_of, quiet

K, T, ONSET, END = 6, 200, 100, 140


def case_of(values: Array, named: tuple[int, ...], wrong: dict[int, str] | None = None, end: int | None = END) -> Case:
    """A stretch in which these sensors are named; values: in standard deviations."""
    model, _ = model_of(K)
    assert model.normal is not None
    robust = values * SCALE / model.scale
    windows = Windows(START + np.arange(len(values)) * MINUTE, robust, model.names, 60.0)
    run = run_engine(model.normal, robust, 4500.0)
    found = stretch_of(model.normal, run, ONSET, END)
    others = tuple(k for k in found.naming.order if k not in named)
    naming = replace(found.naming, named=named, order=(*named, *others))
    dates = Dates(ONSET, ONSET, ONSET, end)
    return Case(model.normal, run, replace(found, naming=naming, wrong=wrong or {}, dates=dates), model, windows)


def described(case: Case) -> Incident:
    return incident_of(case, None, False)


def suspect(case: Case, k: int) -> Suspect:
    return next(each for each in described(case).sensors if each.sensor == f"S{k}")


def test_the_size_of_a_step_is_its_mean_in_raw_units() -> None:
    values = quiet(K, T, 3)
    values[ONSET:END, 2] += 5.0
    found = suspect(case_of(values, (2,)), 2)
    assert found.kind == "step"
    assert found.size_raw == pytest.approx(5.0 * SCALE, abs=0.6 * SCALE)
    assert found.size_raw_interval.low < 5.0 * SCALE < found.size_raw_interval.high
    assert found.reason.read - found.reason.expected == pytest.approx(5.0 * SCALE, abs=0.6 * SCALE)


def test_the_size_of_a_sensor_that_is_not_named_is_its_mean_whatever_its_course() -> None:
    values = quiet(K, T, 3)
    values[ONSET:END, 1] += 6.0 * np.random.default_rng(1).standard_normal(END - ONSET)
    noisy, left = suspect(case_of(values, (1,)), 1), suspect(case_of(values, ()), 1)
    assert noisy.kind == left.kind == "noise"
    assert noisy.size_raw > 4.0 * SCALE
    assert left.size_raw_interval.low < 0.0 < left.size_raw_interval.high
    assert noisy.size_raw_interval.low >= 0.0


@pytest.mark.parametrize("kind", ["step", "drift", "noise"])
@pytest.mark.parametrize("length", [40, 160])
def test_intervals_hold_the_size_as_often_as_they_say(kind: Kind, length: int) -> None:
    rng, runs, held = np.random.default_rng(2), 600, 0
    course = {"step": np.full(length, 3.0), "drift": 3.0 * np.arange(1, length + 1) / length, "noise": np.zeros(length)}
    spread = 3.0 if kind == "noise" else 0.7
    for _ in range(runs):
        residual = course[kind] + spread * rng.standard_normal(length)
        residual[rng.random(length) < 0.2] = np.nan
        _, interval = _size(residual, kind, 0.7)
        held += interval.low <= 3.0 <= interval.high
    assert held / runs > 0.95 - 4.5 * np.sqrt(0.05 * 0.95 / runs)


def test_one_window_is_not_certain_of_a_size() -> None:
    size, interval = _size(np.array([4.0]), "step", 0.5)
    assert size == 4.0
    assert_allclose((interval.low, interval.high), (4.0 - 1.96 * 0.5, 4.0 + 1.96 * 0.5))
    size, interval = _size(np.full(3, np.nan), "step", 0.5)
    assert np.isnan([size, interval.low, interval.high]).all()


def test_sizes_below_the_resolution_of_a_sensor_are_not_given() -> None:
    values = quiet(K, T, 3)
    case = case_of(values, (4,))
    assert abs(suspect(case, 4).size_raw) > 0.0
    coarse = replace(case, windows=replace(case.windows, decimals={"S4": -2}))
    assert np.isnan([suspect(coarse, 4).size, suspect(coarse, 4).size_raw]).all()


def test_readings_of_named_sensors_say_nothing_about_the_others() -> None:
    values = quiet(K, T, 3)
    values[ONSET + 3 : ONSET + 20, 0] = np.nan
    other = values.copy()
    other[ONSET:END, [2, 4]] += 50.0
    plain, moved = (case_of(each, (2, 4)) for each in (values, other))
    for k in (0, 1, 3):
        assert_allclose(suspect(plain, k).reason.expected, suspect(moved, k).reason.expected)
    for one, again in zip(described(plain).courses, described(moved).courses, strict=True):
        assert_allclose(one.expected, again.expected)
        assert_allclose(one.high - one.low, again.high - again.low)


def test_what_stands_still_is_of_that_kind_and_has_no_evidence() -> None:
    values = quiet(K, T, 3)
    values[ONSET:END, 1] = values[ONSET, 1]
    found = suspect(case_of(values, (1,), {1: "stuck"}), 1)
    assert found.kind == "stuck"
    assert np.isnan(found.evidence)


def test_the_evidence_is_that_of_the_detectors_above_their_threshold() -> None:
    values = quiet(K, T, 3)
    values[ONSET:END, 2] += 6.0
    case = case_of(values, (2,))
    incident = described(case)
    assert isinstance(incident.onset, np.datetime64)
    assert isinstance(incident.end, np.datetime64)
    assert_array_equal(incident.evidence_course, case.run.passed[case.shown])
    inside = (incident.starts >= incident.onset) & (incident.starts < incident.end)
    assert incident.evidence == incident.evidence_course[inside].max() > 0.0
    assert incident.evidence_course[~inside].min() < 0.0


def test_a_picture_shows_windows_before_the_onset_and_after_the_end() -> None:
    incident = described(case_of(quiet(K, T, 3), (2,)))
    assert incident.starts[0] == incident.onset - SHOWN_BEFORE * MINUTE
    assert incident.starts[-1] == START + (END + SHOWN_BEFORE - 1) * MINUTE
    assert incident.end == START + END * MINUTE
    for end in (None, T):
        assert described(case_of(quiet(K, T, 3), (2,), end=end)).end is None


def test_missing_windows_are_counted() -> None:
    starts = START + np.array([0, 1, 2, 7, 8]) * MINUTE
    windows = Windows(starts, np.zeros((5, 2)), ("a", "b"), 60.0)
    assert gaps_before(windows).tolist() == [0, 0, 0, 4, 0]


@pytest.mark.parametrize("named", [(2,), (2, 4), (0, 1, 5)])
def test_the_difference_evaluated_on_raw_readings_gives_the_residual_that_is_reported(named: tuple[int, ...]) -> None:
    """A user who puts the readings into the printed difference, with all its weights, finds the number beside it."""
    values = quiet(K, T, 5)
    values[ONSET:END, list(named)] += 4.0
    case = case_of(values, named)
    raw = case.model.raw(case.windows.values)
    for k in named:
        found = suspect(case, k)
        assert found.difference is not None
        weights = dict(found.difference.weights)
        assert found.difference.weights[0] == (f"S{k}", 1.0)
        assert not weights.keys() & {f"S{other}" for other in named if other != k}  # wrong sensors predict nothing
        read = raw[:, [case.model.names.index(name) for name in weights]] @ list(weights.values())
        assert read[ONSET:END].mean() == pytest.approx(found.difference.read, rel=1e-9)
        assert np.median(read[ONSET - SHOWN_BEFORE : ONSET]) == pytest.approx(found.difference.usual, rel=1e-9)
        away = (read[ONSET:END] - found.difference.usual) / found.difference.deviation
        assert away.mean() == pytest.approx(found.difference.size, rel=1e-9)
        assert found.difference.size == pytest.approx(found.reason.z_given, rel=1e-12)
        assert np.sqrt(np.mean(away**2)) == pytest.approx(found.difference.scatter, rel=1e-9)


def test_the_difference_is_the_design_with_the_contrast_of_its_sensor_and_no_budget() -> None:
    """P e_k, from the precision of the sensors that are not eliminated: no other weights carry more information."""
    values = quiet(K, T, 5)
    values[ONSET:END, 2] += 4.0
    case = case_of(values, (2,))
    found = suspect(case, 2).difference
    assert found is not None
    spreads = case.normal.scale * case.model.scale
    c = np.array([dict(found.weights).get(name, 0.0) for name in case.model.names]) * spreads
    S = np.linalg.inv(case.normal.others)
    information = c[2] ** 2 / (c @ S @ c)
    assert information == pytest.approx(case.normal.others[2, 2], rel=1e-9)
    assert found.deviation == pytest.approx(np.sqrt(c @ S @ c), rel=1e-9)
    for other in np.random.default_rng(0).standard_normal((200, K)):
        assert other[2] ** 2 / (other @ S @ other) <= information * (1.0 + 1e-9)


def test_a_sensor_that_is_not_named_or_delivers_nothing_has_no_difference() -> None:
    values = quiet(K, T, 5)
    values[ONSET:END, 2] = np.nan
    case = case_of(values, (2,), {2: "silent"})
    assert all(each.difference is None for each in described(case).sensors)
