"""Streams on a ring."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index, as_floats, check_finite, check_rows, frozen
from eccaht.base.scales import check_entries
from eccaht.streams.covariance.base import Covariance, check_spectrum


class Circulant(Covariance):
    """S_ij = first[(i-j) mod K] with first[k] = first[K-k]; the Fourier transform makes it diagonal.

    >>> Circulant([1.0, 0.5, 0.5]).column(1)
    array([0.5, 1. , 0.5])
    """

    def __init__(self, first_column: ArrayLike) -> None:
        first = as_floats(first_column, "first_column")
        if first.ndim != 1 or first.size == 0:
            raise ValueError(f"first_column must be a vector, not of shape {first.shape}")
        check_finite(first, "first_column")
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
        """S c by fast Fourier transforms."""
        return self._filter(c, self._spectrum)

    def solve(self, b: Array) -> Array:
        """S^-1 b by fast Fourier transforms."""
        return self._filter(b, 1.0 / self._spectrum)

    @cached_property
    def _first_of_inverse(self) -> Array:
        return frozen(np.fft.irfft(1.0 / self._spectrum, n=self.size))

    def inverse_diagonal(self) -> Array:
        return np.broadcast_to(self._first_of_inverse[0], (self.size,))

    def solve_sparse(self, indices: Index, values: Array) -> Array:
        """The first column of the inverse, turned to each nonzero."""
        x = np.zeros(self.size)
        for k, value in zip(indices.tolist(), values.tolist(), strict=True):
            x += value * np.roll(self._first_of_inverse, k)
        return x

    def eigenvalues(self) -> Array:
        """The Fourier transform of the first column."""
        mirrored = self._spectrum[1 : (self.size + 1) // 2]
        return np.sort(np.concatenate([self._spectrum, mirrored]))

    def color(self, z: Array) -> Array:
        """The symmetric square root."""
        return self._filter(z, np.sqrt(self._spectrum))

    def plus_identity(self, a: float) -> Circulant:
        """A larger first entry."""
        return Circulant(self._first + a * (np.arange(self.size) == 0))

    def parameters(self) -> dict[str, Any]:
        return {"first_column": self._first}
