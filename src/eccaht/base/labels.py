"""Names of streams, and values that carry them: dicts, and frames and series of pandas or polars.

Neither library is imported: what has columns, or an index of names, says so itself.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eccaht.base.presentation.text import did_you_mean


def unlabelled(matrix: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Return a matrix as numbers, and the names of its columns where it has some."""
    columns = getattr(matrix, "columns", None)
    if columns is None or not hasattr(matrix, "to_numpy"):
        return matrix, None
    names, rows = list(columns), getattr(matrix, "index", None)
    if rows is not None and list(rows) != names:
        raise ValueError(
            "the rows of the covariance do not have the names of its columns: bring them in the same order"
        )
    return matrix.to_numpy(), tuple(names) if all(isinstance(name, str) for name in names) else None


def by_name(value: Any, names: Sequence[str] | None, what: str, *, absent: float | None = None) -> Any:
    """Return what is given by name as a list in the order of the streams, and anything else as it is.

    absent: what stands for a name that is not there; without it that is refused.

    >>> by_name({"b": 2.0, "a": 1.0}, ["a", "b"], "shift"), by_name(3.0, None, "shift")
    ([1.0, 2.0], 3.0)
    """
    given = named_values(value)
    if given is None:
        return value
    if names is None:
        raise ValueError(f"{what} goes by name, but the streams have none: give the problem names, or plain numbers")
    known = set(names)
    for name in given:
        if name not in known:
            raise ValueError(f"{what} has an unknown stream {name!r}{did_you_mean(name, names)}")
    if absent is None and (lacking := [name for name in names if name not in given]):
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        raise ValueError(f"{what} lacks {', '.join(map(repr, lacking[:5]))}{more}: give one value for each stream")
    return [absent if (entry := given.get(name, absent)) is None else entry for name in names]


def named_values(value: Any) -> Mapping[Any, Any] | None:
    """A dict as it is, a series with an index of names as a dict."""
    if isinstance(value, Mapping):
        return value
    index = getattr(value, "index", None)
    if not hasattr(value, "to_numpy") or index is None or not all(isinstance(name, str) for name in index):
        return None
    if len(set(index)) != len(index):
        raise ValueError("a name occurs twice in an index: names of streams are distinct")
    return dict(zip(index, np.asarray(value.to_numpy()).tolist(), strict=True))
