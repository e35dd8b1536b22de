"""The covariance families of the paper's experiments, each as the most structured operator that fits.

All have unit variances, except `rbf` (1 + nugget) and the printed form of `spectral_mixture`.
"""

import math

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from eccaht.base.arrays import as_count, as_number, as_positive
from eccaht.base.randomness import rng_for
from eccaht.streams.covariance.ar1 import AR1, Circulant
from eccaht.streams.covariance.dense import Dense, Diagonal
from eccaht.streams.covariance.kronecker import BlockDiagonal, Kronecker
from eccaht.streams.covariance.low_rank import LowRankPlusDiagonal, SparsePrecision


def identity(K: int) -> Diagonal:
    """Independent streams of unit variance."""
    return Diagonal(np.ones(_streams(K, "identity(128)")))


def toeplitz(K: int, rho: float) -> AR1:
    """rho^|i-j|; a negative rho alternates in sign."""
    return AR1(_streams(K, "toeplitz(128, 0.8)"), rho)


def exponential(K: int, length_scale: float) -> AR1:
    """exp(-|i-j| / length_scale): toeplitz with rho = exp(-1 / length_scale)."""
    K = _streams(K, "exponential(128, 4.5)")
    return AR1(K, float(np.exp(-1.0 / as_positive(length_scale, "length_scale"))))


def equicorrelation(K: int, rho: float) -> LowRankPlusDiagonal:
    K, rho = _streams(K, "equicorrelation(128, 0.8)"), as_number(rho, "rho")
    if not (rho < 1 and (K == 1 or rho > -1 / (K - 1))):
        raise ValueError(f"equicorrelation of {K} streams needs {-1 / max(K - 1, 1):.4g} < rho < 1, not {rho!r}")
    return LowRankPlusDiagonal(np.ones((K, 1)), np.full(K, 1.0 - rho), [rho])


def block(K: int, rho: float, size: int = 16) -> BlockDiagonal:
    """Equicorrelated blocks of `size` streams; the last one is smaller where K is no multiple of it."""
    K, size = _streams(K, "block(128, 0.8, size=16)"), as_count(size, "size", least=1)
    whole, rest = divmod(K, size)
    blocks = [equicorrelation(size, rho)] * whole if whole else []
    return BlockDiagonal([*blocks, equicorrelation(rest, rho)] if rest else blocks)


def circulant(K: int, rho: float) -> Circulant:
    """rho^min(d, K-d) on a ring."""
    K = _streams(K, "circulant(128, 0.8)")
    d = np.arange(K)
    return Circulant(_correlation(rho) ** np.minimum(d, K - d))


def kronecker(rho: float, shape: tuple[int, int] = (16, 8)) -> Kronecker:
    """Equicorrelation of shape[0] crossed with toeplitz of shape[1], so that there are shape[0] * shape[1] streams."""
    given: tuple[object, ...] = (rho, shape)
    sizes = [int(x) for x in given if isinstance(x, int | np.integer) and x > 1]
    if sizes or np.shape(shape) != (2,):  # a number of streams where there is none to give
        rows, columns = _divided(sizes[0]) if sizes else (16, 8)
        like = f"families.kronecker(0.8, ({rows}, {columns})) for {rows * columns} streams"
        raise ValueError(f"kronecker needs rho and the shape of a grid, not {rho!r} and {shape!r}: call it as {like}")
    left, right = (as_count(side, "a side of the shape", least=1) for side in shape)
    return Kronecker(equicorrelation(left, rho), toeplitz(right, rho))


def rbf(K: int, length_scale: float | None = None, *, rho: float | None = None, nugget: float = 1e-6) -> Dense:
    """exp(-d^2 / (2 l^2)) + nugget I, with l = length_scale or K (1 - rho + 1e-5)."""
    K = _streams(K, "rbf(128, rho=0.8) or families.rbf(128, length_scale=25.6)")
    if (length_scale is None) == (rho is None):
        raise ValueError("rbf needs either length_scale or rho: call it as families.rbf(128, rho=0.8)")
    if rho is not None and not abs(as_number(rho, "rho")) <= 1:
        raise ValueError(f"rho must lie between -1 and 1, not {rho!r}")
    scale = K * (1.0 - as_number(rho, "rho") + 1e-5) if length_scale is None else length_scale
    scale = as_positive(scale, "length_scale")
    d = np.arange(K)
    S = np.exp(-0.5 * ((d[:, None] - d) / scale) ** 2)
    return Dense(S + as_number(nugget, "nugget") * np.eye(K))


def graph(K: int, rho: float, p: float = 0.05, seed: int = 0) -> SparsePrecision:
    """Random graph G(K, p) with adjacency A: precision I - a A, a = 0.95 rho / lambda_max(A), unit variances."""
    K, rho, p = _streams(K, "graph(128, 0.8)"), as_number(rho, "rho"), as_number(p, "p")
    if not 0 <= p <= 1:
        raise ValueError(f"p is a probability, not {p!r}")
    if not abs(rho) <= 1:
        raise ValueError(f"rho must lie between -1 and 1, not {rho!r}")
    A = _random_graph(K, p, rng_for(seed, "graph"))
    top = eigsh(A, k=1, which="LA", v0=np.ones(K), return_eigenvectors=False)[0] if A.nnz else 0.0
    coupling = 0.95 * rho / float(top) if top > 0 else 0.0
    precision = sp.eye_array(K, format="csc") - coupling * A
    scale = sp.diags_array(np.sqrt(SparsePrecision(precision).diagonal()))
    return SparsePrecision(scale @ precision @ scale)


def spectral_mixture(K: int, alpha: float, seed: int = 0, *, unit_variance: bool = False) -> LowRankPlusDiagonal:
    """(1 - alpha) I + alpha u u' with a random unit vector u, as printed or rescaled to unit variances."""
    K, alpha = _streams(K, "spectral_mixture(128, 0.97)"), as_number(alpha, "alpha")
    if not 0 <= alpha < 1:
        raise ValueError(f"alpha must lie in [0, 1), not {alpha!r}: at 1 the covariance is singular")
    u = rng_for(seed, "spectral-mixture").standard_normal(K)
    u /= np.linalg.norm(u)
    variances = (1.0 - alpha) + alpha * u**2 if unit_variance else np.ones(K)
    return LowRankPlusDiagonal((u / np.sqrt(variances))[:, None], (1.0 - alpha) / variances, [alpha])


def _streams(K: int, call: str) -> int:
    """The number of streams, which every family but kronecker takes first; call: an example that is right."""
    try:
        return as_count(K, "K", least=1)
    except ValueError as error:
        raise ValueError(f"{error}: the number of streams comes first, as in families.{call}") from None


def _correlation(rho: float) -> float:
    rho = as_number(rho, "rho")
    if not abs(rho) < 1:
        raise ValueError(f"rho must lie strictly between -1 and 1, not {rho!r}")
    return rho


def _divided(K: int) -> tuple[int, int]:
    """The most even shape of a grid of K streams, the larger number first."""
    columns = next(k for k in range(math.isqrt(K), 0, -1) if K % k == 0)
    return K // columns, columns


def _random_graph(K: int, p: float, rng: np.random.Generator) -> sp.csc_array:
    """Symmetric adjacency matrix of G(K, p): the number of edges first, then which of the pairs they are."""
    pairs = K * (K - 1) // 2
    edges = rng.choice(pairs, size=rng.binomial(pairs, p), replace=False, shuffle=False) if pairs else np.arange(0)
    row = ((1.0 + np.sqrt(1.0 + 8.0 * edges)) / 2.0).astype(np.int64)
    row -= row * (row - 1) // 2 > edges  # the square root may round up
    half = sp.coo_array((np.ones(edges.size), (row, edges - row * (row - 1) // 2)), shape=(K, K))
    return sp.csc_array(half + half.T)
