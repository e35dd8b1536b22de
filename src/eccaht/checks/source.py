"""What every source of rows must hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from unittest import SkipTest

import numpy as np

from eccaht.base.clock import Clock
from eccaht.checks.suite import attempt, by_name, require, require_parts, run_all
from eccaht.plants import Batch, Source, Windower, Windows


def check_source(source: Source, *, skip: Mapping[str, str] | None = None) -> dict[str, str]:
    """Try a source that ends.

    skip: checks to leave out, by name, with the reason. Returns the checks that did not apply, with the reason; the
    first property that does not hold raises a CheckFailure of one line.

    >>> from eccaht.plants.data import Arrays
    >>> check_source(Arrays(np.eye(5)))
    {}
    """
    rows = _Rows(source)
    return run_all(_CHECKS, skip, lambda: (rows,))


class _Rows:
    """A source and its batches, read once."""

    def __init__(self, source: Source) -> None:
        require_parts(source, ["batches"], "this is no source")
        self.source, self.batches = source, attempt(partial(_read, source), "batches()")
        require_parts(source, ["names", "clock"], "this is no source")  # known at the latest now


def _read(source: Source) -> list[Batch]:
    """All batches; plain tuples will do, as for a calibration."""
    found = []
    for batch in source.batches():
        whole = isinstance(batch, tuple) and len(batch) in (2, 3)
        require(whole, f"batches() must give Batch(times, values), not {type(batch).__name__!r}")
        parts = Batch(*batch)
        for name, part in parts._asdict().items():
            right = isinstance(part, np.ndarray) or (name == "quality" and part is None)
            require(right, f"the {name} of a batch must be an array, not {type(part).__name__!r}")
        found.append(parts)
    return found


def _names(rows: _Rows) -> None:
    """Distinct texts, and a clock."""
    names, clock = rows.source.names, rows.source.clock
    texts = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    require(texts, "names must be texts, in a tuple")
    require(len(set(names)) == len(names), "names must be distinct")
    require(isinstance(clock, Clock), f"clock must be a Clock, not {type(clock).__name__!r}")


def _batches(rows: _Rows) -> None:
    """Times and values fit together, and there are some."""
    require(any(len(batch.times) for batch in rows.batches), "there must be a row")
    for batch in rows.batches:
        _check_batch(batch, len(rows.source.names))


def _order(rows: _Rows) -> None:
    """No batch begins before the one before it ends."""
    for earlier, later in pairwise(batch for batch in rows.batches if len(batch.times)):
        require(earlier.times[-1] <= later.times[0], "no batch may begin before the one before it ends")


def _levels(rows: _Rows) -> None:
    """The values of status columns are places in their levels."""
    names, declared = rows.source.names, getattr(rows.source, "levels", {})
    require(isinstance(declared, Mapping), f"levels must be a dict of texts by name, not {type(declared).__name__!r}")
    for name, levels in declared.items():
        require(name in names, f"levels has {name!r}, which is none of the names")
        _check_levels(np.concatenate([batch.readings[:, names.index(name)] for batch in rows.batches]), name, levels)


def _windows(rows: _Rows) -> None:
    """Windows are the same however the rows are cut; bad values do not count."""
    times = np.concatenate([batch.times for batch in rows.batches]).astype("datetime64[us]")
    whole = Batch(times, np.concatenate([batch.readings for batch in rows.batches]))
    steps = np.diff(times).astype(np.int64)
    seconds = 5e-6 * float(np.median(steps[steps > 0])) if (steps > 0).any() else 1.0
    expected = _cut(rows.source, seconds, [whole])
    cuts = np.sort(np.random.default_rng(0).integers(0, len(times) + 1, 20))
    pieces = [Batch(*parts) for parts in zip(np.split(times, cuts), np.split(whole.values, cuts), strict=True)]
    for delivered in (rows.batches, pieces):
        found = _cut(rows.source, seconds, delivered)
        for field in ("starts", "values", "rows", "flat"):
            same = np.array_equal(getattr(expected, field), getattr(found, field), equal_nan=True)
            require(same, f"windows must not depend on how the rows are cut into batches: their {field} do")


def _same_rows(rows: _Rows) -> None:
    """A repeatable source gives the same rows again."""
    if not getattr(rows.source, "repeatable", True):
        raise SkipTest("the source says that it is not repeatable")
    again = _read(rows.source)
    require(again, "asked again for its batches, a repeatable source must give the same rows, not none")
    for field in ("times", "readings"):
        one, two = (np.concatenate([getattr(batch, field) for batch in each]) for each in (rows.batches, again))
        same = np.array_equal(one, two, equal_nan=True)
        require(same, f"asked again for its batches, a repeatable source must give the same {field}")


def _check_batch(batch: Batch, size: int) -> None:
    times, values, quality = batch.times, batch.values, batch.quality
    require(np.issubdtype(times.dtype, np.datetime64) and times.ndim == 1, "times must be datetime64, one a row")
    require(not np.isnat(times).any(), "no time may be missing")
    require((times[1:] >= times[:-1]).all(), "the rows of a batch must be in order of time")
    shape = (len(times), size)
    require(values.dtype == np.float64 and values.shape == shape, f"values must be floats of the shape {shape}")
    if quality is not None:
        fits = quality.dtype == bool and quality.shape == shape
        require(fits, f"quality must be true or false, of the shape {shape}")
    require(not np.isinf(batch.readings).any(), "an infinite value must be NaN, or of bad quality")


def _check_levels(codes: np.ndarray, name: str, levels: Sequence[str]) -> None:
    require(len(set(levels)) == len(levels), f"the levels of {name!r} must be distinct")
    known = codes[~np.isnan(codes)]
    fits = np.isin(known, np.arange(len(levels))).all()
    require(fits, f"the values of {name!r} must be places in its {len(levels)} levels")


def _cut(source: Source, seconds: float, batches: Sequence[Batch]) -> Windows:
    windower = Windower(source.names, seconds, source.clock)
    return Windows.joined([*map(windower.add, batches), windower.finish()])


_CHECKS = by_name(_names, _batches, _order, _levels, _windows, _same_rows)
