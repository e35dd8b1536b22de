"""`eccaht calibrate`: from a history of normal operation to a model."""

import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from eccaht.base.presentation.text import counted, lasting
from eccaht.cli.output import DecimalComma, Inputs, Json, check_outputs, deliver, note, option, saved, show_lines
from eccaht.plants import Model, Notation
from eccaht.plants.data.cleaning import HEADINGS
from eccaht.plants.front import calibrate as calibrate_history
from eccaht.plants.incident.counts import kept
from eccaht.plants.incident.drill import RUNS
from eccaht.plants.show.words import WIDTH


def calibrate(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE...", help="CSV, gzipped CSV or Parquet.", show_default=False)
    ] = None,
    out: Annotated[Path | None, option("MODEL", "Where the model goes; without it --update only compares.")] = None,
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
    drills: Annotated[int, option("N", "Faults to put into the history.", min=1)] = RUNS,
    no_drill: Annotated[bool, option(None, "Do not estimate how well faults would be found.", "--no-drill")] = False,
    start: Annotated[str | None, option("TIME", "Leave out rows before then, as 2017-09-25T18:00.")] = None,
    stop: Annotated[str | None, option("TIME", "Leave out rows from then on.")] = None,
    update: Annotated[Path | None, option("MODEL", "Bring this model up to date with --data.")] = None,
    data: Annotated[list[Path] | None, option("FILE", "With --update: new rows; repeat it for several files.")] = None,
    learn: Annotated[
        list[str] | None, option("'TIME to TIME'", "With --update: learn this stretch though it was an alarm.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Turn a history of normal operation into a model.

    Gaps are filled. Empty and constant columns, labels and status columns that no other column predicts are
    dropped; --columns '*,NAME' keeps one. The others are scaled by median and interquartile range and averaged
    over windows.

    Then faults are put into stretches of the history and searched for, so that 'eccaht identify' can say how
    often such an answer is right.

    --update MODEL HISTORY... --data NEW drops the oldest windows of the history and adds the new ones, without
    incidents other than those to --learn. Both models are drilled on the new windows, and it says which is
    better; --out writes the new one. Without HISTORY the new model knows the new rows alone.
    """
    inputs: Inputs = {"FILE": files or [], "--update": update, "--data": data or []}
    check_outputs({"--out": out}, inputs)
    if update is not None or data or learn:
        from eccaht.cli.update import update_calibration

        fixed: dict[str, object] = {
            "--columns": columns,
            "--exclude": exclude,
            "--time-column": time_column,
            "--window": window,
        }
        fixed |= {"--row-interval": row_interval, "--start": start, "--stop": stop}
        update_calibration(
            update,
            files or [],
            data or [],
            fixed,
            learn=learn or (),
            notation=Notation(timezone, decimal_comma, False if no_header else None),
            drills=0 if no_drill else drills,
            out=out,
            as_json=as_json,
        )
        return
    if not files or out is None:
        raise ValueError(f"give {'--out MODEL, the file to write' if files else 'FILE..., a history to calibrate on'}")
    model = calibrate_history(
        files,
        columns=columns,
        exclude=exclude or (),
        time_column=time_column,
        row_interval=row_interval,
        timezone=timezone,
        decimal_comma=decimal_comma,
        header=not no_header,
        window=window,
        drills=0 if no_drill else drills,
        start=start,
        stop=stop,
        note=note,
    )
    deliver(
        [saved(out, model.save)],
        show=lambda: print_model(model),
        document=lambda written: document(model, str(out) if str(out) in written else None),
        as_json=as_json,
    )


def document(model: Model, out: str | None = None) -> dict[str, Any]:
    """What a program may want to know of a calibration, and where the model is if it could be written."""
    seconds = model.timed_seconds
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
        "false_alarm_every": None if model.normal is None else model.usual_rate,
        "notes": model.reading["notes"],
    }


def print_model(model: Model) -> None:
    """What became of each column, what the model was fitted to, and what drills found."""
    rows = [column.cells for column in model.columns]
    show_lines([HEADINGS, *rows])
    typer.echo()
    dropped, clock = len(rows) - len(model.names), model.clock
    span = f"from {clock.briefly(model.first)} to {clock.briefly(model.last, model.first)}{clock.said}"
    windows = f"{counted(model.n_windows, 'window')} of {clock.length(model.seconds)}"
    columns = f"{counted(len(model.names), 'sensor')} kept, {counted(dropped, 'column')} not"
    seconds = model.timed_seconds
    found = kept(model)
    _echo(
        f"{columns}; {windows}, {span}; {model.estimator}",
        *(f"Note: {text}" for text in model.reading["notes"]),
        *(() if found is None else found.counts.sentences(seconds)),
        *(() if found is None or not found.counts.caution else [f"CAUTION: {found.counts.caution}."]),
        *([] if model.normal is None else [_rate(model.usual_rate, seconds)]),
    )


def _echo(*sentences: str) -> None:
    for sentence in sentences:
        typer.echo(textwrap.fill(sentence, WIDTH, subsequent_indent="    ", break_on_hyphens=False))


def _rate(every: float, seconds: float | None) -> str:
    """The false-alarm rate that is used unless another is asked for."""
    length = counted(round(every), "window") if seconds is None else lasting(every * seconds)
    return f"Default false-alarm rate: one in {length}, which is what a history of this length can carry."
