"""A model fitted anew to windows that it has cut itself, where the rows behind them are no longer there.

Level, spread, correlation and rarity are those of the new windows. The unit of each sensor and what is known of the
rows within a window stay those of the model: window means do not show them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eccaht.base.arrays import Array
from eccaht.plants.data.cleaning import ColumnReport, fill_continuous, fill_status
from eccaht.plants.data.windows import Windows, follows
from eccaht.plants.model.estimators import estimate
from eccaht.plants.model.fitting import FEWEST_NORMAL, fit_normal
from eccaht.plants.model.history import longest_run, longest_true, summarise
from eccaht.plants.model.model import Model

_MOST_MISSING = 0.5  # share of the windows: a sensor with fewer readings would be learned from what was filled in
_SAME = 1e-12  # share of the largest value, below which windows do not vary
NOTE = (
    "fitted anew to stored windows; the unit of each sensor and what is known of the rows within a window are those "
    "of the model before"
)


def recalibrate(model: Model, windows: Windows) -> tuple[Model, Windows]:
    """A new model of the windows, and the windows of its sensors with gaps filled.

    windows: of all sensors of the model, in its units, NaN where a sensor was silent. Sensors that are silent in more
    than half of them, or do not vary, are left out; `columns` of the new model says why.
    """
    if windows.names != model.names or windows.seconds != model.seconds:
        raise ValueError("a model is fitted anew to windows of its own sensors and length")
    if (T := len(windows.values)) < FEWEST_NORMAL:
        raise ValueError(f"a model needs at least {FEWEST_NORMAL} windows, and there are {T}: choose a longer period")
    reasons = {name: why for k, name in enumerate(model.names) if (why := _why_left_out(windows.values[:, k]))}
    names = [name for name in model.names if name not in reasons]
    if len(names) < 2:
        raise ValueError(
            f"a model needs at least 2 sensors, and {len(names)} of {len(model.names)} vary: choose another period"
        )
    kept = windows.of(names)
    values = np.column_stack([_filled(model, kept, k) for k in range(len(names))])
    part = model.of(names)
    mean, covariance = estimate(values, model.estimator, model.ridge)
    missing = np.isnan(kept.values)
    rows = T * part.summary.row_counts[0] if kept.rows is None else np.nanmax(kept.rows, axis=1).sum()
    summary = summarise(
        values,
        np.array([longest_run(column) for column in values.T]),
        part.summary.raw_quantiles,
        gaps=np.array([longest_true(column) for column in missing.T]),
        row_counts=np.array([part.summary.row_counts[0], max(float(rows), 1.0)]),
        within=part.summary.within,
        runs=part.summary.runs,
    )
    imputed = dict(zip(names, missing.mean(axis=0).tolist(), strict=True))
    fitted = replace(
        part,
        mean=mean,
        covariance=covariance,
        n_windows=T,
        first=windows.starts[0],
        last=windows.starts[-1],
        columns=tuple(_report(column, reasons, imputed) for column in model.columns),
        reading=part.reading | {"notes": [NOTE]},
        summary=summary,
        normal=fit_normal(np.ascontiguousarray(values), follows(windows)),
        drilled=None,
    )
    return fitted, replace(kept, values=values, model=fitted)


def _why_left_out(column: Array) -> str:
    present = column[~np.isnan(column)]
    if not present.size:
        return "empty"
    if present.size < (1.0 - _MOST_MISSING) * column.size:
        return "mostly missing"
    return "constant in windows" if np.ptp(present) <= _SAME * np.abs(present).max() else ""


def _filled(model: Model, windows: Windows, k: int) -> Array:
    column = windows.values[:, k]
    if model.reading["kinds"].get(windows.names[k]) == "status":
        return fill_status(column)
    return fill_continuous(column, windows.starts)


def _report(column: ColumnReport, reasons: dict[str, str], imputed: dict[str, float]) -> ColumnReport:
    if column.name in reasons:
        return ColumnReport(column.name, False, reasons[column.name], column.kind)
    return replace(column, imputed=imputed[column.name]) if column.kept else column
