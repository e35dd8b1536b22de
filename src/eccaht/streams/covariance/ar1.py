"""Streams on a line or a ring: the toeplitz, exponential and circulant families.

On a line S_ij = variance * rho^|i-j| is the covariance of x_k = rho x_(k-1) + noise. Its whitening matrix G
(G S G' = I) is bidiagonal, so products with S are two first-order recursions, its inverse G'G is tridiagonal,
and c'S c is a sum of squares, exact even where the noise nearly cancels. On a ring S is a circular convolution.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cholesky_banded, eigvalsh_tridiagonal, lapack

from eccaht.base.arrays import (
    Array,
    Index,
    as_count,
    as_floats,
    as_number,
    as_positive,
    check_entries,
    check_rows,
    frozen,
    support_of,
)
from eccaht.streams.covariance.base import Covariance, check_spectrum

_SHORT = 24  # up to here a recursion over the nonzero entries in Python beats one over all K in LAPACK
_NEGLIGIBLE = 1e-20  # share of a solution that may be left out


class AR1(Covariance):
    """variance * rho^|i-j|, with -1 < rho < 1.

    >>> AR1(3, rho=0.5).solve(np.array([1.0, 0.0, 0.0])).round(3)
    array([ 1.333, -0.667,  0.   ])
    """

    exact_inverse = True

    def __init__(self, size: int, rho: float, variance: float = 1.0) -> None:
        self.size = as_count(size, "size", least=1)
        self.rho = as_number(rho, "rho")
        if not -1 < self.rho < 1:
            raise ValueError(f"rho must lie strictly between -1 and 1, not {rho!r}")
        self.variance = as_positive(variance, "variance")
        self._innovation = 1.0 - self.rho**2  # variance of one innovation, in units of `variance`
        if self._innovation <= 1e-14:
            raise ValueError(f"rho = {rho!r} is too close to {np.sign(self.rho):+.0f} for floating point")

    def diagonal(self) -> Array:
        return np.broadcast_to(np.float64(self.variance), (self.size,))

    @cached_property
    def _decay(self) -> Array:
        """variance * rho^|d| for d = -(K-1) .. K-1; each column is a window of it."""
        right = self.variance * self.rho ** np.arange(self.size)
        return frozen(np.concatenate([right[:0:-1], right]))

    def column(self, k: int) -> Array:
        k = range(self.size)[k]
        return self._decay[self.size - 1 - k : 2 * self.size - 1 - k]

    @cached_property
    def _bidiagonal(self) -> Array:
        """Rows of x_k - rho x_(k-1), as a lower band matrix for LAPACK."""
        return np.array([np.ones(self.size), np.full(self.size, -self.rho)], order="F")

    def _recurse(self, b: Array, *, backward: bool) -> Array:
        """Solve u_k - rho u_(k-1) = b_k, or the same running from the end."""
        check_rows(b, self.size)
        trans = "T" if backward else "N"
        u: Array = lapack.dtbtrs(self._bidiagonal, b.reshape(self.size, -1), uplo="L", trans=trans)[0]
        return u.reshape(b.shape)

    def _innovations(self) -> Array:
        scale = np.full(self.size, self.variance * self._innovation)
        scale[0] = self.variance
        return scale

    def matvec(self, c: Array) -> Array:
        """A recursion from the end, a scaling, and a recursion from the start."""
        u = self._recurse(c, backward=True)
        return self._recurse((self._innovations() * u.T).T, backward=False)

    def quad(self, c: Array) -> float:
        """Sum over k of innovation variance times (sum_{l >= k} rho^(l-k) c_l)^2."""
        check_rows(c, self.size)
        support = support_of(c)
        if support.size > self.size // 2:
            u = self._recurse(c, backward=True)
            return self.variance * float(u[0] ** 2 + self._innovation * (u[1:] @ u[1:]))
        if support.size > _SHORT:  # the chain seen at its nonzeros only: over all K it would decay into denormals
            decays = self.rho ** np.diff(support)
            band = np.ones((2, support.size), order="F")
            band[1, :-1] = -decays
            u = lapack.dtbtrs(band, c[support, None], uplo="L", trans="T")[0].ravel()
            return self.variance * float(u[0] ** 2 + (1.0 - decays**2) @ u[1:] ** 2)
        if support.size == 0:
            return 0.0
        places, weights = support.tolist(), c[support].tolist()
        rho, total, carried, right = self.rho, 0.0, 0.0, places[-1]
        for left, weight in zip(reversed(places), reversed(weights), strict=True):
            decay = rho ** (right - left)
            total += (1.0 - decay * decay) * carried * carried
            carried, right = weight + decay * carried, left
        return self.variance * (total + carried * carried)

    def solve(self, b: Array) -> Array:
        check_rows(b, self.size)
        if self.size == 1:
            return b / self.variance
        x = (1.0 + self.rho**2) * b
        x[[0, -1]] = b[[0, -1]]
        x[1:] -= self.rho * b[:-1]
        x[:-1] -= self.rho * b[1:]
        x /= self.variance * self._innovation
        return x

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """At most three nonzero entries for each nonzero of the right-hand side."""
        x = np.zeros(self.size)
        if self.size == 1:
            x[indices] = values / self.variance
            return x
        last, unit = self.size - 1, 1.0 / (self.variance * self._innovation)
        for k, value in zip(indices.tolist(), values.tolist(), strict=True):
            scaled = value * unit
            if 0 < k < last:
                x[k] += (1.0 + self.rho**2) * scaled
            else:
                x[k] += scaled
            if k > 0:
                x[k - 1] -= self.rho * scaled
            if k < last:
                x[k + 1] -= self.rho * scaled
        return x

    def eigenvalues(self) -> Array:
        """Reciprocals of the eigenvalues of the tridiagonal inverse."""
        if self.size == 1:
            return np.array([self.variance])
        main = np.full(self.size, 1.0 + self.rho**2)
        main[[0, -1]] = 1.0
        precision = eigvalsh_tridiagonal(main, np.full(self.size - 1, -self.rho))
        return self.variance * self._innovation / precision[::-1]

    def color(self, z: Array) -> Array:
        check_rows(z, self.size)
        return self._recurse((np.sqrt(self._innovations()) * z.T).T, backward=False)

    def factorised(self, a: float) -> _Tridiagonal:
        return _Tridiagonal(self, a)

    def parameters(self) -> dict[str, Any]:
        return {"size": self.size, "rho": self.rho, "variance": self.variance}


class _Tridiagonal:
    """S = G^-1 D G^-T with G bidiagonal, so S + a I = G^-1 (D + a G G') G^-T with a tridiagonal L L' inside."""

    def __init__(self, base: AR1, a: float) -> None:
        self._base, rho = base, base.rho
        band = np.full((2, base.size), -a * rho)
        band[0] = base._innovations() + a * (1.0 + rho**2)
        band[0, 0] = base.variance + a
        self._factor: Array = np.asfortranarray(cholesky_banded(band, lower=True, check_finite=False))
        # entries of (L L')^-1 fall at least as fast as the powers of this ratio
        ratio = np.abs(self._factor[1, :-1] / self._factor[0, :-1]).max(initial=0.0)
        self._reach = 2 + int(np.log(_NEGLIGIBLE) / np.log(np.clip(ratio, 1e-3, 1.0 - 1e-12)))

    def solve(self, b: Array) -> Array:
        check_rows(b, self._base.size)
        return self._solve_on(slice(None), b)

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """A short stretch around each nonzero, which is all of the solution that floating point can tell from 0."""
        x = np.zeros(self._base.size)
        for k, value in zip(indices.tolist(), values.tolist(), strict=True):
            start = max(k - self._reach, 0)
            stretch = slice(start, k + self._reach + 1)
            b = np.zeros(x[stretch].size)
            b[k - start] = value
            x[stretch] += self._solve_on(stretch, b)
        return x

    def _solve_on(self, stretch: slice, b: Array) -> Array:
        """G' (L L')^-1 G b for a b that is zero outside the stretch."""
        u = b.copy()
        u[1:] -= self._base.rho * b[:-1]
        x: Array = lapack.dpbtrs(self._factor[:, stretch], u, lower=1)[0]
        x[:-1] -= self._base.rho * x[1:]
        return x

    def color(self, z: Array) -> Array:
        main, below = self._factor
        y = (main * z.T).T
        y[1:] += (below[:-1] * z[:-1].T).T
        return self._base._recurse(y, backward=False)


class Circulant(Covariance):
    """S_ij = first[(i-j) mod K] with first[k] = first[K-k]; the Fourier transform makes it diagonal.

    >>> Circulant([1.0, 0.5, 0.5]).column(1)
    array([0.5, 1. , 0.5])
    """

    def __init__(self, first_column: ArrayLike) -> None:
        first = as_floats(first_column, "first_column")
        if first.ndim != 1 or first.size == 0:
            raise ValueError(f"first_column must be a vector, not of shape {first.shape}")
        check_entries(first, "first_column")
        asymmetry = np.abs(first[1:] - first[:0:-1])
        if asymmetry.size and asymmetry.max() > 1e-10 * np.abs(first).max():
            k = int(asymmetry.argmax()) + 1
            raise ValueError(
                f"first_column is not symmetric: entries {k} and {first.size - k} are "
                f"{first[k]:.6g} and {first[-k]:.6g}; a ring needs them equal"
            )
        self.size = first.size
        self._first = frozen(np.concatenate([first[:1], 0.5 * (first[1:] + first[:0:-1])]))
        self._spectrum = np.fft.rfft(self._first).real
        check_spectrum(float(self._spectrum.min()), float(self._spectrum.max()), self.size)

    def _filter(self, x: Array, gains: Array) -> Array:
        """Multiply by a function of S."""
        check_rows(x, self.size)
        return np.fft.irfft((gains * np.fft.rfft(x, axis=0).T).T, n=self.size, axis=0)

    def diagonal(self) -> Array:
        return np.broadcast_to(self._first[0], (self.size,))

    def column(self, k: int) -> Array:
        return np.roll(self._first, k)

    def matvec(self, c: Array) -> Array:
        return self._filter(c, self._spectrum)

    def solve(self, b: Array) -> Array:
        return self._filter(b, 1.0 / self._spectrum)

    @cached_property
    def _first_of_inverse(self) -> Array:
        return frozen(np.fft.irfft(1.0 / self._spectrum, n=self.size))

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """The first column of the inverse, turned to each nonzero."""
        x = np.zeros(self.size)
        for k, value in zip(indices.tolist(), values.tolist(), strict=True):
            x += value * np.roll(self._first_of_inverse, k)
        return x

    def eigenvalues(self) -> Array:
        mirrored = self._spectrum[1 : (self.size + 1) // 2]
        return np.sort(np.concatenate([self._spectrum, mirrored]))

    def color(self, z: Array) -> Array:
        """The symmetric square root."""
        return self._filter(z, np.sqrt(self._spectrum))

    def plus_identity(self, a: float) -> Circulant:
        return Circulant(self._first + a * (np.arange(self.size) == 0))

    def parameters(self) -> dict[str, Any]:
        return {"first_column": self._first}
