"""Columns of new data as the history had them: what cannot be is missing, and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from eccaht.data.faults import Faults, why_no_number
from eccaht.data.loading import number_of
from eccaht.data.sniffing import Layout, is_number

if TYPE_CHECKING:
    import polars as pl

Expected = Mapping[str, Sequence[str] | None]  # the texts that a status may have; None for numbers


def as_expected(layout: Layout, frame: pl.DataFrame, expected: Expected, faults: Faults) -> pl.DataFrame:
    """Numbers where numbers are expected and known texts where texts are; all else becomes missing."""
    import polars as pl

    changed = []
    for name, levels in expected.items():
        told = frame[name]
        if levels is None and told.dtype != pl.String:
            continue
        if levels is None:
            kept = frame.select(number_of(pl.col(name), layout.decimal_comma)).to_series()
            bad = told.is_not_null() & kept.is_null()
        else:
            bad = _unknown(told, levels)
            kept = told.set(bad, None)
        changed.append(kept.alias(name))
        if count := int(bad.sum()):
            first = int(bad.arg_true()[0])
            text = str(told[first])
            why = why_no_number(text, layout.decimal_comma) if levels is None else "unknown to the history"
            faults.bad_values(name, count, f"{layout.where(first)} of {layout.path}", text, why)
    return frame.with_columns(changed)


def _unknown(told: pl.Series, levels: Sequence[str]) -> pl.Series:
    """Which values are none of these texts; a status of numbers is known by them."""
    import polars as pl

    if told.dtype == pl.String:
        return told.is_not_null() & ~told.is_in(list(levels))
    known = [float(level) for level in levels if is_number(level)]
    return told.is_not_null() & ~told.is_nan() & ~told.is_in(known)
