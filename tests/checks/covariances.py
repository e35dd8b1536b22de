"""One example or more of every covariance operator; the suites run over all of them."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from eccaht import families
from eccaht.streams.covariance import (
    AR1,
    BlockDiagonal,
    Circulant,
    Covariance,
    Dense,
    Diagonal,
    Kronecker,
    LowRankPlusDiagonal,
    SparsePrecision,
    with_ridge,
)


def wishart(K: int, seed: int = 0, extra: int = 5) -> Dense:
    X = np.random.default_rng(seed).standard_normal((K, K + extra))
    return Dense(X @ X.T / K)


def factor_model(K: int, seed: int = 0) -> LowRankPlusDiagonal:
    rng = np.random.default_rng(seed)
    return LowRankPlusDiagonal(rng.standard_normal((K, 2)), rng.uniform(0.1, 2.0, K))


def grid(side: int) -> SparsePrecision:
    line = sp.diags_array([-np.ones(side - 1), 2.5 * np.ones(side), -np.ones(side - 1)], offsets=[-1, 0, 1])
    return SparsePrecision(sp.kronsum(line, line))


def ridged(build: Callable[[], Covariance], a: float) -> Callable[[], Covariance]:
    return lambda: with_ridge(build(), a)


PLAIN: dict[str, Callable[[], Covariance]] = {
    "dense": lambda: wishart(30),
    "diagonal": lambda: Diagonal(np.linspace(0.1, 4.0, 17)),
    "ar1": lambda: AR1(40, 0.8, variance=2.5),
    "ar1-negative": lambda: AR1(33, -0.7),
    "ar1-long-memory": lambda: AR1(60, 0.995),
    "ar1-two": lambda: AR1(2, 0.3),
    "ar1-one": lambda: AR1(1, 0.3, variance=3.0),
    "circulant-even": lambda: families.circulant(24, 0.7),
    "circulant-odd": lambda: families.circulant(25, 0.7),
    "circulant-two": lambda: Circulant([2.0, 0.5]),
    "block": lambda: families.block(40, 0.6, size=12),
    "block-mixed": lambda: BlockDiagonal([AR1(5, 0.5), wishart(4), AR1(5, 0.5), Diagonal([2.0, 3.0])]),
    "kronecker": lambda: families.kronecker(0.8, shape=(6, 5)),
    "kronecker-nested": lambda: Kronecker(wishart(3), Kronecker(AR1(4, 0.4), Diagonal([1.0, 2.0]))),
    "kronecker-one": lambda: Kronecker([[2.0]], AR1(7, 0.9)),
    "equicorrelation": lambda: families.equicorrelation(30, 0.8),
    "equicorrelation-negative": lambda: families.equicorrelation(10, -0.1),
    "factor-model": lambda: factor_model(35),
    "factor-full-rank": lambda: LowRankPlusDiagonal(np.random.default_rng(1).standard_normal((4, 6)), np.ones(4)),
    "factor-signed": lambda: LowRankPlusDiagonal(np.eye(8)[:, :2], np.linspace(1.0, 2.0, 8), [-0.5, 3.0]),
    "factor-repeated-diagonal": lambda: LowRankPlusDiagonal(np.ones((9, 1)), [1.0, 1, 1, 2, 2, 2, 3, 3, 3]),
    "mixture": lambda: families.spectral_mixture(20, 0.97, seed=3),
    "mixture-unit": lambda: families.spectral_mixture(20, 0.97, seed=3, unit_variance=True),
    "graph": lambda: families.graph(40, 0.8, p=0.1),
    "grid": lambda: grid(6),
    "rbf": lambda: families.rbf(20, length_scale=1.5),
    "identity": lambda: families.identity(12),
}

EXAMPLES: dict[str, Callable[[], Covariance]] = {
    **PLAIN,
    **{f"{name}-ridged": ridged(build, 0.3) for name, build in PLAIN.items()},
    **{f"{name}-faint-ridge": ridged(PLAIN[name], 1e-8) for name in ("ar1-long-memory", "kronecker-nested", "grid")},
    **{f"{name}-strong-ridge": ridged(PLAIN[name], 50.0) for name in ("ar1-long-memory", "kronecker-nested", "grid")},
    "ridged-twice": ridged(ridged(PLAIN["ar1-negative"], 0.2), 0.5),
    "ridged-independent": ridged(lambda: AR1(9, 0.0), 0.5),
    "ridged-parts": lambda: BlockDiagonal([Kronecker(with_ridge(AR1(4, 0.5), 0.1), with_ridge(grid(2), 0.2))] * 2),
    "ridged-stretches": ridged(lambda: AR1(300, 0.9), 0.01),
}
