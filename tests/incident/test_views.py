"""Evidence is a likelihood ratio: each view equals one that is computed another way."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from eccaht.arrays import Array
from eccaht.incident.views import STEP_SPREAD, Evidence, Stretch
from tests.incident.worlds import evidence_of, normal_of

K, L = 5, 7
SETS = [chosen for size in range(K) for chosen in combinations(range(K), size)]
TAILS = pytest.mark.parametrize("tails", [np.inf, 4.0])


def scores_of(seed: int = 1, length: int = L) -> Array:
    return 2.0 * np.random.default_rng(seed).standard_normal((length, K))


def with_gaps(scores: Array, seed: int = 2) -> Array:
    scores = scores.copy()
    scores[np.random.default_rng(seed).random(scores.shape) < 0.25] = np.nan
    scores[0] = np.nan  # a window without any reading
    return scores


def distances(R: Array, scores: Array, free: tuple[int, ...]) -> Array:
    """z' R^-1 z of the sensors that are present and not set free, window by window, under their own covariance."""
    found = np.zeros(len(scores))
    for t, z in enumerate(scores):
        kept = [k for k in np.flatnonzero(~np.isnan(z)) if k not in free]
        if kept:
            found[t] = z[kept] @ np.linalg.inv(R[np.ix_(kept, kept)]) @ z[kept]
    return found


def explained(tails: float, scores: Array, q: Array, left: Array, before: tuple[int, ...] = ()) -> Array:
    """What a set explains of the distances q, of which it leaves `left`, once the sensors of `before` are free."""
    if np.isinf(tails):
        return np.asarray(0.5 * (q - left))
    m = sum(~np.isnan(scores[:, k]) for k in range(K) if k not in before)
    return np.asarray(0.5 * (tails + m) * (np.log(tails + q) - np.log(tails + left)))


# -- any course ----------------------------------------------------------------------------------------


@TAILS
@pytest.mark.parametrize("gaps", [False, True])
def test_sensors_that_are_set_free_are_left_out_of_the_distance(tails: float, gaps: bool) -> None:
    normal, scores = normal_of(K, tails=tails), with_gaps(scores_of()) if gaps else scores_of()
    evidence = evidence_of(normal, scores)
    q = distances(normal.scatter, scores, ())
    for chosen in SETS:
        left = distances(normal.scatter, scores, chosen)
        assert_allclose(evidence.course((), chosen), explained(tails, scores, q, left), rtol=1e-9, atol=1e-9)


@TAILS
@pytest.mark.parametrize("gaps", [False, True])
def test_what_sensors_add_sums_up_to_what_the_set_explains(tails: float, gaps: bool) -> None:
    scores = with_gaps(scores_of()) if gaps else scores_of()
    evidence = evidence_of(normal_of(K, tails=tails), scores)
    for chosen in SETS:
        added, q = evidence.free(chosen), distances(evidence.normal.scatter, scores, chosen)
        for k in set(range(K)) - set(chosen):
            left = distances(evidence.normal.scatter, scores, (*chosen, k))
            more = explained(tails, scores, q, left, chosen).sum()
            assert_allclose(added[k], more - L / 2, rtol=1e-8, atol=1e-8)
            assert_allclose(evidence.course(chosen, (k, *chosen)).sum(), more, rtol=1e-8, atol=1e-8)


def test_a_sound_sensor_gains_what_its_conditional_density_says_however_many_are_free() -> None:
    # up to constants, the gain is minus the log density of the sensor given those that remain, in units of its spread
    nu, R = 4.0, normal_of(K, tails=4.0).scatter
    scores = scores_of()
    evidence = evidence_of(normal_of(K, tails=nu), scores)
    for chosen in SETS:
        k = next(k for k in range(K) if k not in chosen)
        rest = [j for j in range(K) if j not in (*chosen, k)]
        if not rest:
            continue
        weights = np.linalg.solve(R[np.ix_(rest, rest)], R[rest, k])
        rough = (nu + distances(R, scores, (*chosen, k))) / (nu + len(rest))
        spread = np.sqrt(rough * (R[k, k] - R[k, rest] @ weights))
        standard = (scores[:, k] - scores[:, rest] @ weights) / spread
        t = stats.t(nu + len(rest))
        assert_allclose(evidence.course(chosen, (*chosen, k)), t.logpdf(0.0) - t.logpdf(standard), rtol=1e-8, atol=1e-9)


@TAILS
def test_the_order_of_a_set_does_not_matter(tails: float) -> None:
    evidence = evidence_of(normal_of(K, tails=tails), scores_of())
    for chosen in ((3, 0, 4), (4, 3, 0), (0, 4, 3)):
        assert_allclose(evidence.gains(chosen)[:, [1, 2]], evidence.gains((0, 3, 4))[:, [1, 2]], rtol=1e-9)


def test_what_is_missing_is_what_the_others_expect_and_bears_no_evidence() -> None:
    normal, scores = normal_of(K), with_gaps(scores_of())
    complete, R = evidence_of(normal, scores).complete, normal.scatter
    for z, filled in zip(scores, complete, strict=True):
        gone, kept = np.flatnonzero(np.isnan(z)), np.flatnonzero(~np.isnan(z))
        expected = R[np.ix_(gone, kept)] @ np.linalg.solve(R[np.ix_(kept, kept)], z[kept])
        assert_allclose(filled[gone], expected, atol=1e-10)
        assert_array_equal(filled[kept], z[kept])
    assert_allclose((complete @ np.linalg.inv(R))[np.isnan(scores)], 0.0, atol=1e-10)


def test_light_tails_are_the_limit_of_heavy_ones() -> None:
    gaussian, heavy = (evidence_of(normal_of(K, tails=nu), scores_of()) for nu in (np.inf, 1e9))
    for chosen in SETS:
        left = np.setdiff1d(np.arange(K), chosen)
        assert_allclose(heavy.free(chosen)[left], gaussian.free(chosen)[left], rtol=1e-5, atol=1e-5)


def test_heavy_tails_believe_a_huge_deviation_by_its_logarithm() -> None:
    scores = scores_of()
    normal = normal_of(K, tails=4.0)
    gains = []
    for size in (1e2, 1e4):
        scores[:, 2] = size
        gains.append(evidence_of(normal, scores).free()[2])
    assert_allclose(gains[1] - gains[0], L * (4.0 + K) * np.log(1e2), rtol=1e-2)


def test_without_correlation_each_sensor_speaks_for_itself() -> None:
    scores = scores_of()
    evidence = evidence_of(normal_of(K), scores, correlation=False)
    for chosen in ((), (1,), (0, 3)):
        left = np.setdiff1d(np.arange(K), chosen)
        assert_allclose(evidence.free(chosen)[left], (0.5 * (scores**2).sum(axis=0) - L / 2)[left])


# -- a step --------------------------------------------------------------------------------------------


def step_likelihood(R: Array, scores: Array, shifted: tuple[int, ...]) -> float:
    """The density of all windows together if these sensors have one unknown shift each."""
    moved = np.diag(np.isin(np.arange(K), shifted).astype(float))
    together = np.kron(np.eye(len(scores)), R) + STEP_SPREAD**2 * np.kron(np.ones((len(scores),) * 2), moved)
    return float(stats.multivariate_normal(np.zeros(scores.size), together).logpdf(scores.ravel()))


@pytest.mark.parametrize("chosen", [(), (2,), (0, 4), (1, 2, 3)])
def test_a_step_has_the_ratio_of_marginal_likelihoods(chosen: tuple[int, ...]) -> None:
    normal, scores = normal_of(K), scores_of(length=4) + 1.0
    added = evidence_of(normal, scores).step(chosen)
    base = step_likelihood(normal.scatter, scores, chosen)
    for k in set(range(K)) - set(chosen):
        assert_allclose(added[k], step_likelihood(normal.scatter, scores, (*chosen, k)) - base, rtol=1e-8, atol=1e-8)


def test_windows_with_memory_are_worth_fewer() -> None:
    normal, scores = normal_of(K, scatter=np.eye(K)), scores_of(length=12)
    inflated = evidence_of(normal, scores, inflation=np.full(K, 3.0)).step()
    # the mean of 12 windows that are worth 4 is N(0, 1 / 4), and with a step N(0, 1 / 4 + s^2)
    wide, narrow = np.sqrt(0.25 + STEP_SPREAD**2), 0.5
    mean = scores.mean(axis=0)
    assert_allclose(inflated, stats.norm.logpdf(mean, scale=wide) - stats.norm.logpdf(mean, scale=narrow), rtol=1e-9)


def test_a_shift_explains_itself_however_the_memory_of_sensors_differs() -> None:
    normal = normal_of(K)
    scores = np.zeros((20, K))
    scores[:, [1, 3]] = 6.0, -8.0  # nothing but two large shifts
    evidence = evidence_of(normal, scores, inflation=np.array([1.0, 2.0, 5.0, 1.3, 9.0]))
    assert (evidence.step()[[1, 3]] > 10.0).all()
    assert (evidence.step((1, 3))[[0, 2, 4]] < 1.0).all()


def test_sums_are_squares_of_standard_normals_where_windows_are_independent() -> None:
    normal = normal_of(K)
    draws = np.random.default_rng(3).multivariate_normal(np.zeros(K), normal.scatter, (400, 10))
    views = [evidence_of(normal, scores) for scores in draws]
    sums = np.array([view.sums**2 / view.total.diagonal() for view in views])
    for k in range(K):
        assert stats.kstest(sums[:, k], stats.chi2(1).cdf).pvalue > 0.01


# -- by its own past -----------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [0.0, 0.7])
def test_own_evidence_is_that_of_the_best_larger_variance(memory: float) -> None:
    normal, scores = normal_of(K, memory=memory), 3.0 * scores_of(length=30)
    evidence = evidence_of(normal, scores)
    grid = np.geomspace(1.0, 1e3, 20_001)
    past = np.vstack([np.zeros(K), scores[:-1]])
    for k in range(K):
        u = (scores[:, k] - memory * past[:, k]) / np.sqrt(1.0 - memory**2)
        ratios = -0.5 * len(u) * np.log(grid) - 0.5 * (u @ u) * (1.0 / grid - 1.0)
        assert_allclose(evidence.own[k], ratios.max(), rtol=1e-5)


def test_a_sensor_that_varies_less_than_usual_is_not_suspect_by_its_own_past() -> None:
    evidence = evidence_of(normal_of(K), 0.1 * scores_of())
    assert (evidence.own < 0.0).all()


# -- stretches -----------------------------------------------------------------------------------------


def test_sensors_that_are_mostly_silent_are_not_judged() -> None:
    scores = scores_of(length=10)
    scores[:6, 1] = np.nan
    scores[:5, 3] = np.nan
    evidence = evidence_of(normal_of(K), scores)
    assert evidence.judged.tolist() == [True, False, True, True, True]
    assert np.isneginf(evidence.gains((0,))[:, [0, 1]]).all()
    assert np.isfinite(evidence.gains((0,))[:, 2:]).all()


@TAILS
def test_relabelling_sensors_relabels_the_views(tails: float) -> None:
    normal, order = normal_of(K, tails=tails), np.array([3, 0, 4, 1, 2])
    values = np.random.default_rng(5).standard_normal((40, K))
    stretch = Stretch(values, np.zeros(40), 20, 32)
    plain = Evidence.of(normal, stretch)
    again = Evidence.of(normal.of(order), stretch._replace(values=values[:, order]))
    assert_allclose(again.gains((0, 2)), plain.gains((3, 4))[:, order], rtol=1e-8, atol=1e-8)


def test_a_stretch_is_seen_from_the_level_before_and_nothing_later_matters() -> None:
    normal = normal_of(K, memory=0.5)
    values = np.random.default_rng(6).standard_normal((40, K))
    later = values.copy()
    later[32:] = 100.0
    plain, other = (Evidence.of(normal, Stretch(each, np.zeros(40), 20, 32)) for each in (values, later))
    assert_array_equal(plain.gains(), other.gains())
    assert_allclose(plain.innovations[0], (values[20] - 0.5 * values[19]) / np.sqrt(0.75))
    assert_allclose(plain.deviations, values[20:32])
