"""Injected and replayed incidents change what they say they change, and nothing else."""

import numpy as np
import pytest

from eccaht.research.datasets.labelled import CaseReadings, Segment
from eccaht.research.experiments.incidents_cases import (
    CHANGED,
    FIRST,
    LONGEST,
    MOST_QUIET,
    QUIET,
    Subject,
    Tier,
    alive,
    changed_cases,
    check_length,
    labelled_cases,
    quiet_cases,
)
from tests.research.datasets.labelled_format import small_rows


def subject(count: int = 900, segments: tuple[Segment, ...] = ()) -> Subject:
    names = tuple(f"metric {k}" for k in range(8))
    return Subject(
        CaseReadings(small_rows(count, seed=0), names), CaseReadings(small_rows(500, seed=1), names), segments
    )


def test_labelled_incidents_have_the_sensors_that_vary_in_the_history() -> None:
    whole = tuple(range(8))
    segments = (Segment(30, 50, (1, 3)), Segment(60, 70, (3,)), Segment(80, 90, whole), Segment(100, 400, (6,)))
    cases, left_out = labelled_cases(subject(segments=segments))
    assert [(case.number, case.truth, case.start, case.length) for case in cases] == [
        (0, (1,), 30, 20),
        (3, (6,), 100, LONGEST),
    ]
    assert left_out == [
        "segment of rows 60 to 69: its sensors are constant in the training rows",
        "segment of rows 80 to 89: every sensor is labelled",
        "1 label of other segments: the sensor is constant in the training rows",
    ]


@pytest.mark.parametrize("tier", ["injected", "replayed"])
def test_nothing_but_the_truth_is_changed(tier: Tier) -> None:
    whole = subject()
    quiet = whole.train.rows[whole.held :]
    for case in changed_cases(whole, tier, 12, 0, "x"):
        assert case.start >= FIRST
        assert case.length == CHANGED
        rows = case.readings.rows
        differs = (rows != quiet[: len(rows)]).any(axis=0)
        assert set(np.flatnonzero(differs)) == set(case.truth)
        np.testing.assert_array_equal(rows[: case.start], quiet[: case.start])
        assert len(case.truth) == (1, 3)[case.number % 2]


def test_steps_have_one_to_ten_interquartile_ranges_of_either_sign() -> None:
    whole = subject()
    quiet, history = whole.train.rows[whole.held :], whole.train.rows[: whole.held]
    quartiles = np.quantile(history, [0.25, 0.75], axis=0)
    scale = np.where(np.ptp(quartiles, axis=0) > 0, np.ptp(quartiles, axis=0), history.std(axis=0))
    sizes = []
    for case in changed_cases(whole, "injected", 200, 0, "x"):
        step = (case.readings.rows - quiet[: len(case.readings.rows)])[case.start :, list(case.truth)]
        np.testing.assert_allclose(step, step[:1].repeat(CHANGED, axis=0), atol=1e-9)
        sizes += list(step[0] / scale[list(case.truth)])
    assert 1.0 <= np.min(np.abs(sizes)) < 1.1
    assert 9.0 < np.max(np.abs(sizes)) <= 10.0
    assert abs(np.mean(np.sign(sizes))) < 0.2
    assert abs(np.mean(np.log10(np.abs(sizes))) - 0.5) < 0.05


def test_replayed_readings_are_the_sensors_own_of_one_other_time() -> None:
    whole = subject()
    quiet = whole.train.rows[whole.held :]
    for case in changed_cases(whole, "replayed", 12, 0, "x"):
        stretch = case.readings.rows[case.start :][:, list(case.truth)]
        times = range(len(quiet) - CHANGED)
        assert any(np.array_equal(quiet[t : t + CHANGED][:, list(case.truth)], stretch) for t in times)


def test_a_draw_depends_on_its_number_and_its_entity_alone() -> None:
    few, many = (list(changed_cases(subject(), "replayed", runs, 0, "x")) for runs in (2, 6))
    other = list(changed_cases(subject(), "replayed", 2, 0, "y"))
    for case, same in zip(few, many[:2], strict=True):
        assert (case.start, case.truth) == (same.start, same.truth)
        np.testing.assert_array_equal(case.readings.rows, same.readings.rows)
    assert [case.start for case in few] != [case.start for case in other]


def test_incidents_befall_sensors_that_live_before_and_in_the_last_third() -> None:
    whole = subject()
    whole.train.rows[: whole.held, 4] = 1.0
    whole.train.rows[whole.held :, 5] = 1.0
    assert alive(whole).tolist() == [0, 1, 2, 6, 7]
    assert whole.known.tolist() == [0, 1, 2, 4, 5, 6, 7]


@pytest.mark.parametrize(("count", "stretches"), [(900, 10), (9000, MOST_QUIET)])
def test_quiet_stretches_do_not_overlap(count: int, stretches: int) -> None:
    whole = subject(count)
    cases = list(quiet_cases(whole))
    starts = np.array([case.start for case in cases])
    assert len(starts) == stretches
    assert starts[0] == FIRST
    assert (np.diff(starts) >= QUIET).all()
    assert all(case.length == QUIET and not case.truth for case in cases)
    assert len(cases[-1].readings.rows) <= len(whole.train.rows) - whole.held


def test_a_history_that_is_too_short_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 483"):
        check_length(subject(300))
    shortest = subject(483)
    check_length(shortest)
    assert len(list(changed_cases(shortest, "injected", 3, 0, "x"))) == 3


def test_readings_keep_their_times() -> None:
    times = np.datetime64("2024-01-01", "us") + np.arange(5) * np.timedelta64(1, "m")
    readings = CaseReadings(np.arange(10.0).reshape(5, 2), ("a", "b"), times, 60.0)
    part = readings.after(1).first(2)
    assert part.rows.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert part.times is not None
    assert part.times.tolist() == times[1:3].tolist()
    assert part.source().names == ("a", "b")
