"""`eccaht.calibrate`: from a history to a model whose answers have a confidence."""

import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import as_count
from eccaht.base.presentation.text import shown_progress
from eccaht.plants.front.identify import as_data
from eccaht.plants.incident.drill import RUNS, drill_history, keeping
from eccaht.plants.incident.trials import FEWEST_WINDOWS
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.plants.model.model import Model

_LOG = logging.getLogger("eccaht")


def calibrate(
    history: Any,
    *,
    columns: Sequence[str] | str | None = None,
    exclude: Sequence[str] | str = (),
    window: str | float | timedelta | np.timedelta64 | None = None,
    drills: int = RUNS,
    names: Sequence[str] | None = None,
    times: ArrayLike | None = None,
    time_column: str | Sequence[str] | None = None,
    row_interval: str | float | None = None,
    timezone: str | None = None,
    decimal_comma: bool | None = None,
    header: bool = True,
    estimator: str = "ledoit-wolf",
    ridge: float | None = None,
    start: Any = None,
    stop: Any = None,
    progress: bool = True,
    note: Callable[[str], object] = _LOG.warning,
) -> Model:
    """A model of normal operation: what `eccaht calibrate` makes of a history.

    history: paths of CSV or Parquet files, one or several, a frame of pandas or polars, or an array.
    columns, exclude: names, in which * and ? stand for any characters; labels, and status columns that the others do
    not predict, are left out unless they are called by name. window: its length, as "30s", a timedelta or a number of
    seconds, or "60rows" where rows have no times; from the time between rows if not given. drills: faults that are
    injected into the history, so that answers have a confidence; 0: none. names, times: of the columns and rows of an
    array.
    time_column, row_interval, timezone, decimal_comma, header: how the history is written, where that is not found
    automatically. estimator, ridge: of the covariance. start, stop: leave out rows before and from then on.
    progress: shown on a terminal. note: is called with what a user should know of drills that could not be run.
    """
    as_count(drills, "drills", least=0)
    with shown_progress("reading", 1.0, shown=progress) as bar:
        model, windows = calibrate_with_windows(
            as_data(history, names, times),
            columns=[columns] if isinstance(columns, str) else columns,
            exclude=[exclude] if isinstance(exclude, str) else exclude,
            time_column=time_column,
            row_interval=row_interval,
            timezone=timezone,
            decimal_comma=decimal_comma,
            header=header,
            window=_length(window),
            estimator=estimator,
            ridge=ridge,
            drop_unpredicted=True,
            start=start,
            stop=stop,
            progress=lambda share, stage: bar.stage(stage, share),
        )
        if drills and len(windows.values) < FEWEST_WINDOWS:
            many = f"the history has {len(windows.values)} windows, and drills need {FEWEST_WINDOWS}"
            note(f"not drilled: {many}; 'eccaht identify' cannot say how often its answers are right")
        elif drills:
            bar.total(drills, "drilling")
            model = keeping(model, drill_history(model, windows, runs=drills, progress=bar.advance))
    return model


def _length(window: str | float | timedelta | np.timedelta64 | None) -> str | float | None:
    """A length of time as it is read; a timedelta in seconds."""
    if isinstance(window, np.timedelta64):
        return float(window / np.timedelta64(1, "s"))
    return window.total_seconds() if isinstance(window, timedelta) else window
