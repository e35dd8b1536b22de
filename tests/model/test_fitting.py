"""Normal operation is recovered from worlds in which it is known, and the windows held back choose the right one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import multivariate_normal, multivariate_t, t
from sklearn.covariance import LedoitWolf

from eccaht.arrays import Array
from eccaht.model.choice import Choice, pick
from eccaht.model.fitting import fit_normal, level_candidates
from eccaht.model.normal import BINS, WIDTH, Normal, memory_of, rolling_level
from eccaht.model.scatter import densities_of, ledoit_wolf, scatter_of, shrunk, t_scale

MINUTES: Array = 60.0 * np.arange(6 * 1440, dtype=np.float64)


def noise(T: int, K: int, seed: int = 0, correlation: float = 0.0) -> Array:
    root = np.linalg.cholesky((1.0 - correlation) * np.eye(K) + correlation)
    return np.random.default_rng(seed).standard_normal((T, K)) @ root.T


def fitted(values: Array, **options: Any) -> tuple[Normal, Choice]:
    return fit_normal(values, MINUTES[: len(values)], **options)


# -- worlds that are known -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_white_noise_needs_nothing(seed: int) -> None:
    normal, choice = fitted(noise(6000, 5, seed, 0.5))
    assert (choice.level, choice.memory, choice.tails) == ("fixed", "none", np.inf)
    assert {row.candidate for row in choice.rows if row.part == "level"} == {"fixed", "daily", "local"}
    assert np.abs(normal.profile).max() < 5.0 * np.sqrt(np.pi / 2 / 6000)
    assert not normal.memory.any()


def test_memory_is_recovered() -> None:
    T, phi = 6000, np.array([0.0, 0.3, 0.6, 0.9])
    values = np.column_stack([lfilter([1.0], [1.0, -p], u) for p, u in zip(phi, noise(T, 4).T, strict=True)])
    normal, choice = fitted(values, level="fixed")
    assert choice.memory == "ar"
    assert (np.abs(normal.memory - phi) < 4.0 * np.sqrt((1.0 - phi**2) / T) + 4.0 / T).all()
    assert normal.spread == pytest.approx(np.ones(4), abs=0.04)


def test_windows_after_a_gap_do_not_count_for_memory() -> None:
    pieces = [lfilter([1.0], [1.0, -0.9], noise(20, 2, seed), axis=0) for seed in range(150)]
    follows = np.arange(1, 3000) % 20 != 0
    normal, _ = fit_normal(np.concatenate(pieces), None, memory="ar", level="fixed", consecutive=follows)
    across, _ = fit_normal(np.concatenate(pieces), None, memory="ar", level="fixed")
    assert normal.memory.min() > across.memory.max()
    assert normal.spread == pytest.approx(np.ones(2), abs=0.06)


def test_a_level_that_wanders_is_local() -> None:
    walk = 0.1 * noise(4000, 4, seed=1).cumsum(axis=0)
    assert fitted(walk + noise(4000, 4))[1].level == "local"


def test_a_daily_cycle_is_found() -> None:
    cycle = 3.0 * np.sin(2.0 * np.pi * MINUTES / 86400.0)
    values = cycle[:, None] + noise(len(MINUTES), 3)
    normal, choice = fit_normal(values, MINUTES % 86400.0)
    assert choice.level == "daily"
    middle = 3.0 * np.sin(2.0 * np.pi * (np.arange(BINS) + 0.5) / BINS)
    assert np.abs(normal.profile - middle[:, None]).max() < 0.5
    assert level_candidates("auto", 8640, None) == ["fixed", "local"]
    assert level_candidates("auto", 170, MINUTES[:170]) == ["fixed"]


def test_heavy_tails_are_found() -> None:
    values = multivariate_t(np.zeros(8), 0.4 * np.eye(8) + 0.6, df=3, seed=3).rvs(5000)
    normal, choice = fitted(np.asarray(values), level="fixed")
    assert choice.tails <= 10.0
    assert normal.tails == choice.tails


def test_the_correlation_of_scores_is_that_of_the_noise() -> None:
    stretched = np.sinh(noise(8000, 6, 5, 0.7)) * [1e-3, 0.1, 1.0, 10.0, 100.0, 1e4]  # heavy tails, any unit
    normal, _ = fitted(stretched, level="fixed", shrink=0.0, tails="gaussian")
    deviations = np.sqrt(normal.scatter.diagonal())
    correlations = normal.scatter / np.outer(deviations, deviations)
    assert correlations[~np.eye(6, dtype=bool)] == pytest.approx(0.7, abs=0.03)
    assert deviations == pytest.approx(np.ones(6), abs=0.05)


def test_the_refit_uses_all_windows_and_what_is_asked_for() -> None:
    values = noise(3000, 3, 7, 0.5)
    normal, choice = fitted(values, level="local", memory="ar", shrink=0.25, tails=7.0)
    assert (choice.level, choice.memory, choice.shrink, choice.tails) == ("local", "ar", 0.25, 7.0)
    deviations = values[WIDTH:] - rolling_level(values, WIDTH)
    assert np.array_equal(normal.memory, memory_of(deviations))
    assert np.array_equal(normal.scatter, shrunk(scatter_of(normal.scores(deviations)), 0.25))
    assert [row.chosen for row in choice.rows] == [True, True, True]


# -- sensors that hardly move, and few windows ---------------------------------------------------------


@pytest.mark.parametrize("level", ["auto", "local"])
@pytest.mark.parametrize("estimator", ["ledoit-wolf", "oas"])
def test_sensors_that_stand_still(level: str, estimator: str) -> None:
    values = noise(600, 7)
    values[:450, 0] = 0.0
    values[:, 1] = np.arange(600) == 599
    values[3:, 2] = 2.0
    values[:, 3] = values[:, 4]
    values[:, 5] = 0.0
    with np.errstate(all="raise", under="ignore"):
        normal, choice = fitted(values, level=level, estimator=estimator)
    assert np.linalg.eigvalsh(normal.scatter)[0] > 0.0
    assert all(np.isfinite([row.score, row.error]).all() for row in choice.rows)


@pytest.mark.parametrize("shape", [(10, 3), (12, 40), (200, 1)])
def test_few_windows(shape: tuple[int, int]) -> None:
    normal, _ = fitted(noise(*shape))
    assert np.isfinite(normal.precision).all()


def test_gaps_everywhere_leave_no_memory() -> None:
    alone = np.zeros(599, dtype=bool)
    assert fit_normal(noise(600, 2), None, consecutive=alone)[1].memory == "none"
    with pytest.raises(ValueError, match="more windows that follow each other"):
        fit_normal(noise(600, 2), None, memory="ar", consecutive=alone)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "another level": ({"level": "locl"}, "did you mean 'local'"),
    "another memory": ({"memory": "yes"}, "unknown memory"),
    "all shrunk": ({"shrink": 1.0}, "below 1"),
    "shrunk by a word": ({"shrink": "much"}, "shrink must be 'auto' or a number"),
    "other tails": ({"tails": "fat"}, "'gaussian', 't'"),
    "tails of nothing": ({"tails": 0.0}, "between 1 and"),
    "a day too few": ({"level": "daily"}, "at least 3 days"),
    "a window too few": ({"level": "local"}, "at least 180 windows"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_fitted(name: str) -> None:
    options, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        fitted(noise(100, 2), **options)


def test_a_history_has_no_gaps() -> None:
    with pytest.raises(ValueError, match="without gaps"):
        fitted(np.full((100, 2), np.nan))


# -- parts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [60, 7])
def test_rolling_levels_are_medians_of_the_windows_before(width: int) -> None:
    values = np.round(noise(200, 2), 1)  # with ties
    expected = [np.median(values[k - width : k], axis=0) for k in range(width, 200)]
    assert np.array_equal(rolling_level(values, width), expected)
    assert rolling_level(values[:width], width).shape == (0, 2)


def test_ledoit_wolf_is_the_published_one() -> None:
    for T, K in ((50, 4), (20, 30)):
        rows = noise(T, K, 2, 0.4)
        expected = LedoitWolf(assume_centered=True).fit(rows).covariance_
        assert ledoit_wolf(rows) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_densities(share: float) -> None:
    first, last = noise(300, 4, 1, 0.6), 2.0 * noise(20, 4, 2, 0.6)
    found = densities_of(first, last, [share], [np.inf, 5.0])
    scatter = shrunk(scatter_of(first), share)
    assert found[share, np.inf] == pytest.approx(multivariate_normal(np.zeros(4), scatter).logpdf(last))
    assert found[share, 5.0] == pytest.approx(multivariate_t(np.zeros(4), scatter, df=5).logpdf(last))


def test_the_scale_of_a_t_is_the_most_likely_one() -> None:
    values = np.random.default_rng(4).standard_t(4, (500, 1)) * 3.0
    scale = t_scale(values, 4.0, np.array([1e-9]))
    assert scale[0] == pytest.approx(t.fit(values[:, 0], f0=4, floc=0)[2], rel=1e-3)
    assert t_scale(np.zeros((50, 1)), 4.0, np.array([0.01])) == pytest.approx([0.01])


def test_a_better_candidate_must_be_clearly_better() -> None:
    rng = np.random.default_rng(0)
    simple = rng.standard_normal(1000)
    names = [
        pick("memory", {"none": simple, "ar": simple + gain + 0.1 * rng.standard_normal(1000)})[0]
        for gain in (0.0, 0.1)
    ]
    assert names == ["none", "ar"]
    chosen, rows = pick("level", {"fixed": simple, "local": simple + 1e-3}, margin=0.0)
    assert (chosen, [row.chosen for row in rows]) == ("local", [False, True])


def test_the_error_of_a_difference_counts_memory() -> None:
    slow = np.repeat(np.random.default_rng(1).standard_normal(20), 50)
    _, rows = pick("level", {"fixed": slow, "local": np.zeros(1000)})
    assert max(row.error for row in rows) == pytest.approx(slow[::50].std(ddof=1) / np.sqrt(20))
