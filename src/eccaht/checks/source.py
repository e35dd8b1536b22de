"""What every source of rows must hold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from eccaht.checks.suite import require
from eccaht.data.source import Source
from eccaht.data.windows import Batch, Windower, Windows


def check_source(source: Source) -> dict[str, str]:
    """Try a source that ends; return the checks that did not apply, with the reason.

    The first property that does not hold raises a CheckFailure of one line.

    >>> from eccaht.data import Arrays
    >>> check_source(Arrays(np.eye(5)))
    {}
    """
    batches = list(source.batches())
    names = source.names
    require(
        isinstance(names, tuple) and all(isinstance(name, str) for name in names), "names must be texts, in a tuple"
    )
    require(len(set(names)) == len(names), "names must be distinct")
    require(any(len(batch.times) for batch in batches), "there must be a row")
    for batch in batches:
        _check_batch(batch, len(names))
    for earlier, later in pairwise(batch for batch in batches if len(batch.times)):
        require(earlier.times[-1] <= later.times[0], "no batch may begin before the one before it ends")
    for name, levels in getattr(source, "levels", {}).items():
        _check_levels(np.concatenate([batch.readings[:, names.index(name)] for batch in batches]), name, levels)
    _check_windows(source, batches)
    if not getattr(source, "repeatable", True):
        return {"the same rows again": "the source says that it is not repeatable"}
    again = list(source.batches())
    for field in ("times", "readings"):
        one, two = (np.concatenate([getattr(batch, field) for batch in each]) for each in (batches, again))
        same = np.array_equal(one, two, equal_nan=True)
        require(same, f"asked again for its batches, a repeatable source must give the same {field}")
    return {}


def _check_batch(batch: Batch, size: int) -> None:
    times, values, quality = batch.times, batch.values, batch.quality
    require(np.issubdtype(times.dtype, np.datetime64) and times.ndim == 1, "times must be datetime64, one a row")
    require(not np.isnat(times).any(), "no time may be missing")
    require((times[1:] >= times[:-1]).all(), "the rows of a batch must be in order of time")
    shape = (len(times), size)
    require(values.dtype == np.float64 and values.shape == shape, f"values must be floats of the shape {shape}")
    if quality is not None:
        require(
            quality.dtype == bool and quality.shape == shape, f"quality must be true or false, of the shape {shape}"
        )
    require(not np.isinf(batch.readings).any(), "an infinite value must be NaN, or of bad quality")


def _check_levels(codes: np.ndarray, name: str, levels: Sequence[str]) -> None:
    require(len(set(levels)) == len(levels), f"the levels of {name!r} must be distinct")
    known = codes[~np.isnan(codes)]
    fits = np.isin(known, np.arange(len(levels))).all()
    require(fits, f"the values of {name!r} must be places in its {len(levels)} levels")


def _check_windows(source: Source, batches: Sequence[Batch]) -> None:
    """Windows are the same however the rows are cut; bad values do not count."""
    times = np.concatenate([batch.times for batch in batches]).astype("datetime64[us]")
    whole = Batch(times, np.concatenate([batch.readings for batch in batches]))
    steps = np.diff(times).astype(np.int64)
    seconds = 5e-6 * float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0
    expected = _windows(source, seconds, [whole])
    cuts = np.sort(np.random.default_rng(0).integers(0, len(times) + 1, 20))
    pieces = [Batch(*parts) for parts in zip(np.split(times, cuts), np.split(whole.values, cuts), strict=True)]
    for told in (batches, pieces):
        found = _windows(source, seconds, told)
        for field in ("starts", "values", "rows", "flat"):
            same = np.array_equal(getattr(expected, field), getattr(found, field), equal_nan=True)
            require(same, f"windows must not depend on how the rows are cut into batches: their {field} do")


def _windows(source: Source, seconds: float, batches: Sequence[Batch]) -> Windows:
    windower = Windower(source.names, seconds, source.clock)
    return Windows.joined([*map(windower.add, batches), windower.finish()])
