"""The check that is proposed tells most, decides as often as it says, and settles what the windows leave open."""

from dataclasses import replace
from functools import cache
from itertools import chain, combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logit

from eccaht.base.arrays import Array
from eccaht.plants.answer import Answer
from eccaht.plants.incident.alarms import run_engine
from eccaht.plants.incident.checks import (
    MOST_CHECKS,
    Known,
    Posterior,
    decides,
    information,
    outcomes,
    posterior,
    proposed,
)
from eccaht.plants.incident.confidence import N_CLUES, DrilledConfidence
from eccaht.plants.incident.counts import Counts, Drilled, Quiet
from eccaht.plants.incident.describe import Courses
from eccaht.plants.incident.drill import keeping
from eccaht.plants.incident.investigate import investigate_incident
from eccaht.plants.incident.naming import stretch_of
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.plants.model.fitting import fit_normal
from eccaht.plants.model.model import Model
from eccaht.plants.model.residuals import Normal
from tests.plants.incident.plants import autoregressive
from tests.plants.incident.worlds import frame_of

PAIRS, ONSET, STOP = 10, 200, 260
CONFIDENCE = 0.9


def pairs(windows: int, seed: int) -> Array:
    """Pairs of sensors that measure the same, with noise: that they differ does not say which of them is wrong."""
    rng = np.random.default_rng(seed)
    common = np.repeat(autoregressive(rng, windows, PAIRS, 0.5), 2, axis=1)
    return common + 0.25 * rng.standard_normal(common.shape)


def replayed(seed: int, sensors: tuple[int, ...]) -> Array:
    values, other = pairs(STOP, seed), pairs(STOP, seed + 1000)
    values[ONSET:, sensors] = other[ONSET:, sensors]
    return values


def entropy(shares: list[float]) -> float:
    return float(-sum(share * np.log(share) for share in shares if share > 0.0))


def expected_information(candidates: Posterior, checked: frozenset[int]) -> float:
    """The entropy of the set, less the mean of what is left of it, by enumeration of all outcomes."""
    left = 0.0
    for wrong in map(frozenset, chain.from_iterable(combinations(sorted(checked), n) for n in range(len(checked) + 1))):
        agree = [p for each, p in candidates.items() if each & checked == wrong]
        left += sum(agree) * entropy([p / sum(agree) for p in agree]) if agree else 0.0
    return entropy([*candidates.values()]) - left


def random_posterior(rng: np.random.Generator, sensors: int) -> Posterior:
    every = [*chain.from_iterable(combinations(range(sensors), n) for n in (1, 2, 3))]
    shares = rng.dirichlet(np.full(len(every), 0.05))
    return {frozenset(each): float(share) for each, share in zip(every, shares, strict=True)}


@pytest.mark.parametrize("seed", range(20))
def test_the_check_that_is_proposed_first_is_that_of_most_expected_information(seed: int) -> None:
    candidates = random_posterior(np.random.default_rng(seed), 5)
    told = [expected_information(candidates, frozenset({k})) for k in range(5)]
    assert_allclose([information(candidates, frozenset({k})) for k in range(5)], told, atol=1e-9)
    found = proposed(candidates, 0.05)
    assert len(found) <= MOST_CHECKS
    if found:
        assert told[found[0][0]] == pytest.approx(max(told))
    for place in range(1, len(found)):
        before = frozenset(k for k, _ in found[:place])
        more = [expected_information(candidates, before | {k}) for k in range(5)]
        assert more[found[place][0]] == pytest.approx(max(more))


@pytest.mark.parametrize("seed", range(5))
def test_checks_decide_as_often_as_they_say_where_the_posterior_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates = random_posterior(rng, 5)
    sets, shares = [*candidates], np.array([*candidates.values()])
    checked = frozenset({0, 3})
    right = decided = 0
    for truth in rng.choice(len(sets), 4000, p=shares):
        agree = {each: p for each, p in candidates.items() if each & checked == sets[truth] & checked}
        best = max(agree, key=lambda each: agree[each])
        if agree[best] >= 0.95 * sum(agree.values()):
            decided, right = decided + 1, right + (best == sets[truth])
    assert decides(candidates, checked, 0.05) == pytest.approx(decided / 4000, abs=0.04)  # 5 deviations
    assert right >= 0.92 * decided
    assert sum(total for total, _ in outcomes(candidates, checked).values()) == pytest.approx(1.0)


@cache
def usual() -> Normal:
    return fit_normal(pairs(2000, 0))


def case_of(seed: int, sensors: tuple[int, ...]) -> Courses:
    normal, values = usual(), replayed(seed, sensors)
    run = run_engine(normal, values, 4500.0)
    return Courses(normal, run, stretch_of(normal, run, ONSET, STOP))


def test_of_two_sensors_that_contradict_each_other_one_check_tells_which_is_wrong() -> None:
    told = 0
    for truth in range(1, 9):
        case, pair = case_of(truth, (truth,)), {truth, truth ^ 1}
        candidates = posterior(case, 0.6)
        assert sum(candidates.values()) == pytest.approx(1.0)
        first, _ = proposed(candidates, 0.35)[0]
        known = Known(wrong=frozenset({truth})) if first == truth else Known(sound=frozenset({first}))
        told += first in pair and next(iter(posterior(case, 0.6, known))) == {truth}
    assert told >= 6  # 7; replays of a sensor may look like its readings


def test_what_is_known_is_in_every_candidate() -> None:
    case = case_of(1, (0, 2))
    for known in (Known(wrong=frozenset({5})), Known(sound=frozenset({0})), Known(frozenset({1, 2}), frozenset({17}))):
        found = posterior(case, 0.3, known)
        assert found
        assert all(known.wrong <= each and not known.sound & each for each in found)
        assert sum(found.values()) == pytest.approx(1.0)
    assert posterior(case, 0.3, Known(frozenset(range(2 * PAIRS)))) == {}


def test_without_another_candidate_nothing_makes_certain() -> None:
    case = case_of(1, (0,))
    named = (0, 2, 4)
    naming = replace(case.found.naming, named=named)
    stuck = replace(case, found=replace(case.found, naming=naming, wrong=dict.fromkeys(named, "stuck")))
    for known in (Known(), Known(sound=frozenset({1}))):
        assert posterior(stuck, 0.6, known) == {frozenset(named): pytest.approx(0.6)}


@pytest.fixture(scope="module")
def model() -> Model:
    fitted, _ = calibrate_with_windows(frame_of(pairs(1500, 0)), window="1min")
    weights = np.array([logit(CONFIDENCE), *np.zeros(N_CLUES)])
    always = DrilledConfidence(weights, np.zeros(N_CLUES), np.ones(N_CLUES))
    return keeping(fitted, Drilled(Counts((), Quiet(1500, 0, 0), 4500.0, 0.05), always, always, always))


def asked(model: Model, values: Array) -> Answer:
    return investigate_incident(model, model.prepare(frame_of(values)))


def test_with_the_truth_answers_that_are_not_confident_are_settled(model: Model) -> None:
    settled = right = known = 0
    for seed in range(1, 13):
        truth = seed % (2 * PAIRS)
        answer = asked(model, replayed(seed, (truth,)))
        assert not answer.confident
        check = answer.largest.checks[0]
        wrong = check.sensor == f"S{truth}"
        after = answer.with_check(check.sensor, check.read + (5.0 if wrong else 0.0), noise=0.5)
        assert after.largest.checked[0].wrong is wrong
        assert (check.sensor in after.named) is wrong
        assert answer.largest.checked == ()
        if answer.named == (f"S{truth}",) and not wrong:
            known, settled = known + 1, settled + after.confident
        right += after.named == (f"S{truth}",)
    assert known >= 3
    assert settled >= 0.7 * known
    assert right >= 8


def test_a_check_is_of_a_window_with_a_reading(model: Model) -> None:
    values = replayed(3, (3,))
    answer = asked(model, values)
    last = answer.with_check("S3", 99.0, noise=0.1)
    before = answer.with_check("S3", 99.0, noise=0.1, time=answer.largest.began)
    assert last.largest.checked[0].read != before.largest.checked[0].read
    with pytest.raises(ValueError, match="no sensor"):
        answer.with_check("S99", 1.0, noise=0.1)
    with pytest.raises(ValueError, match="noise"):
        answer.with_check("S3", 1.0, noise=0.0)
    with pytest.raises(ValueError, match="incident"):
        answer.with_check("S3", 1.0, noise=0.1, time="1990-01-01")


def test_checks_follow_each_other_and_a_second_one_of_a_sensor_replaces_the_first(model: Model) -> None:
    answer = asked(model, replayed(3, (3,)))
    twice = answer.with_check("S0", 99.0, noise=0.1).with_check("S3", 99.0, noise=0.1)
    assert {"S0", "S3"} <= {*twice.named}
    assert [each.sensor for each in twice.largest.checked] == ["S0", "S3"]
    read = twice.largest.checked[0].read
    back = twice.with_check("S0", read, noise=0.1)
    assert [each.wrong for each in back.largest.checked] == [True, False]
    assert "S0" not in back.named
