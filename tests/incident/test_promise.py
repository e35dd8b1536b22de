"""The factor is the one that fits best, and confidences are as counted, at the cautious end of an interval."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from eccaht.incident.counts import count
from eccaht.incident.drilling import run_drills
from eccaht.incident.judge import Basis
from eccaht.incident.promise import DOUBT, FACTORS, ConfidenceTable, Promise, fit_factor
from tests.incident.judges import Guessing, Perfect, believing, drill_of, plant, telling

ALPHA = 0.05


def test_a_perfect_judge_needs_no_factor() -> None:
    quiet = plant()
    promise = Promise.fitted(run_drills(Perfect(quiet), quiet, np.zeros(len(quiet)), runs=120))
    assert promise.factor == 1.0
    assert promise.confidence(drill_of(True, 50.0)) == pytest.approx(DOUBT ** (1 / 60))  # 60 of 60 right
    assert promise.shares["nothing"] == pytest.approx(DOUBT ** (1 / 30))


def test_a_guessing_judge_is_never_sure() -> None:
    quiet = plant()
    drills = run_drills(Guessing(), quiet, np.zeros(len(quiet)), runs=120)
    promise = Promise.fitted(drills)
    assert count(drills, promise, ALPHA).sure == 0
    assert promise.table.counted(1.0) < 0.5
    assert np.isnan(promise.shares["nothing"])  # it never named nothing, so nothing was counted


@pytest.mark.parametrize("boast", [1.0, 3.0, 10.0])
def test_the_factor_takes_back_what_the_evidence_boasts(boast: float) -> None:
    factors = [fit_factor(telling(np.random.default_rng(seed), 1500, boast, (0.05, 0.99))) for seed in range(3)]
    assert_allclose(np.mean(factors), 1.0 / boast, rtol=0.1)
    assert max(factors) <= 1.0


def test_the_factor_has_the_least_log_loss() -> None:
    drills = telling(np.random.default_rng(8), 300, 4.0, (0.3, 1.0))
    fitted = [drill for drill in drills if drill.part == "fit"]
    log_odds, right = np.array([drill.log_odds for drill in fitted]), np.array([drill.right for drill in fitted])
    losses = [np.logaddexp(0.0, np.where(right, -1.0, 1.0) * factor * log_odds).mean() for factor in FACTORS]
    assert fit_factor(drills) == FACTORS[int(np.argmin(losses))]


def test_a_boasting_judge_is_cut_down_until_the_promise_holds_on_other_drills() -> None:
    wrong = sure = 0
    for seed in range(6):
        drills = telling(np.random.default_rng(seed), 1000, boast=3.0, range_of=(0.6, 1.0))
        counts, boasted = count(drills, Promise.fitted(drills), ALPHA), count(drills, believing(), ALPHA)
        wrong, sure = wrong + counts.sure_and_wrong, sure + counts.sure
        assert boasted.sure_and_wrong > 0.07 * boasted.sure
    assert sure > 100
    assert wrong <= ALPHA * sure


def test_answers_that_name_nothing_have_a_share_of_their_own() -> None:
    naming = [drill_of(False, 50.0)] * 40
    silent = [drill_of(True, 0.0, kind="quiet", sensors=(), named=(), alarm=False)] * 30
    promise = Promise.fitted(naming + silent)
    assert promise.confidence(drill_of(True, 50.0)) == 0.0
    assert promise.confidence(drill_of(True, 0.0, named=())) == pytest.approx(stats.beta.ppf(DOUBT, 30, 1))


@pytest.mark.parametrize("basis", ["silent", "stuck"])
def test_sensors_that_stand_still_do_not_lend_their_certainty_to_evidence(basis: Basis) -> None:
    standing = [drill_of(True, 0.0, basis=basis)] * 40
    drills = [drill_of(False, 5.0)] * 20 + standing
    promise = Promise.fitted(drills)
    assert promise.confidence(standing[0]) == pytest.approx(DOUBT ** (1 / 40))
    assert promise.confidence(drills[0]) == 0.0


def test_without_drills_nothing_is_known() -> None:
    promise = Promise.fitted([])
    assert np.isnan(promise.confidence(drill_of(True, 50.0)))
    assert count([], promise, ALPHA).sure == 0


def test_only_drills_of_the_part_to_fit_are_looked_at() -> None:
    good = [drill_of(True, 50.0)] * 30
    others = [drill_of(False, 50.0, part="count")] * 300
    assert fit_factor(good + others) == 1.0
    assert_allclose(ConfidenceTable.fitted(good + others, 1.0).values, [DOUBT ** (1 / 30)])
    assert Promise.fitted(good + others).confidence(drill_of(True, 50.0)) == pytest.approx(DOUBT ** (1 / 30))


def test_counted_confidences_increase_and_never_reach_certainty() -> None:
    drills = telling(np.random.default_rng(2), 600, boast=2.0, range_of=(0.3, 1.0))
    table = ConfidenceTable.fitted(drills, 1.0)
    told = np.linspace(0.0, 1.0, 501)
    shown = np.array([table.counted(p) for p in told])
    assert (np.diff(shown) >= 0).all()
    assert shown[-1] < 1.0
    assert (shown[told < table.edges[0]] <= told[told < table.edges[0]]).all()


def test_pools_are_joined_from_those_of_isotonic_regression_and_bounded() -> None:
    isotonic = pytest.importorskip("sklearn.isotonic").IsotonicRegression()
    drills = [drill for drill in telling(np.random.default_rng(3), 4000, range_of=(0.05, 0.9)) if drill.part == "fit"]
    told, right = np.array([d.confidence(1.0) for d in drills]), np.array([d.right for d in drills])
    table = ConfidenceTable.fitted(drills, 1.0)
    order = np.argsort(told)
    levels = isotonic.fit_transform(told, right.astype(float))[order]
    assert set(table.edges) <= set(told[order][np.diff(levels, prepend=-1.0) > 1e-12])
    pool = np.searchsorted(table.edges, told, side="right") - 1
    present, hits = np.bincount(pool), np.bincount(pool, weights=right)
    assert_allclose(table.values[1:], stats.beta.ppf(DOUBT, hits, present - hits + 1)[1:])
    assert len(table.edges) > 5


def test_honest_confidences_are_counted_as_they_are_or_less() -> None:
    table = ConfidenceTable.fitted(telling(np.random.default_rng(4), 20_000, range_of=(0.2, 1.0)), 1.0)
    counted = np.array([table.counted(p) for p in (0.3, 0.5, 0.7, 0.9)])
    assert (np.abs(counted - [0.3, 0.5, 0.7, 0.9]) < 0.08).all()


def test_a_few_right_answers_are_no_certainty() -> None:
    assert ConfidenceTable.fitted([drill_of(True, 9.0)] * 3, 1.0).counted(1.0) == pytest.approx(DOUBT ** (1 / 3))
    many = [drill_of(True, 3.0)] * 97 + [drill_of(False, 3.0)] * 3
    table = ConfidenceTable.fitted(many + [drill_of(True, 9.0)] * 3, 1.0)
    # three more right ones must not count for less than those before
    assert_allclose(table.values, [stats.beta.ppf(DOUBT, 100, 4)])


def test_a_table_survives_a_file() -> None:
    table = ConfidenceTable.fitted(telling(np.random.default_rng(6), 400, range_of=(0.3, 1.0)), 1.0)
    again = ConfidenceTable.build(json.loads(json.dumps(table.header())))
    assert_array_equal(again.edges, table.edges)
    assert_array_equal(again.values, table.values)
    empty = ConfidenceTable.build({"edges": [], "values": []})
    assert np.isnan(empty.counted(0.9))


@pytest.mark.parametrize(
    "header",
    [
        None,
        {"edges": [0.5]},
        {"edges": [0.5], "values": [0.5], "more": 1},
        {"edges": [0.5], "values": [0.5, 0.6]},
        {"edges": [0.5, 0.4], "values": [0.5, 0.6]},
        {"edges": [0.4, 0.5], "values": [0.6, 0.5]},
        {"edges": [0.4, 0.5], "values": [0.5, 1.0]},
        {"edges": [-0.4], "values": [0.5]},
        {"edges": [0.4], "values": [float("nan")]},
        {"edges": [True], "values": [0.5]},
        {"edges": ["0.4"], "values": [0.5]},
        {"edges": [[0.4]], "values": [[0.5]]},
        {"edges": 0.4, "values": 0.5},
        {"edges": [0.4], "values": [10**400]},
    ],
)
def test_damaged_tables_are_refused(header: object) -> None:
    with pytest.raises(ValueError, match="table of confidences"):
        ConfidenceTable.build(header)
