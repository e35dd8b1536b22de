"""New data, prepared exactly as the history of a model was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eccaht.arrays import Array
from eccaht.data.reading import Paths, Table, assemble, limits, listed
from eccaht.data.selection import place_of
from eccaht.data.sniffing import Layout, sniff
from eccaht.data.timing import TimeRule, time_rule
from eccaht.data.windows import Cut, Windows

if TYPE_CHECKING:
    from eccaht.data.model import Model


def prepare(
    model: Model, paths: Paths, *, start: Any, stop: Any, missing: Literal["refuse", "allow"] = "refuse"
) -> Windows:
    """See Model.prepare."""
    if missing not in ("refuse", "allow"):
        raise ValueError(f"missing must be 'refuse' or 'allow', not {missing!r}")
    first, last = limits(start, stop)
    decimal_comma = model.reading["decimal_comma"]
    layouts = [sniff(path, decimal_comma) for path in listed(paths)]
    present = _present(model, layouts, missing)
    table = assemble(layouts, _rule(model, layouts[0]), present, decimal_comma, first, last)
    cut = Cut.of(table.times, model.seconds)
    values = np.full((len(cut.starts), len(model.names)), np.nan)
    rows, flat = np.zeros(values.shape), np.zeros(values.shape, dtype=bool)
    for k, name in enumerate(model.names):
        if name in present:
            column = (_column(model, table, name) - model.center[k]) / model.scale[k]
            values[:, k], rows[:, k], flat[:, k] = cut.means_of_present(column), cut.present(column), cut.flat(column)
    still = (flat | (rows == 0)).all(axis=1)  # where nothing moves, all rows are one
    rows[still] = np.minimum(rows[still], 1.0)
    return Windows(cut.starts, values, model.names, model.seconds, rows, flat, model)


def unknown_columns(model: Model, paths: Paths) -> tuple[str, ...]:
    """See Model.unknown_columns."""
    unknown: dict[str, None] = {}
    for path in listed(paths):
        layout = sniff(path, model.reading["decimal_comma"])
        known = {place_of(layout, column.name) for column in model.columns}
        unknown |= dict.fromkeys(name for k, name in enumerate(layout.names) if k not in known)
    return tuple(unknown)


def _rule(model: Model, layout: Layout) -> TimeRule:
    told = model.reading
    earlier = TimeRule(tuple(told["time_columns"]), tuple(told["time_format"])) if told["time_columns"] else None
    return time_rule(layout, None, told["row_interval"], told["decimal_comma"], earlier)


def _present(model: Model, layouts: list[Layout], missing: str) -> list[str]:
    """The model's sensors that every file has; the others are refused by name unless that is allowed."""
    for layout in layouts:
        absent = [name for name in model.names if place_of(layout, name) is None]
        if absent and (missing == "refuse" or len(absent) == len(model.names)):
            some = ", ".join(map(repr, absent[:5])) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
            raise ValueError(f"{layout.path} has no column for {len(absent)} of the model's sensors: {some}")
    return [name for name in model.names if any(place_of(layout, name) is not None for layout in layouts)]


def _column(model: Model, table: Table, name: str) -> Array:
    """The readings of a sensor as numbers, texts by the codes of the history."""
    known = model.reading["levels"].get(name)
    if known is None:
        if name in table.texts:
            levels, _ = table.levels(name)
            raise ValueError(f"column {name!r} of {table.paths[0]} holds texts ({levels[0]!r}), in the history numbers")
        return table.numbers(name)
    if name in table.texts:
        levels, codes = table.levels(name)
    else:
        values, places = np.unique(table.numbers(name), return_inverse=True)
        levels = [f"{value:g}" for value in values[~np.isnan(values)]]
        codes = np.where(places < len(levels), places.astype(np.float64), np.nan)
    new = [level for level in levels if level not in known]
    if new:
        raise ValueError(
            f"column {name!r} of {table.paths[0]} holds {new[0]!r}, which the history never had "
            f"({', '.join(map(repr, known[:5]))}): calibrate on a history that has it, or without this column"
        )
    translation = np.array([known.index(level) for level in levels] or [0], dtype=np.float64)
    gaps = np.isnan(codes)
    return np.where(gaps, np.nan, translation[np.where(gaps, 0, codes).astype(np.intp)])
