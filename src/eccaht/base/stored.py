"""Checks of numbers that come from a file: they are not trusted."""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array, Index

LARGEST = 1e150  # of sums over readings: their squares are still finite


def whole_numbers(values: Array, what: str, *, least: int = 0, most: float = 2.0**53) -> Index:
    """Return numbers that are whole and in range, as integers.

    >>> whole_numbers(np.array([0.0, 3.0]), "counts", most=3)
    array([0, 3])
    """
    if not ((values >= least) & (values <= most) & (values == np.floor(values))).all():
        raise ValueError(f"its {what} are damaged: not whole numbers in range")
    return values.astype(np.intp)


def check_bounded(values: Array, what: str, largest: float = LARGEST) -> None:
    """Refuse what is not finite, or so large that no readings could have led there."""
    if not (np.abs(values) <= largest).all():
        raise ValueError(f"its {what} are larger than any readings could have made them")


def check_unmeasured(counts: Array, sums: Array, what: str) -> None:
    """Refuse sums of readings where none was counted."""
    if sums[counts == 0].any():
        raise ValueError(f"its {what} do not agree with each other")


def check_gram(matrix: Array, what: str, rounding: float = 1e-6) -> None:
    """Refuse a matrix that is not symmetric and positive semidefinite, but for rounding."""
    diagonal = matrix.diagonal()
    if (diagonal < 0).any():
        raise ValueError(f"its {what} are no sums of squares")
    root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    with np.errstate(all="ignore"):  # what overflows fails the next check
        scaled = matrix / root
        scaled /= root[:, None]
    if not (np.abs(scaled - scaled.T) <= rounding).all() or scaled[diagonal == 0].any():
        raise ValueError(f"its {what} are not symmetric")
    try:
        np.linalg.cholesky(scaled + np.diag(np.where(diagonal > 0, rounding, 1.0)))
    except np.linalg.LinAlgError:
        raise ValueError(f"its {what} are no sums of squares") from None


def check_same(values: Array, others: Array, what: str) -> None:
    """Refuse numbers that differ from others by more than rounding."""
    if values.shape != others.shape or not np.allclose(values, others, rtol=1e-6, atol=1e-9 * np.abs(others).max()):
        raise ValueError(f"its {what} do not agree with each other")
