"""Compiled loops give the bits that numpy gives; where numba is not installed they run as plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, Simulator, families, make_policy
from eccaht.base.compiled import LONGEST_SUM, Loops, sum_of
from eccaht.streams.designs import information, loops as design_loops
from eccaht.streams.posterior import SufficientStatistics, compiled_moves, likelihood_of, loops, statistics
from eccaht.streams.posterior.gibbs import changes, climb, conditional_hypotheses, conditionals, sweep
from eccaht.streams.posterior.likelihood import Likelihood
from eccaht.streams.sets import SetPrior

Switch = Callable[[bool], None]
SIZES = [(3, 3), (0, 4), (1, 1), (10, 10)]  # anomalies: known numbers, and an open one


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Switch:
    """Use the loops, or numpy."""

    def use(compiled: bool) -> None:
        for room, module in ((compiled_moves, loops), (statistics, loops), (information, design_loops)):
            name = "LOOPS" if room is compiled_moves else "_LOOPS"
            monkeypatch.setattr(room, name, lambda module=module: module if compiled else None)

    return use


def _after_readings(least: int, most: int, K: int = 40) -> tuple[Likelihood, SetPrior, np.random.Generator]:
    problem = Problem(families.toeplitz(K, 0.6), shift=2.0, n_anomalies=(least, most), budget=3.0)
    evidence, rng = SufficientStatistics(problem), np.random.default_rng(least)
    for _ in range(12):
        c = rng.standard_normal(K)
        evidence.add(c, float(rng.standard_normal()) * 3.0)
    return likelihood_of(evidence), SetPrior(K, least, most), rng


@pytest.mark.parametrize(("least", "most"), SIZES)
def test_moves_are_those_of_numpy_bit_for_bit(switch: Switch, least: int, most: int) -> None:
    likelihood, prior, rng = _after_readings(least, most)
    start = prior.random_sets(rng, 37)
    slots = rng.integers(most, size=37)
    beta = np.power(0.4, rng.integers(4, size=37))
    found = []
    for compiled in (False, True):
        switch(compiled)
        draws = np.random.default_rng(7)
        swept, climbed = start.copy(), start.copy()
        for _ in range(3):
            sweep(likelihood, prior, swept, beta, draws)
        climb(likelihood, prior, climbed)
        parts: list[Any] = [swept, climbed, changes(likelihood, prior, start, slots)]
        parts += [conditionals(likelihood, prior, start, slots, beta), likelihood.log_likelihood(start)]
        parts += conditional_hypotheses(likelihood, prior, start, slots, 0.4, draws)
        found.append([*parts, draws.random(3)])
    for mine, reference in zip(*found, strict=True):
        np.testing.assert_array_equal(mine, reference)


@pytest.mark.parametrize("n_anomalies", [3, (0, 3)])
def test_a_search_is_the_same_search_and_may_change_over_on_its_way(
    switch: Switch, n_anomalies: int | tuple[int, int]
) -> None:
    problem = Problem(families.toeplitz(30, 0.8), shift=3.0, n_anomalies=n_anomalies, budget=4.0)
    searches = []
    for plan in ((False, False), (True, True), (False, True)):
        policy = make_policy("joint", problem, seed=3, posterior="population", stopping=None)
        world = Simulator(problem, anomalies=[2, 17, 18], seed=3)
        asked = []
        for compiled in np.repeat(plan, 5):
            switch(bool(compiled))
            c = policy.ask()
            policy.tell(c, world.measure(c))
            asked.append(c)
        searches.append(np.array(asked))
    np.testing.assert_array_equal(searches[1], searches[0])
    np.testing.assert_array_equal(searches[2], searches[0])


def test_sums_are_added_up_in_the_order_of_numpy() -> None:
    rng = np.random.default_rng(0)
    for count in (1, 2, 7, 8, 9, 16, 23, 64, 100, 127, LONGEST_SUM):
        terms = rng.standard_normal(count) * 10.0 ** rng.integers(-8, 8, size=count)
        assert sum_of(terms, count) == terms.sum()


def test_loops_are_loaded_when_they_pay_and_never_where_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eccaht.base.compiled._wanted", lambda: True)
    monkeypatch.setattr("eccaht.base.compiled._PATIENCE", 2)
    monkeypatch.delenv("ECCAHT_COMPILED", raising=False)
    patient = Loops("eccaht.streams.posterior.loops")
    assert [patient() for _ in range(4)] == [None, None, loops, loops]
    monkeypatch.setenv("ECCAHT_COMPILED", "1")
    assert Loops("eccaht.streams.posterior.loops")() is loops
    monkeypatch.setattr("eccaht.base.compiled._wanted", lambda: False)
    assert Loops("eccaht.streams.posterior.loops")() is None
