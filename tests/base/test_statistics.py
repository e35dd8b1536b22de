"""F1, delays and intervals against brute force, an independent bootstrap and known coverage."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from eccaht.base.arrays import Array
from eccaht.base.statistics import (
    bca_interval,
    chance_of_as_many,
    clopper_pearson,
    delay,
    estimate,
    f1_score,
    first_reached,
    poisson_interval,
    reached_for_good,
)

curves = st.lists(st.sampled_from([0.0, 0.5, 0.95, 1.0]), max_size=8)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.sets(st.integers(0, 9), min_size=1), st.sets(st.integers(0, 9), min_size=1))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(named: set[int], true: set[int]) -> None:
    hits = len(named & true)
    precision, recall = hits / len(named), hits / len(true)
    expected = 2 * precision * recall / (precision + recall) if hits else 0.0
    assert f1_score(hits, len(named), len(true)) == pytest.approx(expected)


@given(curves)
def test_the_first_time_is_the_first(curve: list[float]) -> None:
    assert first_reached(curve) == next((t for t, f1 in enumerate(curve, 1) if f1 >= 0.95), None)


@given(curves)
def test_for_good_means_never_below_again(curve: list[float]) -> None:
    good = (t for t in range(1, len(curve) + 1) if all(f1 >= 0.95 for f1 in curve[t - 1 :]))
    assert reached_for_good(curve) == next(good, None)


SAMPLES = {
    "normal": rng(1).normal(size=20),
    "exponential": rng(2).exponential(size=20),
    "skewed": rng(3).lognormal(sigma=1.2, size=50),
    "heavy-tailed": rng(4).standard_t(2, size=30),
    "far-from-zero": 1e6 + rng(5).gamma(0.5, size=25),
    "three": np.array([1.0, 2.0, 7.0]),
}


@pytest.mark.parametrize("x", SAMPLES.values(), ids=SAMPLES)
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_scipys_bootstrap_gives_the_same_interval(x: Array, level: float) -> None:
    many = 40_000
    ours = bca_interval(x, rng=rng(), resamples=many, level=level)
    theirs = stats.bootstrap(
        (x,), np.mean, n_resamples=many, confidence_level=level, method="BCa", rng=rng(1), batch=5000
    )
    low, high = theirs.confidence_interval
    assert_allclose(ours, [low, high], rtol=0, atol=0.05 * (high - low))  # three times the Monte Carlo error


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_ties_with_the_mean_count_half_as_in_scipy(share: float) -> None:
    x = (np.arange(20) < 20 * share).astype(float)
    ours = bca_interval(x, rng=rng(), resamples=50_000)
    theirs = stats.bootstrap((x,), np.mean, n_resamples=50_000, method="BCa", rng=rng(1), batch=5000)
    assert_allclose(ours, theirs.confidence_interval, rtol=0, atol=0.05 + 1e-9)  # a step of such a mean
    assert_array_equal(np.round(20 * ours), np.round(20 * bca_interval(x * 0.1, rng=rng(), resamples=50_000) / 0.1))


def test_many_curves_get_the_intervals_that_each_gets_alone() -> None:
    x = rng(1).exponential(size=(12, 3, 100))
    x[:, 1, 40:70] = 2.5
    together = bca_interval(x, rng=rng(7), resamples=2000)
    assert together.shape == (2, 3, 100)
    for place in [(0, 0), (0, 99), (1, 27), (1, 28), (1, 39), (1, 40), (2, 55), (2, 56), (2, 99)]:
        alone = bca_interval(x[:, *place], rng=rng(7), resamples=2000)
        assert_allclose(together[:, *place], alone, rtol=1e-12)


def test_shifting_and_scaling_the_sample_does_so_to_the_interval() -> None:
    x = rng(1).exponential(size=15)
    low, high = bca_interval(x, rng=rng(2))
    assert low < x.mean() < high
    assert_allclose(bca_interval(5.0 + 3.0 * x, rng=rng(2)), [5.0 + 3.0 * low, 5.0 + 3.0 * high], rtol=1e-12)
    assert_allclose(bca_interval(5.0 - 3.0 * x, rng=rng(2)), [5.0 - 3.0 * high, 5.0 - 3.0 * low], rtol=1e-9)
    assert_allclose(bca_interval(1e-200 * x, rng=rng(2)), [1e-200 * low, 1e-200 * high], rtol=1e-12)


def test_runs_that_agree_give_an_interval_of_width_zero() -> None:
    assert bca_interval(np.full(7, 0.1), rng=rng()).tolist() == [0.1, 0.1]
    mixed = bca_interval([[0.1, 1.0], [0.1, 2.0], [0.1, 4.0]], rng=rng())
    assert mixed[:, 0].tolist() == [0.1, 0.1]
    assert mixed[0, 1] < mixed[1, 1]


def test_one_run_has_no_interval() -> None:
    assert np.isnan(bca_interval([[1.0, 2.0]], rng=rng())).all()
    assert estimate([3.0], rng=rng()) == (3.0, None)


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        ([], {}, "at least one run"),
        (3.0, {}, "at least one run"),
        ([1.0, np.nan], {}, "non-finite value at index 1"),
        ([1.0, 2.0], {"level": 1.0}, "level is a probability"),
        ([1.0, 2.0], {"level": np.nan}, "level must be finite"),
        ([1.0, 2.0], {"resamples": 0}, "resamples must be a whole number"),
        (["a", "b"], {}, "real numbers"),
    ],
)
def test_bad_samples_are_refused(samples: object, options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bca_interval(samples, rng=rng(), **options)  # type: ignore[arg-type]


def test_censored_runs_are_counted_and_enter_at_the_horizon() -> None:
    late = delay([10, None, 30, None], 100, rng=rng())
    assert (late.mean, late.censored) == (60.0, 2)
    assert late.interval == tuple(bca_interval([10.0, 100.0, 30.0, 100.0], rng=rng()))
    assert late.times == [10, None, 30, None]


def test_runs_that_were_all_cut_off_are_no_certainty() -> None:
    assert delay([None, None], 50, rng=rng()) == ([None, None], 50.0, None)
    assert delay([50, 50], 50, rng=rng()).interval == (50.0, 50.0)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [20, 100])
def test_intervals_of_normal_means_cover_as_often_as_theory_says(runs: int) -> None:
    columns = 20_000
    low, high = bca_interval(rng(1).normal(size=(runs, columns)), rng=rng(2), resamples=4000)
    covered = np.mean((low <= 0) & (high >= 0))
    # the bootstrap's spread is that of the sample with divisor n, and its quantiles are normal ones
    expected = 1 - 2 * stats.t.sf(1.96 * np.sqrt((runs - 1) / runs), runs - 1)
    assert covered == pytest.approx(expected, abs=0.012)


@pytest.mark.slow
def test_skewed_means_are_covered_evenly_on_both_sides() -> None:
    runs = 50
    x = rng(1).exponential(size=(runs, 20_000))
    low, high = bca_interval(x, rng=rng(2), resamples=4000)
    missed = np.mean(low > 1), np.mean(high < 1)
    half = stats.norm.ppf(0.975) * x.std(axis=0) / np.sqrt(runs)
    plain = np.mean(x.mean(axis=0) - half > 1), np.mean(x.mean(axis=0) + half < 1)
    assert sum(missed) < 0.08
    assert abs(missed[0] - missed[1]) < 0.6 * abs(plain[0] - plain[1])


@given(st.integers(1, 300), st.data(), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_clopper_pearson_inverts_the_binomial_test(trials: int, data: st.DataObject, level: float) -> None:
    count = data.draw(st.integers(0, trials))
    atol = 1e-9  # scipy looks for the ends by bisection, to about 1e-12
    low, high = clopper_pearson(count, trials, level=level)
    assert_allclose(
        (low, high), stats.binomtest(count, trials).proportion_ci(level, method="exact"), rtol=1e-9, atol=atol
    )
    upper = stats.binomtest(count, trials, alternative="less").proportion_ci(level, method="exact")
    assert_allclose(clopper_pearson(count, trials, level=level, side="upper"), upper, rtol=1e-9, atol=atol)
    tail = 0.5 * (1.0 - level)
    assert count == 0 or stats.binom.sf(count - 1, trials, low) == pytest.approx(tail, rel=1e-9)
    assert count == trials or stats.binom.cdf(count, trials, high) == pytest.approx(tail, rel=1e-9)


@given(st.integers(0, 300), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_poisson_interval_inverts_the_exact_test(count: int, level: float) -> None:
    low, high = poisson_interval(count, level=level)
    assert count == 0 or stats.poisson.sf(count - 1, low) == pytest.approx(0.5 * (1.0 - level), rel=1e-9)
    assert stats.poisson.cdf(count, high) == pytest.approx(0.5 * (1.0 - level), rel=1e-9)


@pytest.mark.parametrize("probability", [0.01, 0.05, 0.3, 0.9])
def test_clopper_pearson_covers_at_its_level(probability: float) -> None:
    trials = 40
    weights = stats.binom.pmf(np.arange(trials + 1), trials, probability)
    for side in ("both", "upper"):
        ends = np.array([clopper_pearson(count, trials, side=side) for count in range(trials + 1)])
        covered = (ends[:, 0] <= probability) & (probability <= ends[:, 1])
        assert weights[covered].sum() >= 0.95


@given(st.integers(1, 300), st.data(), st.floats(0.001, 0.999))
def test_the_chance_of_as_many_is_the_binomial_tail(trials: int, data: st.DataObject, probability: float) -> None:
    count = data.draw(st.integers(0, trials))
    expected = stats.binom.sf(count - 1, trials, probability)
    assert chance_of_as_many(count, trials, probability) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_counts_that_cannot_be_are_refused() -> None:
    for count, trials in ((3, 2), (-1, 2), (0, 0)):
        for compute in (clopper_pearson, lambda k, n: chance_of_as_many(k, n, 0.5)):
            with pytest.raises(ValueError, match=r"count|trials"):
                compute(count, trials)
    with pytest.raises(ValueError, match="level"):
        clopper_pearson(1, 2, level=1.0)
    with pytest.raises(ValueError, match="probability"):
        chance_of_as_many(1, 2, 1.5)
