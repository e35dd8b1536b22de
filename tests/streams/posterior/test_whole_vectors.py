"""Whole vectors of very many streams: no K x K matrix, and a shortlist of the streams that matter."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from eccaht import Problem, Simulator, families, load_policy, make_policy
from eccaht.base.arrays import Array
from eccaht.streams.covariance import AR1, Covariance, LowRankPlusDiagonal, SparsePrecision
from eccaht.streams.posterior import Enumeration, SufficientStatistics, likelihood_of, neighbourhood
from eccaht.streams.posterior import statistics as module
from eccaht.streams.posterior.wide import Shortlist
from eccaht.streams.sets import SetPrior

K = 40
OPERATORS: dict[str, Covariance] = {
    "AR1": families.toeplitz(K, 0.8),
    "block": families.block(K, 0.6),
    "circulant": families.circulant(K, 0.5),
    "kronecker": families.kronecker(0.7, shape=(5, 8)),
    "factors": LowRankPlusDiagonal(np.random.default_rng(0).standard_normal((K, 3)), np.linspace(1.0, 2.0, K)),
    "chain": SparsePrecision(
        sp.diags_array([np.full(K - 1, -0.4), np.ones(K), np.full(K - 1, -0.4)], offsets=[-1, 0, 1])
    ),
}


def both(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> tuple[SufficientStatistics, SufficientStatistics]:
    """The same readings, once as a matrix and once by the structure of the covariance."""
    built = []
    for largest in (8192, 8):
        monkeypatch.setattr(module, "_MATRIX", largest)
        monkeypatch.setattr(module, "_LARGEST_MATRIX", largest)
        world, evidence = Simulator(problem, seed=1), SufficientStatistics(problem)
        for x in world.sample(2):
            evidence.add_vector(x)
        c = np.random.default_rng(2).standard_normal(K)
        evidence.add(c, world.measure(c))
        built.append(evidence)
    return built[0], built[1]


@pytest.mark.parametrize("name", OPERATORS)
def test_the_structure_gives_what_the_matrix_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shift = np.random.default_rng(3).uniform(0.5, 2.0, K)
    matrix, structured = both(Problem(OPERATORS[name], shift=shift, n_anomalies=3, budget=5.0), monkeypatch)
    assert matrix.has_matrix
    assert not structured.has_matrix
    sets = np.array([[0, 5, 39], [7, 8, K], [K, K, K]])
    for of in ("linear", "half_diagonal", "misfit", "n_readings", "n_vectors"):
        np.testing.assert_allclose(getattr(structured, of), getattr(matrix, of), rtol=1e-8, atol=1e-9)
    asks: list[Callable[[SufficientStatistics], Array]] = [
        lambda e: e.log_likelihood(sets),
        lambda e: e.block(sets),
        lambda e: e.fields(sets),
        lambda e: e.coupling(sets[:, 1]),
        lambda e: e.rows(np.array([3, 39])),
        lambda e: e.restricted(np.array([0, 7, 20, 39])).log_likelihood(np.array([[0, 3], [1, 4]])),
    ]
    for ask in asks:
        np.testing.assert_allclose(ask(structured), ask(matrix), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shift", [1.0, 2.0])
def test_a_shortlist_knows_the_posterior(shift: float) -> None:
    problem = Problem(families.toeplitz(150, 0.6), shift=shift, n_anomalies=2, budget=5.0)
    prior, settled = SetPrior(150, 2, 2), 0
    for seed in range(8):
        evidence, rng = SufficientStatistics(problem), np.random.default_rng(seed)
        for x in Simulator(problem, seed=seed).sample(2):
            evidence.add_vector(x)
        likelihood = likelihood_of(evidence)
        exact = Enumeration(likelihood, prior, rng)
        exact.update()
        near = Shortlist(likelihood, prior, prior.random_sets(rng, 1), rng)
        around = neighbourhood(likelihood, prior, near.best)
        claimed, right = near.confidence(around, 0.0), exact.confidence(around)
        assert near.marginals().sum() == pytest.approx(2.0, abs=0.01)
        if claimed.how != "unsettled":
            settled += 1
            assert claimed.probability == pytest.approx(right.probability, abs=0.06)
            np.testing.assert_allclose(near.marginals(), exact.marginals(), atol=0.1)
        assert claimed.probability <= right.probability + 0.1
    assert settled >= (1 if shift == 1.0 else 6)


def test_ten_thousand_streams_take_little_memory_and_are_saved(tmp_path: Path) -> None:
    problem = Problem(AR1(10_000, rho=0.8), shift=2.5, n_anomalies=3, budget=5.0)
    world, policy = Simulator(problem, seed=4), make_policy("joint", problem, seed=4)
    vectors = world.sample(3)
    tracemalloc.start()
    policy.observe(vectors[0])
    policy.save(tmp_path / "policy")
    again = load_policy(tmp_path / "policy")
    for one in (policy, again):
        one.observe(vectors[1])
        one.tell(one.ask(), 0.5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # one 10,000 x 10,000 matrix is 800 MB
    assert np.array_equal(policy.decision, again.decision)
    assert np.array_equal(policy.beliefs, again.beliefs)
    assert policy.confidence == again.confidence


def test_a_vector_of_ten_thousand_streams_finds_the_set_and_stops() -> None:
    problem = Problem(AR1(10_000, rho=0.8), shift=3.0, n_anomalies=3, budget=5.0)
    world, policy = Simulator(problem, seed=7), make_policy("joint", problem, seed=7)
    for x in world.sample(3):
        policy.observe(x)
    assert policy.should_stop()
    assert policy.decision.tolist() == sorted(world.anomalies.tolist())


def test_incomplete_vectors_of_so_many_streams_are_refused() -> None:
    problem = Problem(AR1(10_000, rho=0.8), shift=3.0, n_anomalies=3, budget=5.0)
    policy, x = make_policy("joint", problem), np.zeros(10_000)
    x[5] = np.nan
    with pytest.raises(ValueError, match="vectors in which streams are missing are taken for up to 8192 streams"):
        policy.observe(x)
    assert policy.n_told == 0
