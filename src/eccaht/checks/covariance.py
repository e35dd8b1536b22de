"""Every operation of a covariance operator agrees with its dense matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from unittest import SkipTest

import numpy as np

from eccaht.base.arrays import Array
from eccaht.checks.suite import (
    Check,
    by_name,
    require,
    require_close,
    require_equal,
    require_parts,
    require_refused,
    run_all,
    single,
)
from eccaht.streams import Covariance, Dense, Problem, Simulator, identify, make_policy, pair_design, with_ridge

_LARGEST = 2000  # streams whose full matrix is formed
_DRAWS = 2000
_RIDGE = 0.3


def check_covariance(operator: Covariance, *, skip: Mapping[str, str] | None = None) -> dict[str, str]:
    """Check that an operator does what its dense matrix does, and works in a search and with a ridge.

    skip: checks to leave out, by name, with the reason. Returns the checks that did not apply, with the reason; the
    first property that does not hold raises CheckFailure. Use a small instance: its full matrix is formed.

    >>> from eccaht.streams.covariance import AR1
    >>> check_covariance(AR1(1, rho=0.5))
    {'search': 'a search needs at least two streams'}
    """
    return run_all(_CHECKS, skip, _small, operator)


def covariance_checks() -> Iterator[tuple[str, Check]]:
    """Pairs (name, check): check(operator) is one property, as in `pytest.mark.parametrize`."""
    return single(_CHECKS, _small)


_PARTS = ("size", "dense", "diagonal", "column", "matvec", "quad", "solve", "eigenvalues", "color", "sample")


def _small(operator: Covariance) -> tuple[Covariance]:
    require_parts(operator, _PARTS, "this is no covariance operator")
    K = operator.size
    whole = isinstance(K, int | np.integer) and not isinstance(K, bool) and K >= 1
    require(whole, f"size must be a whole number of at least 1, not {K!r}")
    if operator.size > _LARGEST:
        raise ValueError(f"the full matrix of {operator.size} streams is too large: check at most {_LARGEST} streams")
    return (operator,)


def _size(operator: Covariance) -> None:
    """`size` is the number of streams, and the shapes follow from it."""
    _require_shape(operator.dense(), operator, "dense()", 2)
    _require_shape(operator.diagonal(), operator, "diagonal()")
    _require_shape(operator.column(0), operator, "column(0)")


def _require_shape(found: Array, operator: Covariance, what: str, dimensions: int = 1) -> None:
    shape = (operator.size,) * dimensions
    require(np.shape(found) == shape, f"{what} has shape {np.shape(found)}, but size {operator.size} means {shape}")


def _dense(operator: Covariance) -> None:
    """dense() is symmetric and positive definite."""
    S = np.asarray(operator.dense(), dtype=np.float64)
    require(np.isfinite(S).all(), "dense() must be finite, but it holds NaN or infinite numbers")
    require_close(S, S.T, "dense() must be symmetric", atol=1e-12 * np.abs(S).max())
    smallest = float(np.linalg.eigvalsh(S)[0])
    require(smallest > 0.0, f"dense() must be positive definite, but its smallest eigenvalue is {smallest:.3g}")


def _diagonal(operator: Covariance) -> None:
    """diagonal() is that of the matrix; least_variances() is not above it."""
    variances = operator.dense().diagonal()
    require_close(operator.diagonal(), variances, "diagonal() differs from that of dense()")
    least = np.asarray(operator.least_variances())
    _require_shape(least, operator, "least_variances()")
    k = int((least - variances).argmax())
    low = least[k] <= variances[k] * (1 + 1e-9) and least.min() > 0.0
    require(low, f"least_variances() must be above 0 and not above the variances: {least[k]} for {variances[k]} at {k}")


def _column(operator: Covariance) -> None:
    """column(k), also counted from the end."""
    S = operator.dense()
    for k in range(-1, operator.size):
        require_close(operator.column(k), S[:, k], f"column({k}) differs from that of dense()")


def _matvec(operator: Covariance) -> None:
    """matvec of one vector and of several columns."""
    S, rng = operator.dense(), np.random.default_rng(0)
    for shape in ((operator.size,), (operator.size, 3)):
        c = rng.standard_normal(shape)
        require_close(operator.matvec(c), S @ c, f"matvec of shape {shape} differs from dense() @ c")


def _quad(operator: Covariance) -> None:
    """quad of full and of sparse weights."""
    S, rng = operator.dense(), np.random.default_rng(1)
    require(operator.quad(np.zeros(operator.size)) == 0.0, "quad of all zeros must be 0")
    for count in (1, 2, 5, operator.size):
        c, streams = np.zeros(operator.size), rng.permutation(operator.size)[:count]
        c[streams] = rng.standard_normal(streams.size)
        require_close(operator.quad(c), c @ S @ c, f"quad of {streams.size} nonzero weights differs from c'S c")


def _solve(operator: Covariance) -> None:
    """solve of one vector and of several columns."""
    S, rng = operator.dense(), np.random.default_rng(2)
    for shape in ((operator.size,), (operator.size, 3)):
        b = rng.standard_normal(shape)
        exact = np.linalg.solve(S, b)
        require_close(operator.solve(b), exact, f"solve of shape {shape} differs from S^-1 b", atol=_rounding(S))


def _inverse_diagonal(operator: Covariance) -> None:
    found, exact = operator.inverse_diagonal(), np.linalg.inv(operator.dense()).diagonal()
    require_close(found, exact, "inverse_diagonal() differs from that of the inverse of dense()")


def _solve_sparse(operator: Covariance) -> None:
    """solve_sparse is solve of a vector with few nonzeros."""
    S, rng = operator.dense(), np.random.default_rng(3)
    for count in range(1, min(4, operator.size) + 1):
        indices, values = rng.permutation(operator.size)[:count], rng.standard_normal(count)
        b = np.zeros(operator.size)
        b[indices] = values
        found, exact = operator.solve_sparse(indices, values), np.linalg.solve(S, b)
        require_close(found, exact, f"solve_sparse of {count} values differs from S^-1 b", atol=_rounding(S))


def _eigenvalues(operator: Covariance) -> None:
    exact = np.linalg.eigvalsh(operator.dense())
    _require_shape(operator.eigenvalues(), operator, "eigenvalues()")
    require_close(operator.eigenvalues(), exact, "eigenvalues() differ from those of dense()", atol=1e-9 * exact[-1])


def _color(operator: Covariance) -> None:
    """color turns white noise into noise of this covariance: A A' = S."""
    A = operator.color(np.eye(operator.size))
    require_close(A @ A.T, operator.dense(), "color(I) color(I)' differs from dense()")
    z = np.random.default_rng(4).standard_normal(operator.size)
    require_close(operator.color(z), A @ z, "color of one vector differs from that of columns")


def _sample(operator: Covariance) -> None:
    """Samples have the shapes asked for, follow the generator and have the covariance."""
    S = operator.dense()
    first, second = (operator.sample(np.random.default_rng(5), _DRAWS) for _ in range(2))
    require(first.shape == (_DRAWS, operator.size), f"sample(rng, {_DRAWS}) has shape {first.shape}")
    one = operator.sample(np.random.default_rng(5))
    require(one.shape == (operator.size,), f"sample(rng) has shape {one.shape}, expected ({operator.size},)")
    require_equal(first, second, "sample must draw from the generator alone: the same seed gave other numbers")
    error = np.sqrt((S**2 + np.outer(S.diagonal(), S.diagonal())) / _DRAWS)
    found = first.T @ first / _DRAWS
    require_close(found, S, f"the covariance of {_DRAWS} samples is beyond 6 standard errors", rtol=0.0, atol=6 * error)


def _inputs(operator: Covariance) -> None:
    """No operation changes what it is handed; no result is another's memory."""
    before = operator.dense().copy()
    for name in ("matvec", "solve", "color", "quad"):
        for columns in ((), (2,)) if name != "quad" else ((),):
            x = np.random.default_rng(6).standard_normal((operator.size, *columns))
            kept = x.copy()
            result = getattr(operator, name)(x)
            require_equal(x, kept, f"{name} changed its input")
            if isinstance(result, np.ndarray) and result.flags.writeable:
                result[...] = 0.0
    for array in (operator.diagonal(), operator.column(0), operator.eigenvalues()):
        if array.flags.writeable:
            array[...] = 0.0
    require_equal(operator.dense(), before, "writing into a result changed the operator: return copies or read-only")


def _shapes(operator: Covariance) -> None:
    """Vectors of another length are refused."""
    wrong = np.ones(operator.size + 1)
    for name in ("matvec", "solve", "color", "quad"):
        message = f"{name} must refuse a vector of {wrong.size} numbers for {operator.size} streams"
        require_refused(partial(getattr(operator, name), wrong), message)


def _parameters(operator: Covariance) -> None:
    """parameters() build the same operator again, as when it travels to other processes."""
    rebuild, arguments, *_ = operator.__reduce__()
    again = rebuild(*arguments)
    require(type(again) is type(operator), f"parameters() build a {type(again).__name__} again")
    require_equal(again.dense(), operator.dense(), "the operator built again from parameters() is another one")


def _search(operator: Covariance) -> None:
    """A pair design is that of the dense matrix, and a search finds a strong anomaly."""
    K = operator.size
    if K < 2:
        raise SkipTest("a search needs at least two streams")
    shift = 6.0 * np.sqrt(operator.diagonal())
    problem = Problem(operator, shift=shift, n_anomalies=1, budget=2.0 / float(shift.min()))
    exact = pair_design(problem.replace(covariance=Dense(operator.dense())), 0, K - 1).information
    found = pair_design(problem, 0, K - 1).information
    require_close(found, exact, "the information of a pair design differs from that with the dense matrix", rtol=1e-6)
    policy, truth = make_policy("ecc-aht", problem, stopping=None), K // 2
    decision = identify(policy, Simulator(problem, anomalies=[truth]).measure, 40).anomalies
    require_equal(decision, [truth], "ecc-aht does not find one anomaly of 6 standard deviations in 40 measurements")


def _ridge(operator: Covariance) -> None:
    """S + a I has the ridge on its diagonal, and its own operations agree."""
    a = _RIDGE * float(operator.diagonal().mean())
    try:
        ridged = with_ridge(operator, a)
    except ValueError as error:
        raise SkipTest(str(error)) from None
    expected = operator.dense() + a * np.eye(operator.size)
    require_close(ridged.dense(), expected, f"with a ridge of {a:.3g} dense() is not S + a I")
    for check in (_diagonal, _matvec, _quad, _solve, _eigenvalues, _color):
        check(ridged)


def _rounding(S: Array) -> float:
    """Errors of solutions that are no more than rounding."""
    return 1e-9 * max(1.0, float(np.linalg.norm(np.linalg.inv(S), 2)))


_CHECKS = by_name(
    *(_size, _dense, _diagonal, _column, _matvec, _quad, _solve, _solve_sparse, _inverse_diagonal, _eigenvalues),
    *(_color, _sample, _inputs, _shapes, _parameters, _search, _ridge),
)
