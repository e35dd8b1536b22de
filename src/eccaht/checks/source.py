"""What every source of rows must hold."""

from collections.abc import Mapping
from itertools import pairwise
from unittest import SkipTest

import numpy as np

from eccaht.base.clock import Clock
from eccaht.checks.suite import by_name, require, run_all
from eccaht.plants import Batch, Source


def check_source(source: Source, *, skip: Mapping[str, str] | None = None) -> dict[str, str]:
    """Try a source that ends; skip: checks to leave out, by name, with the reason.

    >>> from eccaht.plants.data import Arrays
    >>> check_source(Arrays(np.eye(5)))
    {}
    """
    return run_all(_CHECKS, skip, source, _read(source))


def _read(source: Source) -> list[Batch]:
    """All batches; plain tuples will do, as for a calibration."""
    batches = [Batch(*batch) for batch in source.batches()]
    for batch in batches:
        _check_batch(batch, len(source.names))
    return batches


def _check_batch(batch: Batch, size: int) -> None:
    times, values, quality = batch.times, batch.values, batch.quality
    for name, part in batch._asdict().items():
        right = isinstance(part, np.ndarray) or (name == "quality" and part is None)
        require(right, f"the {name} of a batch must be an array, not {type(part).__name__!r}")
    require(np.issubdtype(times.dtype, np.datetime64) and times.ndim == 1, "times must be datetime64, one a row")
    require(not np.isnat(times).any(), "no time may be missing")
    shape = (len(times), size)
    require(values.dtype == np.float64 and values.shape == shape, f"values must be floats of the shape {shape}")
    marked = quality is None or (quality.dtype == bool and quality.shape == shape)
    require(marked, f"quality must be true or false, of the shape {shape}")
    require(not np.isinf(batch.readings).any(), "an infinite value must be NaN, or of bad quality")


def _names(source: Source, batches: list[Batch]) -> None:  # noqa: ARG001
    """Distinct texts, and a clock."""
    names = source.names
    texts = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    require(texts and len(set(names)) == len(names), f"names must be distinct texts, in a tuple, not {names!r:.80}")
    require(isinstance(source.clock, Clock), f"clock must be a Clock, not {type(source.clock).__name__!r}")


def _order(source: Source, batches: list[Batch]) -> None:  # noqa: ARG001
    """There are rows, in order of time within batches and from one to the next."""
    filled = [batch.times for batch in batches if len(batch.times)]
    require(filled, "there must be a row")
    require(all((times[1:] >= times[:-1]).all() for times in filled), "the rows of a batch must be in order of time")
    in_turn = all(earlier[-1] <= later[0] for earlier, later in pairwise(filled))
    require(in_turn, "no batch may begin before the one before it ends")


def _levels(source: Source, batches: list[Batch]) -> None:
    """The values of status columns are places in their levels."""
    for name, levels in getattr(source, "levels", {}).items():
        require(name in source.names, f"levels has {name!r}, which is none of the names")
        require(len(set(levels)) == len(levels), f"the levels of {name!r} must be distinct")
        codes = np.concatenate([batch.readings[:, source.names.index(name)] for batch in batches])
        fits = np.isin(codes[~np.isnan(codes)], np.arange(len(levels))).all()
        require(fits, f"the values of {name!r} must be places in its {len(levels)} levels")


def _same_rows(source: Source, batches: list[Batch]) -> None:
    """A repeatable source gives the same rows again."""
    if not getattr(source, "repeatable", True):
        raise SkipTest("the source says that it is not repeatable")
    again = _read(source)
    for field in ("times", "readings"):
        one, two = (np.concatenate([getattr(batch, field) for batch in each] or [[]]) for each in (batches, again))
        same = np.array_equal(one, two, equal_nan=True)
        require(same, f"asked again for its batches, a repeatable source must give the same {field}")


_CHECKS = by_name(_names, _order, _levels, _same_rows)
