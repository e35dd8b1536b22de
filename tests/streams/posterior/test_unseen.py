"""Sets that precise readings hide: their weight is the integral it stands for, and it lowers what is believed."""

from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht import Problem
from eccaht.base.arrays import Array
from eccaht.streams.posterior.confidence import estimate, weight_unseen
from eccaht.streams.posterior.gibbs import neighbourhood
from eccaht.streams.posterior.likelihood import Likelihood, likelihood_of
from eccaht.streams.posterior.statistics import SufficientStatistics
from eccaht.streams.sets import SetPrior

NODES = 30  # a direction; the integrand is a Gaussian of moderate width, so that twice as many change nothing


def mean_over_gaussian(b: Array, M: Array, size: int) -> float:
    """E[exp(b'z - z'M z / 2)] by quadrature, z Gaussian with the moments of a random set's indicator.

    The moments are taken from the sets themselves: of K streams `size` are in, all sets being equally likely.
    """
    K = len(b)
    rows = SetPrior(K, size, size).all_sets()
    z = np.zeros((len(rows), K))
    np.put_along_axis(z, rows, 1.0, axis=1)
    mean, covariance = z.mean(axis=0), np.cov(z.T, bias=True)
    values, vectors = np.linalg.eigh(covariance)
    wide = values > 1e-12
    root = vectors[:, wide] * np.sqrt(values[wide])
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    grid, shares = (np.meshgrid(*[axis] * int(wide.sum())) for axis in (nodes, weights / weights.sum()))
    drawn = mean + np.stack([place.ravel() for place in grid], axis=1) @ root.T
    mass = np.prod([share.ravel() for share in shares], axis=0)
    return float(mass @ np.exp(drawn @ b - 0.5 * ((drawn @ M) * drawn).sum(axis=1)))


def measured(readings: int, seed: int, variance: float, size: int = 4) -> Likelihood:
    rng = np.random.default_rng(seed)
    evidence = SufficientStatistics(
        Problem(variance * np.eye(size), shift=[1.0, -0.7, 1.3, 0.9][:size], n_anomalies=2, budget=3.0)
    )
    for _ in range(readings):
        evidence.add(c := rng.standard_normal(size), float(c[:2] @ [1.0, -0.7] + rng.standard_normal()))
    return likelihood_of(evidence)


@pytest.mark.parametrize("prior", [SetPrior(4, 2, 2), SetPrior(4, 1, 1), SetPrior(4, 1, 3)], ids=["2", "1", "1-3"])
@pytest.mark.parametrize("readings", [1, 2, 5])
def test_the_weight_is_the_integral_over_gaussian_sets(prior: SetPrior, readings: int) -> None:
    for seed in range(3):
        likelihood = measured(readings, seed, 0.5)
        evidence = likelihood.evidence
        b, M = evidence.linear[:4], evidence.rows(np.arange(4))[:, :4]
        members = prior.all_sets()[seed]
        held = int((members < 4).sum())
        own = likelihood.log_likelihood(members[None])[0] + prior.log_prior_of(members[None])[0]
        expected = 0.0
        for size in range(prior.least, prior.most + 1):
            others = 1.0 - 1.0 / comb(4, size) if size == held else 1.0
            expected += others * mean_over_gaussian(b, M, size) / (prior.most - prior.least + 1)
        assert_allclose(weight_unseen(likelihood, prior, members), expected / np.exp(own), rtol=1e-6)


def test_what_is_hidden_lowers_what_is_believed_by_as_much_as_it_weighs() -> None:
    """One reading fits about one set in ten thousand: by enumeration of 7,315 sets, on average over worlds."""
    prior = SetPrior(22, 4, 4)
    rows, believed, exact = prior.all_sets(), [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        evidence = SufficientStatistics(Problem(np.eye(22), shift=2e4, n_anomalies=4, budget=1.0))
        truth, c = rows[rng.integers(len(rows))], rng.standard_normal(22)
        evidence.add(c, float(2e4 * c[truth].sum() + np.linalg.norm(c) * rng.standard_normal()))
        likelihood = likelihood_of(evidence)
        around = neighbourhood(likelihood, prior, truth)
        if around.best >= -30.0:  # one change is enough to explain it too: nothing is hidden there
            continue
        height = likelihood.log_likelihood(rows)
        own = float(likelihood.log_likelihood(truth[None])[0])
        exact.append(1.0 / np.exp(np.minimum(height - own, 300.0)).sum())
        seen = np.tile(truth, (64, 1))  # a population that knows nothing else, and searches that found nothing else
        believed.append(estimate(likelihood, prior, seen, seen, around))
    assert len(exact) > 30
    assert 0.4 < np.mean(exact) < 0.9  # there is something to be missed
    assert 0.0 <= min(believed) <= max(believed) <= 1.0
    assert abs(np.mean(believed) - np.mean(exact)) < 0.15  # a Gaussian is no set: 0.08 was counted
