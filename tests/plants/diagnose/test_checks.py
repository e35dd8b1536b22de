"""Each check fires on its own defect, names the sensors, and stays quiet on clean data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.plants.diagnose import Check, diagnose
from eccaht.plants.diagnose.checks import pair_variances
from eccaht.plants.diagnose.view import ModelView
from eccaht.plants.model.model import Model
from tests.plants.diagnose.worlds import SENSORS, WINDOWS, ar1, model_of, truth, white


def checks(model: Model) -> dict[str, Check]:
    return {check.name: check for check in diagnose(model).checks}


@pytest.mark.parametrize("seed", range(12))
def test_clean_data_pass_every_check(seed: int) -> None:
    results = diagnose(model_of(white(seed=seed))).checks
    assert {check.name: check.verdict for check in results if check.verdict != "ok"} == {}
    assert all(check.action == "" and check.sensors == () for check in results)
    assert all(check.number is not None and np.isfinite(check.number) and check.meaning for check in results)


def test_short_clean_histories_are_hardly_ever_suspected() -> None:
    """Counted once over 200 seeds: 1 caution at 600 windows of 12 sensors, 1 at 150 windows of 8."""
    for windows, size in ((600, 12), (150, 8)):
        verdicts = [diagnose(model_of(white(windows, size, seed))).verdict for seed in range(20)]
        assert verdicts.count("ok") >= 19


@pytest.mark.parametrize("estimator", ["empirical", "oas", "graphical-lasso", "min-cov-det", "factor"])
def test_clean_data_pass_with_every_estimator(estimator: str) -> None:
    assert diagnose(model_of(white(), estimator=estimator)).verdict == "ok"


def with_columns(x: Array, columns: dict[int, Array]) -> Array:
    changed = x.copy()
    for k, column in columns.items():
        changed[:, k] = column
    return changed


def heavy(x: Array, rng: np.random.Generator) -> Array:
    return with_columns(x, {4: rng.standard_t(3, len(x)), 9: rng.exponential(size=len(x))})


def two_levels(x: Array, rng: np.random.Generator) -> Array:
    return with_columns(x, {4: np.sign(rng.standard_normal(len(x))) + 0.2 * x[:, 4]})


def copied(x: Array, rng: np.random.Generator) -> Array:
    return with_columns(x, {7: -x[:, 3] + 0.05 * x[:, 3].std() * rng.standard_normal(len(x))})


def drifting(x: Array, rng: np.random.Generator) -> Array:  # noqa: ARG001
    return with_columns(x, {5: x[:, 5] + np.linspace(0.0, 3.0 * x[:, 5].std(), len(x))})


def stepping(x: Array, rng: np.random.Generator) -> Array:  # noqa: ARG001
    return with_columns(x, {5: x[:, 5] + 1.5 * x[:, 5].std() * (np.arange(len(x)) > 0.7 * len(x))})


def stuck(x: Array, rng: np.random.Generator) -> Array:
    place = int(rng.integers(len(x) // 2))
    frozen = x[:, 6].copy()
    frozen[place : place + len(x) // 8] = x[:, 6].mean()
    return with_columns(x, {6: frozen})


def loosened(x: Array, rng: np.random.Generator) -> Array:
    """The variances stay, the correlations weaken from the middle on."""
    S = np.cov(x, rowvar=False)
    half = len(x) // 2
    other = rng.standard_normal((half, len(S))) @ np.linalg.cholesky(0.75 * S + 0.25 * np.diag(S.diagonal())).T
    return np.vstack([x[:half], other])


DEFECTS: list[tuple[str, Callable[[Array, np.random.Generator], Array], set[str]]] = [
    ("normal readings", heavy, {"S04", "S09"}),
    ("normal readings", two_levels, {"S04"}),
    ("near-duplicate sensors", copied, {"S07"}),
    ("drift", drifting, {"S05"}),
    ("drift", stepping, {"S05"}),
    ("stuck sensors", stuck, {"S06"}),
]


@pytest.mark.parametrize(("name", "defect", "sensors"), DEFECTS, ids=lambda x: getattr(x, "__name__", None))
def test_a_defect_is_found_and_named_by_its_own_check_alone(
    name: str, defect: Callable[[Array, np.random.Generator], Array], sensors: set[str]
) -> None:
    for seed in range(4):
        results = checks(model_of(defect(white(seed=seed), rng_for(seed, "defect"))))
        assert results[name].verdict == "caution"
        assert set(results[name].sensors) == sensors
        assert f"`--exclude {','.join(results[name].sensors)}`" in results[name].action
        assert {check.name for check in results.values() if check.verdict != "ok"} == {name}


def test_autocorrelation_is_found_with_the_window_that_is_long_enough() -> None:
    for seed in range(4):
        results = checks(model_of(ar1(white(20_200, 8, seed=seed), 0.6)))
        found = results["independent windows"]
        assert found.verdict == "not fit"
        assert found.number == pytest.approx(4.0, rel=0.1)  # (1 + 0.6) / (1 - 0.6)
        # 10 have an integrated time of 1.23 of their own, 5 of 1.53
        assert "`--window 10min`" in found.action or "`--window 15min`" in found.action
        assert results["drift"].verdict == results["stable covariance"].verdict == "ok"


def test_the_window_it_suggests_is_long_enough() -> None:
    x = ar1(white(100_200, 6, seed=1), 0.6)
    joined = x[: len(x) // 10 * 10].reshape(-1, 10, 6).mean(axis=1)
    assert checks(model_of(joined))["independent windows"].verdict == "ok"
    five = x[: len(x) // 5 * 5].reshape(-1, 5, 6).mean(axis=1)
    assert checks(model_of(five))["independent windows"].verdict == "caution"


def test_a_daily_cycle_in_every_sensor_is_not_fit() -> None:
    x = white()
    cycle = 2.5 * np.sin(np.linspace(0.0, 6 * np.pi, len(x)))[:, None] * x.std(axis=0)
    assert checks(model_of(x + cycle))["drift"].verdict == "not fit"


def test_a_change_of_covariance_is_found_where_it_matters_and_only_there() -> None:
    for seed in range(3):
        x = white(seed=seed)
        assert checks(model_of(loosened(x, rng_for(seed, "other"))))["stable covariance"].verdict == "caution"
        louder = np.vstack([x[: len(x) // 2], 2.5 * x[len(x) // 2 :]])
        found = checks(model_of(louder))["stable covariance"]
        assert found.verdict == "not fit"
        assert found.number == pytest.approx(2.5**2, rel=0.2)
        # a common cause of all sensors grows fourfold: measurements that separate sensors cancel it anyway
        common = 1.5 * rng_for(seed, "common").standard_normal((len(x), 1))
        common[len(x) // 2 :] *= 2.0
        assert checks(model_of(x + common))["stable covariance"].verdict == "ok"


def test_pair_variances_are_those_of_the_designs() -> None:
    seen = ModelView(model_of(white()))
    first, second = pair_variances(seen)
    contrast = np.zeros(SENSORS)
    contrast[[2, 11]] = 1.0, -1.0
    c = seen.model.covariance.solve(contrast)
    S1, S2 = seen.history.half_covariances
    assert first[2, 11] == pytest.approx(c @ S1 @ c)
    assert second[11, 2] == pytest.approx(c @ S2 @ c)


def test_few_windows_are_reported() -> None:
    assert checks(model_of(white(150, 24)))["enough windows"].verdict == "caution"
    found = checks(model_of(white(60, 24)))["enough windows"]
    assert found.verdict == "not fit"
    assert found.number == pytest.approx(60 / 24, rel=0.1)
    assert "at least 4 times as long" in found.action
    assert "at most 5 sensors" in found.action


def test_a_hidden_sum_is_found_by_the_condition_number() -> None:
    x = white()
    x[:, 10] = x[:, 2] - x[:, 20] + 1e-4 * x[:, 10]
    results = checks(model_of(x, estimator="empirical"))
    assert results["condition number"].verdict == "caution"
    assert set(results["condition number"].sensors) <= {"S02", "S10", "S20"}
    assert results["near-duplicate sensors"].verdict == "ok"
    S = model_of(x, estimator="empirical").covariance.dense()
    root = np.sqrt(S.diagonal())
    assert results["condition number"].number == pytest.approx(np.linalg.cond(S / np.outer(root, root)), rel=1e-6)


def test_an_exact_copy_is_not_fit_also_where_shrinkage_hides_it() -> None:
    x = white()
    x[:, 7] = x[:, 3]
    found = checks(model_of(x))["near-duplicate sensors"]
    assert found.verdict == "not fit"
    assert found.sensors == ("S07",)


def test_a_single_common_cause_has_a_low_rank() -> None:
    rng = rng_for(0, "rank")
    x = rng.standard_normal((WINDOWS, 1)) + 0.05 * rng.standard_normal((WINDOWS, 40))
    found = checks(model_of(x))["effective rank"]
    assert found.verdict == "caution"
    assert found.number is not None
    assert 1.0 < found.number < 2.0
    assert checks(model_of(white(WINDOWS, 40)))["effective rank"].verdict == "ok"


def test_statuses_may_stand_still() -> None:
    x = white()
    x[:, 6] = np.arange(len(x)) > len(x) // 2
    model = model_of(x)
    assert checks(model)["stuck sensors"].verdict == "not fit"
    columns = tuple(replace(c, kind="status") if c.name == "S06" else c for c in model.columns)
    results = checks(replace(model, columns=columns))
    assert results["stuck sensors"].verdict == "ok"
    assert "S06 (a status)" in results["normal readings"].meaning


@pytest.mark.parametrize(("share", "verdict"), [(0.04, "ok"), (0.2, "caution"), (0.6, "not fit")])
def test_imputed_readings_are_reported(share: float, verdict: str) -> None:
    model = model_of(white())
    columns = tuple(replace(c, imputed=share) if c.name == "S08" else c for c in model.columns)
    found = checks(replace(model, columns=columns))["imputed readings"]
    assert (found.verdict, found.number) == (verdict, share)
    assert found.sensors == (() if verdict == "ok" else ("S08",))


def test_without_halves_the_stability_is_unknown_not_ok() -> None:
    model = model_of(white(600, 501))
    found = checks(model)["stable covariance"]
    assert (found.number, found.verdict) == (None, "caution")


@pytest.mark.parametrize(("windows", "size"), [(12, 2), (40, 1), (25, 3)])
def test_tiny_models_are_checked_too(windows: int, size: int) -> None:
    x = rng_for(0, "tiny").standard_normal((windows, size))
    assert len(diagnose(model_of(x)).checks) == 10


def test_the_effective_rank_is_of_the_correlations() -> None:
    """Units do not matter: sensors of very different variances count alike."""
    S = truth(8)
    root = np.sqrt(S.diagonal())
    eigenvalues = np.linalg.eigvalsh(S / np.outer(root, root)) / 8
    expected = np.exp(-(eigenvalues * np.log(eigenvalues)).sum())
    x = white(40_000, 8, covariance=S) * np.geomspace(0.1, 10.0, 8)
    assert checks(model_of(x))["effective rank"].number == pytest.approx(expected, rel=0.02)
