"""Every operation of a covariance operator agrees with its dense matrix."""

from collections.abc import Mapping

import numpy as np

from eccaht.base.arrays import Array
from eccaht.checks.suite import by_name, require, require_close, require_equal, require_refused, run_all
from eccaht.streams import Covariance

_LARGEST = 2000  # streams whose full matrix is formed
_DRAWS = 2000


def check_covariance(operator: Covariance, *, skip: Mapping[str, str] | None = None) -> dict[str, str]:
    """Check that an operator does what its dense matrix does.

    skip: checks to leave out, by name, with the reason. Use a small instance: its full matrix is formed.

    >>> from eccaht.streams.covariance import AR1
    >>> check_covariance(AR1(1, rho=0.5))
    {}
    """
    if operator.size > _LARGEST:
        raise ValueError(f"the full matrix of {operator.size} streams is too large: check at most {_LARGEST} streams")
    return run_all(CHECKS, skip, operator)


def _dense(operator: Covariance) -> None:
    """dense() is symmetric and positive definite, of as many streams as `size` says."""
    S, shape = np.asarray(operator.dense(), dtype=np.float64), (operator.size, operator.size)
    require(S.shape == shape, f"dense() has shape {S.shape}, but size {operator.size} means {shape}")
    require_close(S, S.T, "dense() must be finite and symmetric", scale=1e-3 * float(np.abs(S).max()))
    smallest = float(np.linalg.eigvalsh(S)[0])
    require(smallest > 0.0, f"dense() must be positive definite, but its smallest eigenvalue is {smallest:.3g}")


def _diagonal(operator: Covariance) -> None:
    """diagonal() is that of the matrix; least_variances() is not above it."""
    variances = operator.dense().diagonal()
    require_close(operator.diagonal(), variances, "diagonal() differs from that of dense()")
    least = np.asarray(operator.least_variances())
    below = least.shape == variances.shape and ((least > 0.0) & (least <= variances * (1 + 1e-9))).all()
    require(below, "least_variances() must be above 0 and not above the variances")


def _column(operator: Covariance) -> None:
    """column(k), also counted from the end."""
    S = operator.dense()
    for k in range(-1, operator.size):
        require_close(operator.column(k), S[:, k], f"column({k}) differs from that of dense()")


def _matvec(operator: Covariance) -> None:
    """matvec of one vector and of several columns."""
    for c in _vectors(operator):
        require_close(operator.matvec(c), operator.dense() @ c, f"matvec of shape {c.shape} differs from dense() @ c")


def _quad(operator: Covariance) -> None:
    """quad of full and of sparse weights."""
    S, rng = operator.dense(), np.random.default_rng(1)
    for count in (0, 1, 2, 5, operator.size):
        c, streams = np.zeros(operator.size), rng.permutation(operator.size)[:count]
        c[streams] = rng.standard_normal(streams.size)
        require_close(operator.quad(c), c @ S @ c, f"quad of {streams.size} nonzero weights differs from c'S c")


def _solve(operator: Covariance) -> None:
    """solve of one vector, of several columns and of few nonzeros; the diagonal of the inverse."""
    S = operator.dense()
    inverse = np.linalg.inv(S)
    scale = max(1.0, float(np.linalg.norm(inverse, 2)))  # larger errors are more than rounding
    for b in _vectors(operator):
        exact = np.linalg.solve(S, b)
        require_close(operator.solve(b), exact, f"solve of shape {b.shape} differs from S^-1 b", scale=scale)
    few = np.random.default_rng(3).permutation(operator.size)[:4]
    for count in range(1, few.size + 1):
        b = np.zeros(operator.size)
        b[few[:count]] = np.arange(1.0, count + 1.0)
        found, exact = operator.solve_sparse(few[:count], b[few[:count]]), np.linalg.solve(S, b)
        require_close(found, exact, f"solve_sparse of {count} values differs from S^-1 b", scale=scale)


def _eigenvalues(operator: Covariance) -> None:
    exact = np.linalg.eigvalsh(operator.dense())
    require_close(operator.eigenvalues(), exact, "eigenvalues() differ from those of dense()", scale=float(exact[-1]))


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
    one = operator.sample(np.random.default_rng(5))
    shapes = first.shape == (_DRAWS, operator.size) and one.shape == (operator.size,)
    require(shapes, f"sample(rng) has shape {one.shape}, sample(rng, {_DRAWS}) has shape {first.shape}")
    require_equal(first, second, "sample must draw from the generator alone: the same seed gave other numbers")
    error = np.sqrt((S**2 + np.outer(S.diagonal(), S.diagonal())) / _DRAWS)
    beyond = np.abs(first.T @ first / _DRAWS - S) / error
    require(beyond.max() <= 6.0, f"the covariance of {_DRAWS} samples is {beyond.max():.3g} standard errors off")


def _inputs(operator: Covariance) -> None:
    """No operation changes what it is handed; no result is another's memory; other lengths are refused."""
    before = operator.dense().copy()
    for name in ("matvec", "solve", "color", "quad"):
        operation = getattr(operator, name)
        for x in _vectors(operator)[: 1 if name == "quad" else 2]:
            kept = x.copy()
            _overwrite(operation(x))
            require_equal(x, kept, f"{name} changed its input")
        message = f"{name} must refuse a vector of {operator.size + 1} numbers for {operator.size} streams"
        require_refused(operation, np.ones(operator.size + 1), message=message)
    for array in (operator.diagonal(), operator.column(0), operator.eigenvalues()):
        _overwrite(array)
    require_equal(operator.dense(), before, "writing into a result changed the operator: return copies or read-only")


def _parameters(operator: Covariance) -> None:
    """parameters() build the same operator again, as when it travels to other processes."""
    rebuild, arguments, *_ = operator.__reduce__()
    again = rebuild(*arguments)
    require(type(again) is type(operator), f"parameters() build a {type(again).__name__} again")
    require_equal(again.dense(), operator.dense(), "the operator built again from parameters() is another one")


def _vectors(operator: Covariance) -> list[Array]:
    """One vector, and several as columns."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(operator.size), rng.standard_normal((operator.size, 3))]


def _overwrite(result: object) -> None:
    if isinstance(result, np.ndarray) and result.flags.writeable:
        result[...] = 0.0


CHECKS = by_name(
    *(_dense, _diagonal, _column, _matvec, _quad, _solve, _eigenvalues, _color, _sample, _inputs, _parameters)
)
