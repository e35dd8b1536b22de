"""Checks of what constraints are made from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index, as_floats, check_finite, frozen


def number_list(values: ArrayLike, what: str) -> Array:
    array = as_floats(values, what)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{what} must be a list of numbers")
    check_finite(array, what)
    return frozen(array.copy())


def stream_list(where: ArrayLike, what: str) -> Index:
    """Numbers of streams, or a mask, as an array."""
    given = np.asarray(where)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "biu":
        raise ValueError(f"{what} must be a mask or a list of streams")
    kept = given.astype(bool if given.dtype.kind == "b" else np.intp)
    kept.flags.writeable = False
    return kept


def places(which: Index, size: int, who: object) -> Index:
    """Numbers of streams that there are, of a mask or a list."""
    if which.dtype == np.bool_:
        check_length(which, size, who)
        return np.flatnonzero(which)
    if (which < 0).any() or (which >= size).any():
        raise ValueError(f"{type(who).__name__} names stream {int(which.max())}, but there are {size}")
    return which


def check_length(values: Any, size: int, who: object) -> None:
    """Refuse another number of streams."""
    if len(values) != size:
        raise ValueError(f"{type(who).__name__} is for {len(values)} streams, but there are {size}")
