"""Scores are sums of log-likelihood ratios, computed here from the normal density itself."""

import numpy as np
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm

from eccaht import Problem, families
from eccaht.streams.posterior.protocol import Ranker
from eccaht.streams.posterior.pseudo_likelihood import PseudoLikelihood
from tests.checks.covariances import wishart


def test_scores_are_log_likelihood_ratios() -> None:
    rng = np.random.default_rng(0)
    K, mean, shift = 12, rng.standard_normal(12), rng.choice([-2.0, 0.5, 3.0], 12)
    cov = wishart(K)
    belief = PseudoLikelihood(Problem(cov, shift=shift, n_anomalies=3, budget=1.0, mean=mean))
    expected = np.full(K, np.log(3 / 9))
    for _ in range(5):
        c, y = rng.standard_normal(K) * (rng.random(K) < 0.5), rng.standard_normal()
        if not c.any():
            continue
        belief.update(c, y)
        sd = np.sqrt(c @ cov.dense() @ c)
        expected += norm.logpdf(y, c @ mean + shift * c, sd) - norm.logpdf(y, c @ mean, sd)
    assert_allclose(belief.scores, expected, rtol=1e-10)
    assert_allclose(belief.beliefs, 1 / (1 + np.exp(-expected)), rtol=1e-10)


def test_evidence_does_not_depend_on_the_scale_of_the_measurement() -> None:
    problem = Problem(families.toeplitz(6, 0.7), shift=2.0, n_anomalies=1, budget=1.0)
    one, other = PseudoLikelihood(problem), PseudoLikelihood(problem)
    c = np.array([1.0, -0.5, 0.0, 0.3, 0.0, 2.0])
    one.update(c, 0.7)
    other.update(100 * c, 70.0)
    assert_allclose(one.scores, other.scores)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=30), st.data())
def test_ranking_is_the_sorted_order_with_ties_by_the_given_order(values: list[int], data: st.DataObject) -> None:
    K = len(values)
    n = data.draw(st.integers(1, K - 1))
    order = np.array(data.draw(st.permutations(range(K))))
    ranked = Ranker(order)(np.array(values, dtype=float), n)
    by_hand = sorted(range(K), key=lambda k: (-values[k], order[k]))
    assert ranked.members.tolist() == sorted(by_hand[:n])
    assert (ranked.champion, ranked.challenger) == (by_hand[n - 1], by_hand[n])
