"""`eccaht calibrate`: from a history of normal operation to a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eccaht.base.presentation.text import counted, lasting
from eccaht.cli.output import (
    Bar,
    DecimalComma,
    Json,
    check_outputs,
    deliver,
    note,
    option,
    saved,
    show_lines,
    shown_progress,
)
from eccaht.plants import ColumnReport, Model, Windows, usual_rate
from eccaht.plants import model as models
from eccaht.plants.incident.answer import kept
from eccaht.plants.incident.drill import RUNS
from eccaht.plants.incident.trials import FEWEST_WINDOWS

_HEADINGS = ("column", "kept", "type", "imputed", "scaled by", "why dropped")
_SCALES = {"iqr": "IQR", "std": "std (IQR is 0)", "": ""}


def calibrate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="CSV, gzipped CSV or Parquet.")],
    out: Annotated[Path, option("MODEL", "Where the model goes.")],
    columns: Annotated[list[str] | None, option("NAMES", "Only these, as a,b or 1_*. [default: all]")] = None,
    exclude: Annotated[list[str] | None, option("NAMES", "All but these.")] = None,
    time_column: Annotated[str | None, option("NAME", "Or Date,Time for two. [default: found by itself]")] = None,
    row_interval: Annotated[str | None, option("TIME", "Between rows, for files without times, as 1s.")] = None,
    timezone: Annotated[
        str | None, option("ZONE", "Of times without an offset, as Europe/Berlin, UTC or +02:00.")
    ] = None,
    decimal_comma: DecimalComma = None,
    no_header: Annotated[bool, option(None, "There are no column names: call them c1, c2, ...", "--no-header")] = False,
    window: Annotated[
        str | None, option("TIME", "Length of the windows, as 30s, 2h; 60rows without times. [default: from the rows]")
    ] = None,
    estimator: Annotated[
        str,
        option("NAME", "Of the covariance: ledoit-wolf, empirical, oas, graphical-lasso, min-cov-det or factor."),
    ] = "ledoit-wolf",
    ridge: Annotated[float | None, option("X", "Added to the diagonal. [default: 1e-6 for empirical, else 0]")] = None,
    drills: Annotated[int, option("N", "Faults to put into the history.", min=1)] = RUNS,
    no_drill: Annotated[bool, option(None, "Do not estimate how well faults would be found.", "--no-drill")] = False,
    start: Annotated[str | None, option("TIME", "Leave out rows before then, as 2017-09-25T18:00.")] = None,
    stop: Annotated[str | None, option("TIME", "Leave out rows from then on.")] = None,
    as_json: Json = False,
) -> None:
    """Turn a history of normal operation into a model.

    Gaps are filled (continuous columns by interpolation in time, status columns by the last value), empty and constant
    columns and labels dropped, the others scaled by median and interquartile range and averaged over windows, whose
    mean and covariance are estimated. The model file carries all that new data needs to be prepared the same way.

    What each sensor should read follows from all others now and all sensors in the window before; how rare a deviation
    is, is counted on halves of the history by fits to the other half. Then faults are put into stretches of the history
    and searched for, so that 'eccaht identify' can say how often such an answer is right.
    """
    check_outputs({"--out": out}, {"FILE": files})
    with shown_progress("reading", 1.0) as bar:
        model, windows = models.calibrate_with_windows(
            files,
            columns=columns,
            exclude=exclude or (),
            time_column=time_column,
            row_interval=row_interval,
            timezone=timezone,
            decimal_comma=decimal_comma,
            header=not no_header,
            window=window,
            estimator=estimator,
            ridge=ridge,
            start=start,
            stop=stop,
            progress=lambda share, stage: bar.stage(stage, share),
        )
        if not no_drill:
            model = _drilled(model, windows, drills, bar)
    deliver(
        [saved(out, model.save)],
        show=lambda: _print(model),
        document=lambda written: document(model, *written),
        as_json=as_json,
    )


def _drilled(model: Model, windows: Windows, runs: int, bar: Bar) -> Model:
    """The model with what was counted on faults in its own history; without, and a note, where it is too short."""
    from eccaht.plants import drill_history
    from eccaht.plants.incident.drill import keeping

    if len(windows.values) < FEWEST_WINDOWS:
        many = f"the history has {len(windows.values)} windows, and drills need {FEWEST_WINDOWS}"
        note(f"not drilled: {many}; 'eccaht identify' cannot say how often its answers are right")
        return model
    bar.total(runs, "drilling")
    return keeping(model, drill_history(model, windows, runs=runs, progress=bar.advance))


def document(model: Model, out: str | None = None) -> dict[str, Any]:
    """What a program may want to know of a calibration, and where the model is if it could be written."""
    seconds = None if model.clock.counted else model.seconds
    return {
        "model": out,
        "sensors": list(model.names),
        "n_windows": model.n_windows,
        "window_seconds": model.seconds,
        "first": model.clock.exact(model.first),
        "last": model.clock.exact(model.last),
        "timezone": model.clock.zone,
        "estimator": model.estimator,
        "ridge": model.ridge,
        "columns": [column.as_dict() for column in model.columns],
        "drill": None if (drills := kept(model)) is None else drills.counts.line(seconds),
        "false_alarm_every": usual_rate(model.n_windows, seconds),
        "notes": model.reading["notes"],
    }


def _print(model: Model) -> None:
    rows = [_cells(column) for column in model.columns]
    if sys.stdout.isatty():
        _print_rich(rows)
    else:  # aligned text, so that other programs can search and cut
        show_lines([_HEADINGS, *rows])
        typer.echo()
    dropped, clock = len(rows) - len(model.names), model.clock
    typer.echo(
        f"{len(model.names)} sensors kept, {dropped} columns not; {model.n_windows} windows of "
        f"{clock.length(model.seconds)}, from {clock.show(model.first)} to {clock.show(model.last)}{clock.said}; "
        f"{model.estimator}"
    )
    for text in model.reading["notes"]:
        typer.echo(f"Note: {text}")
    seconds = None if clock.counted else model.seconds
    if (found := kept(model)) is not None:
        typer.echo(found.counts.line(seconds))
    typer.echo(_rate(usual_rate(model.n_windows, seconds), seconds))


def _rate(every: float, seconds: float | None) -> str:
    """The false-alarm rate that is used unless another is asked for."""
    length = counted(round(every), "window") if seconds is None else lasting(every * seconds)
    return f"Default false-alarm rate: one in {length}, which is what a history of this length can carry"


def _cells(column: ColumnReport) -> tuple[str, ...]:
    imputed = f"{100 * column.imputed:.2f} %" if column.imputed else ("0" if column.kind else "")
    kept = "yes" if column.kept else "no"
    return column.name, kept, column.kind, imputed, _SCALES[column.scaled_by], column.reason


def _print_rich(rows: list[tuple[str, ...]]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right" if heading == "imputed" else "left")
    for row in rows:
        table.add_row(*map(Text, row), style=None if row[1] == "yes" else "dim")
    Console(highlight=False).print(table)
