"""Mean and covariance of the scaled windows, by name.

`empirical` with a ridge of 1e-6 is the paper's. The others (scikit-learn's) work on windows that were standardised to
unit variance and are scaled back: robust scaling leaves variances that differ by orders of magnitude between quiet
and jumpy sensors, and shrinking towards one common variance would hide the quiet ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from eccaht.base.arrays import Array, as_number
from eccaht.base.presentation.text import unknown

if TYPE_CHECKING:
    from eccaht.streams import Covariance, Dense

PAPER_RIDGE = 1e-6
FEWEST_WINDOWS = 10
_PACKAGES = {"empirical": "numpy", "factor": "sklearn.decomposition"}
LEAST_NOISE = 1e-6  # share of its variance that a sensor keeps for itself in a factor model: duplicates would keep none


def estimate(values: Array, estimator: str = "ledoit-wolf", ridge: float | None = None) -> tuple[Array, Covariance]:
    """Return mean and covariance of windows, shape (T, K), without gaps; `ridge` is added to the diagonal."""
    check_estimator(estimator)
    ridge = default_ridge(estimator, ridge)
    T, K = values.shape
    needed = max(FEWEST_WINDOWS, _NEEDED[estimator](K) if estimator in _NEEDED else 0)
    if needed > T:
        raise ValueError(
            f"{T} windows are too few for {estimator} with {K} sensors, which needs {needed}: "
            "give a longer history, shorter windows, or another estimator"
        )
    mean = values.mean(axis=0)
    spread = values.std(axis=0)
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        raise ValueError(f"the windows of sensor {int(np.argmin(spread > 0))} do not vary: leave it out")
    return mean, ESTIMATORS[estimator](values, mean, spread, ridge)


def preload(estimator: str) -> None:
    """Import what the estimator needs, which takes about a second that reading the files can hide."""
    with suppress(ImportError):  # `estimate` will raise it
        import_module(_PACKAGES.get(estimator, "sklearn.covariance"))


def check_estimator(name: str) -> None:
    """Refuse an unknown name, with the nearest known one."""
    if name not in ESTIMATORS:
        raise unknown(name, ESTIMATORS, "estimator")


def default_ridge(estimator: str, ridge: float | None) -> float:
    """The ridge that is added: the paper's for `empirical`, none for the others, unless one is given."""
    if ridge is None:
        return PAPER_RIDGE if estimator == "empirical" else 0.0
    if as_number(ridge, "ridge") < 0:
        raise ValueError(f"ridge must not be negative, not {ridge!r}")
    return float(ridge)


def _empirical(values: Array, mean: Array, spread: Array, ridge: float) -> Covariance:  # noqa: ARG001
    return _dense(np.cov(values, rowvar=False).reshape(mean.size, mean.size), ridge)


def _scikit(values: Array, mean: Array, spread: Array, ridge: float, *, name: str, **options: Any) -> Covariance:
    """An estimator of scikit-learn, on standardised windows."""
    build = getattr(import_module("sklearn.covariance"), name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks below judge the numbers that they are about
        fitted = build(store_precision=False, **options).fit((values - mean) / spread)
    return _dense(fitted.covariance_ * np.outer(spread, spread), ridge)


def _graphical_lasso(values: Array, mean: Array, spread: Array, ridge: float) -> Covariance:
    """The penalty is the size of chance correlations between independent sensors.

    Here the ridge is added before, to the correlations: without one the solver fails on near-duplicate sensors.
    """
    T, K = values.shape
    standard = (values - mean) / spread
    correlations = standard.T @ standard / T
    penalty = min(2.0 * np.sqrt(np.log(max(K, 2)) / T), 0.9)
    solution = _sparse(correlations, penalty, ridge)
    if solution is None:
        enough = (trial for trial in (1e-4, 1e-3, 1e-2, 0.1) if trial > ridge)
        mends = next((trial for trial in enough if _sparse(correlations, penalty, trial) is not None), None)
        raise ValueError(
            "graphical-lasso does not converge on this history: "
            + (f"a ridge of {mends:g} mends it" if mends else "remove duplicate sensors")
            + ", or use another estimator"
        )
    return _dense(solution * np.outer(spread, spread), 0.0)


def _sparse(correlations: Array, penalty: float, ridge: float) -> Array | None:
    """The solution, None if the solver fails; its inner tolerance must be fine or it fails where streams are alike."""
    from sklearn.covariance import graphical_lasso
    from sklearn.exceptions import ConvergenceWarning

    matrix = correlations + ridge * np.eye(len(correlations))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", "graphical_lasso", ConvergenceWarning)
        try:
            solution: Array = graphical_lasso(matrix, penalty, max_iter=200, tol=1e-3, enet_tol=1e-7)[0]
        except (ConvergenceWarning, FloatingPointError, np.linalg.LinAlgError):
            return None
    return solution


def _factor(values: Array, mean: Array, spread: Array, ridge: float) -> Covariance:
    """A few common causes plus noise of each sensor, kept in this form; as many as the BIC asks for."""
    from eccaht.streams import LowRankPlusDiagonal

    standard = (values - mean) / spread
    loadings, noise = _factors(standard.T @ standard / len(values), len(values))
    try:
        return LowRankPlusDiagonal(loadings * spread[:, None], noise * spread**2 + ridge)
    except ValueError as error:
        raise ValueError(f"factor gives no usable covariance: {error}") from None


def _factors(correlations: Array, windows: int) -> tuple[Array, Array]:
    """Loadings and noise of the number of factors that minimises the BIC; the search starts at the clear ones."""
    from sklearn.decomposition import FactorAnalysis

    K = len(correlations)
    eigenvalues, vectors = np.linalg.eigh(correlations)
    root = np.sqrt(np.maximum(eigenvalues, 0.0)) * vectors * np.sqrt(K)
    same = np.concatenate([root.T, -root.T])  # 2 K rows with exactly these correlations: all that the fit sees
    clear = int((eigenvalues > (1.0 + np.sqrt(K / windows)) ** 2).sum())  # above the edge of pure noise
    best: tuple[float, Any] | None = None
    for number in range(max(1, min(clear, K // 2)), max(K // 2, 1) + 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit cut short is still a fit: the BIC judges it
            fitted = FactorAnalysis(number, svd_method="lapack", max_iter=3000, tol=1e-4).fit(same)
        parameters = K * number - number * (number - 1) / 2 + K
        bic = -2.0 * windows * float(fitted.score(same)) + parameters * np.log(windows)
        if best is not None and bic >= best[0]:
            break
        best = (bic, fitted)
    assert best is not None
    return best[1].components_.T, np.maximum(best[1].noise_variance_, LEAST_NOISE)


def _dense(matrix: Array, ridge: float) -> Dense:
    """Add the ridge; a matrix that is not positive definite is refused with the ridge that would mend it."""
    from eccaht.streams import Dense

    return Dense(0.5 * (matrix + matrix.T) + ridge * np.eye(len(matrix)))


ESTIMATORS: dict[str, Callable[[Array, Array, Array, float], Covariance]] = {
    "ledoit-wolf": partial(_scikit, name="LedoitWolf", assume_centered=True),
    "empirical": _empirical,
    "oas": partial(_scikit, name="OAS", assume_centered=True),
    "graphical-lasso": _graphical_lasso,
    "min-cov-det": partial(_scikit, name="MinCovDet", random_state=0),
    "factor": _factor,
}
_NEEDED: dict[str, Callable[[int], int]] = {"empirical": lambda K: K + 1, "min-cov-det": lambda K: 2 * K + 2}
