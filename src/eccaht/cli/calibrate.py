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

from eccaht import model as models
from eccaht.cli.candidates import blocks
from eccaht.cli.options import DecimalComma, Json, option
from eccaht.cli.output import Bar, check_outputs, deliver, note, saved, show_lines, shown_progress
from eccaht.data.cleaning import ColumnReport
from eccaht.data.windows import Windows
from eccaht.incident.drill import kept
from eccaht.model.choice import Choice
from eccaht.model.model import Model

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
    level: Annotated[str, option("NAME", "What readings vary about: fixed, daily or local (windows before).")] = "auto",
    memory: Annotated[str, option("NAME", "Of a sensor for the window before: none or ar.")] = "auto",
    shrink: Annotated[str, option("S", "Of correlations, by a share of at least 0 and below 1.")] = "auto",
    tails: Annotated[str, option("NAME", "gaussian, t, or the degrees of freedom of a t.")] = "auto",
    no_drill: Annotated[bool, option(None, "Do not count how well faults would be found.", "--no-drill")] = False,
    start: Annotated[str | None, option("TIME", "Leave out rows before then, as 2017-09-25T18:00.")] = None,
    stop: Annotated[str | None, option("TIME", "Leave out rows from then on.")] = None,
    as_json: Json = False,
) -> None:
    """Turn a history of normal operation into a model.

    Gaps are filled (continuous columns by interpolation in time, status columns by the last value), empty and constant
    columns and labels dropped, the others scaled by median and interquartile range and averaged over windows, whose
    mean and covariance are estimated. The model file carries all that new data needs to be prepared the same way.

    Level, memory, shrinkage and tails are chosen by what predicts the last third of the history best from the first
    two, unless they are given. Then faults are put into stretches of the history and searched for, so that 'eccaht
    identify' can say how often it was right. Last, it is counted how rarely the history shows what 'eccaht watch' looks
    for.
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
            level=level,
            memory=memory,
            shrink=_number(shrink),
            tails=_number(tails),
            start=start,
            stop=stop,
            progress=lambda share, stage: bar.stage(stage, share),
        )
        if not no_drill:
            model = _drilled(model, windows, bar)
        model = _watched(model, windows, bar)
    deliver(
        [saved(out, model.save)],
        tell=lambda: _tell(model),
        document=lambda written: document(model, *written),
        as_json=as_json,
    )


def _number(text: str) -> str | float:
    """A number, or the name that stands in its place."""
    try:
        return float(text)
    except ValueError:
        return text


def _drilled(model: Model, windows: Windows, bar: Bar) -> Model:
    """The model with what was counted on faults in its own history; without, and a note, where it is too short."""
    from eccaht.incident.drill import drill_history, keeping, total

    bar.total(total(), "drilling")
    try:
        return keeping(model, drill_history(model, windows, progress=bar.advance))
    except ValueError as error:
        note(f"not drilled: {error}")
        return model


def _watched(model: Model, windows: Windows, bar: Bar) -> Model:
    """The model with the rule of a watch, counted on its history; without, and a note, where it is too short."""
    from eccaht.watch.kept import count_watch

    bar.stage("counting what is rare")
    try:
        return count_watch(model, windows)
    except ValueError as error:
        note(f"'eccaht watch' will simulate its thresholds: {error}")
        return model


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
        "choice": [] if model.choice is None else model.choice.table(),
        "columns": [column.as_dict() for column in model.columns],
        "drill": None if (drills := kept(model)) is None else drills.counts.line(seconds),
        "notes": model.reading["notes"],
    }


def _tell(model: Model) -> None:
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
    if model.choice is not None:
        _tell_choice(model.choice)
    if (drills := kept(model)) is not None:
        typer.echo(drills.counts.line(None if clock.counted else model.seconds))


def _tell_choice(choice: Choice) -> None:
    """The candidates, a block for each part, and what was chosen."""
    typer.echo("\nNormal operation: log density of the last third of the windows by what the first two thirds say,")
    typer.echo("nats per window (memory: and sensor), * chosen")
    for block in blocks(choice):
        typer.echo()
        show_lines(block)
    typer.echo(f"\nChosen: {choice.said}")


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
