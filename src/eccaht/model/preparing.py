"""New data, prepared exactly as the history of a model was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from eccaht.arrays import Array
from eccaht.data.clock import Clock, as_zone
from eccaht.data.faults import Faults
from eccaht.data.reading import Paths, Table, assemble, check_limits, listed
from eccaht.data.selection import place_of
from eccaht.data.sniffing import Layout, sniff
from eccaht.data.timing import TimeRule, time_rule
from eccaht.data.windows import Cut, Times, Windows

if TYPE_CHECKING:
    from eccaht.data.expecting import Expected
    from eccaht.model.model import Model

_FARTHEST = 1e8  # robust units from the centre: beyond, a value is no reading


@dataclass(frozen=True)
class Notation:
    """How new data are written, where that is not to be found by itself or as in the history (None)."""

    timezone: str | None = None
    decimal_comma: bool | None = None
    header: bool | None = None

    def zone(self, model: Model) -> str | None:
        """Where times without an offset are, and where all are shown."""
        return Clock.remembered(model.reading).zone if self.timezone is None else as_zone(self.timezone)

    def has_header(self, model: Model) -> bool:
        """Whether there is a line with column names."""
        return bool(model.reading.get("header", True)) if self.header is None else self.header


def prepare(
    model: Model,
    paths: Paths,
    *,
    start: Any,
    stop: Any,
    missing: Literal["refuse", "allow"] = "refuse",
    bad: Literal["refuse", "skip"] = "refuse",
    notation: Notation | None = None,
) -> Windows:
    """See Model.prepare."""
    for option, told, known in (("missing", missing, ("refuse", "allow")), ("bad", bad, ("refuse", "skip"))):
        if told not in known:
            raise ValueError(f"{option} must be {known[0]!r} or {known[1]!r}, not {told!r}")
    check_limits(start, stop)
    notation = notation or Notation()
    zone = notation.zone(model)
    layouts = _layouts(model, paths, notation, strict=bad == "refuse")
    present = present_names(model, layouts, missing)
    faults = Faults() if bad == "skip" else None
    table = assemble(
        layouts,
        rule_for(model, layouts[0]),
        present,
        start,
        stop,
        zone=zone,
        expected=expected_of(model),
        faults=faults,
    )
    windows = windows_of(
        model, table.times, table.clock, ((name, scaled(model, table, name, faults)) for name in present)
    )
    notes = (*table.notes, *(faults.notes() if faults else ()))
    return replace(windows, notes=notes)


def windows_of(model: Model, times: Times, clock: Clock, columns: Iterable[tuple[str, Array]]) -> Windows:
    """Scaled readings of some sensors, rows in order of time, as windows of all sensors of the model."""
    cut = Cut.of(times, model.seconds, clock)
    values = np.full((len(cut.starts), len(model.names)), np.nan)
    rows, flat = np.zeros(values.shape), np.zeros(values.shape, dtype=bool)
    for name, column in columns:
        k = model.names.index(name)
        values[:, k], rows[:, k], flat[:, k] = cut.means_of_present(column), cut.present(column), cut.flat(column)
    still = (flat | (rows == 0)).all(axis=1)  # where nothing moves, all rows are one
    rows[still] = np.minimum(rows[still], 1.0)
    return Windows(cut.starts, values, model.names, model.seconds, rows, flat, model, clock)


def scaled(model: Model, table: Table, name: str, faults: Faults | None = None) -> Array:
    """The readings of a sensor in robust units; what no sensor can have read is refused, or counted as a fault."""
    k, column = model.names.index(name), _column(model, table, name)
    values = (column - model.center[k]) / model.scale[k]
    far = np.flatnonzero(np.abs(values) > _FARTHEST)
    if not far.size:
        return values
    text, when = f"{column[far[0]]:g}", table.clock.show(table.times[far[0]])
    why = f"more than {_FARTHEST:g} times its usual spread away"
    if faults is None:
        raise ValueError(
            f"column {name!r} of {table.paths[0]} holds {text} at {when}, {why}: mend it, or leave the field empty"
        )
    faults.bad_values(name, far.size, f"the row of {when}", text, why)
    values[far] = np.nan
    return values


def expected_of(model: Model) -> Expected:
    """What each sensor holds: numbers (None) or texts of the history."""
    return {name: model.reading["levels"].get(name) for name in model.names}


def unknown_columns(model: Model, paths: Paths, notation: Notation | None = None) -> tuple[str, ...]:
    """See Model.unknown_columns."""
    unknown: dict[str, None] = {}
    for layout in _layouts(model, paths, notation or Notation(), strict=False):
        known = {place_of(layout, column.name) for column in model.columns}
        unknown |= dict.fromkeys(name for k, name in enumerate(layout.names) if k not in known)
    return tuple(unknown)


def absent_names(model: Model, paths: Paths, notation: Notation | None = None) -> set[str]:
    """Sensors of the model that no file has a column for: somebody left them out, they did not fall silent."""
    layouts = _layouts(model, paths, notation or Notation(), strict=False)
    return {name for name in model.names if all(place_of(layout, name) is None for layout in layouts)}


def _layouts(model: Model, paths: Paths, notation: Notation, *, strict: bool) -> list[Layout]:
    header = notation.has_header(model)
    return [sniff(path, notation.decimal_comma, header=header, strict=strict) for path in listed(paths)]


def rule_for(model: Model, layout: Layout) -> TimeRule:
    """How to read the times of a file: as the history's, if it has the same columns."""
    told = model.reading
    earlier = TimeRule(tuple(told["time_columns"]), tuple(told["time_format"])) if told["time_columns"] else None
    return time_rule(layout, None, told["row_interval"], earlier, counted=bool(told.get("counted")))


def present_names(model: Model, layouts: Sequence[Layout], missing: str) -> list[str]:
    """The model's sensors that every file has; the others are refused by name unless that is allowed."""
    for layout in layouts:
        absent = [name for name in model.names if place_of(layout, name) is None]
        if absent and (missing == "refuse" or len(absent) == len(model.names)):
            some = ", ".join(map(repr, absent[:5])) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
            hint = "" if len(absent) == len(model.names) else "; add --missing allow to search the others"
            raise ValueError(f"{layout.path} has no column for {len(absent)} of the model's sensors: {some}{hint}")
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
