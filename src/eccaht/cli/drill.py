"""`eccaht drill`: how well would faults be found in this plant? Counted on its own quiet data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from eccaht.arrays import check_alpha
from eccaht.cli.noise import given
from eccaht.cli.options import Json, option
from eccaht.cli.output import PLOTS, check_outputs, deliver, note, saved, show_lines, shown_progress
from eccaht.data.windows import Windows
from eccaht.incident.counts import HEADINGS, Counts
from eccaht.incident.drilling import kinds_of
from eccaht.model.model import Model, load_model
from eccaht.presentation.text import counted, percent
from eccaht.statistics import clopper_pearson

_DEFAULTS: dict[str, Any] = {"runs": 200, "seed": 0, "alpha": 0.05}


def drill(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What 'eccaht calibrate' wrote.")],
    data: Annotated[
        list[Path] | None, option("QUIET", "Quiet data that the model has not seen; repeat it for several files.")
    ] = None,
    runs: Annotated[int | None, option("N", "Faults to inject. [default: 200; 120 with --watch]", min=1)] = None,
    seed: Annotated[int | None, option("N", "Another seed is other faults. [default: 0]", min=0)] = None,
    alpha: Annotated[float | None, option("A", "Error level that is promised. [default: 0.05]")] = None,
    plot: Annotated[Path | None, option("FILE", "Draw the share found: .png, .pdf or .svg.")] = None,
    out: Annotated[Path | None, option("MODEL", "Write the model with these drills instead of its own.")] = None,
    watch: Annotated[bool, option(None, "Count how 'eccaht watch' does instead.", "--watch")] = False,
    false_alarms: Annotated[
        str | None, option("RATE", "With --watch: how many are bearable, as 'eccaht watch' takes it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Count how well faults would be found, on your own quiet data.

    Steps, drifts, stuck sensors, noise, replayed readings and silence are put into random sensors of quiet stretches,
    and other stretches are left as they are. Each is judged as 'eccaht identify' would. One half of the drills serves
    to find what evidence is worth, so that sure answers keep their promise, and the other half is counted by it. What
    'eccaht identify' then uses is found from all of them. Without --data, what was counted when the model was
    calibrated is shown.

    With --watch the quiet data are watched from beginning to end, as 'eccaht watch' would: alarms beside what was
    promised, and of faults that begin at random which share is found, how soon, and whose sensors are named.
    """
    if watch:
        for name in given(alpha=alpha):
            raise ValueError(f"--{name} does not go with --watch: drop one of them")
        from eccaht.cli.drill_watch import drill_the_watch  # as late as the work, which alone needs it

        wanted: dict[str, Any] = {"runs": runs, "seed": seed, "false_alarms": false_alarms, "plot": plot, "out": out}
        drill_the_watch(model, data, **wanted, as_json=as_json)
        return
    if false_alarms is not None:
        raise ValueError("--false-alarms needs --watch: without it nothing is watched")
    options = given(runs=runs, seed=seed, alpha=None if alpha is None else check_alpha(alpha))
    if not data and (asked := [f"--{name}" for name in options] + ["--out"] * (out is not None)):
        raise ValueError(f"{asked[0]} needs new drills: give --data QUIET, quiet data that the model has not seen")
    check_outputs({"--plot": plot, "--out": out}, {"--data": data}, {"--plot": PLOTS})
    check_outputs({"--plot": plot}, {"MODEL": model})  # --out may be MODEL itself: it is replaced once it is complete
    options = _DEFAULTS | options if data else {}
    from eccaht.incident.drill import keeping, kept  # as late as the work, which alone needs it

    calibrated = load_model(model)
    notes: tuple[str, ...] = ()
    if data:
        result, notes = _drilled(calibrated, data, options)
        calibrated = keeping(calibrated, result)
    elif (result := kept(calibrated)) is None:
        raise ValueError(f"{model} has no drills: give --data QUIET, or calibrate it without --no-drill")
    for text in notes:
        note(text)
    counts, seconds = result.counts, None if calibrated.clock.counted else calibrated.seconds
    deliver(
        [saved(plot, lambda path: _draw(counts, seconds, path)), saved(out, calibrated.save)],
        tell=lambda: _tell(counts, seconds),
        document=lambda files: {
            "model": str(model),
            "settings": {"data": [str(path) for path in data or ()], **options},
            **document(counts, seconds),
            "notes": list(notes),
            "files": files,
        },
        as_json=as_json,
    )


def _drilled(model: Model, data: list[Path], options: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """The drills in these data, and what a user should know of how they were read."""
    from eccaht.incident.drill import drilled

    with shown_progress("reading the data") as bar:
        windows = model.prepare(data, bad="skip")
        bar.total(len(kinds_of(options["runs"])), "drills")
        result = drilled(model, windows, **options, progress=bar.advance)
    return result, (*windows.notes, *seen(model, windows))


def seen(model: Model, windows: Windows) -> Iterator[str]:
    """Drills in windows that the model was fitted to are easier than life."""
    if model.clock.row_interval is not None:  # rows are counted from the first: their numbers say nothing about time
        return
    seen = int(((windows.starts >= model.first) & (windows.starts <= model.last)).sum())
    if seen:
        yield (
            f"{seen} of the {len(windows.starts)} windows lie in the time of the history that the model was calibrated "
            "on: counts on data that it has seen may be too good"
        )


def _draw(counts: Counts, seconds: float | None, path: Path) -> None:
    from eccaht.incident.drill_picture import draw
    from eccaht.presentation.style import save_picture

    save_picture(draw(counts, line=counts.line(seconds)), path)


def document(counts: Counts, seconds: float | None) -> dict[str, Any]:
    """What a program may want to know of drills."""
    return {
        "line": counts.line(seconds),
        "alpha": counts.alpha,
        "factor": counts.factor,
        "faults": counts.faults,
        "sets_right": counts.right,
        "sensors_faulty": counts.present,
        "sensors_found": counts.found,
        "sensors_falsely_named": counts.falsely_named,
        "sure": counts.sure,
        "sure_and_wrong": counts.sure_and_wrong,
        "promise_holds": counts.holds,
        "sure_and_wrong_interval": _interval(counts.sure_and_wrong, counts.sure),
        "quiet_stretches": counts.quiet,
        "quiet_windows": counts.quiet_windows,
        "quiet_hours": None if seconds is None else counts.quiet_windows * seconds / 3600.0,
        "alarms": counts.alarms,
        "alarms_interval": _interval(counts.alarms, counts.quiet),
        "kinds": [
            {
                "kind": cell.kind,
                "sizes": [cell.low, cell.high] if cell.high else None,
                "faults": cell.faults,
                "sets_right": cell.right,
                "sensors_faulty": cell.present,
                "sensors_found": cell.found,
                "share": cell.share,
                "interval": cell.interval,
            }
            for cell in counts.cells
        ],
    }


def _interval(count: int, trials: int) -> tuple[float, float] | None:
    return clopper_pearson(count, trials) if trials else None


def _tell(counts: Counts, seconds: float | None) -> None:
    typer.echo(f"{counts.line(seconds)}\n")
    show_lines([HEADINGS, *counts.rows()])
    typer.echo("")
    for line in _remarks(counts):
        typer.echo(line)


def _remarks(counts: Counts) -> Iterator[str]:
    yield "size: in robust units; share: of the faulty sensors, those that were named."
    yield "Counted on every second drill, by what the others say evidence is worth; the model keeps what all say."
    yield f"Falsely named: {counted(counts.falsely_named, 'sensor')} in {counted(counts.faults, 'fault')}."
    yield f"Alarms: {_of(counts.alarms, counts.quiet, 'quiet stretches')}."
    sure = _of(counts.sure_and_wrong, counts.sure, "sure answers")
    kept = "" if counts.holds else ": more than chance explains, take sure answers with care"
    yield f"Sure and wrong: {sure}; promised: at most {percent(counts.alpha)}{kept}."
    if counts.factor < 1.0:
        yield f"'eccaht identify' multiplies the evidence by {counts.factor:.2g}, which is fitted to all drills."


def _of(count: int, trials: int, what: str) -> str:
    interval = _interval(count, trials)
    if interval is None:
        return f"there were no {what}"
    low, high = map(percent, interval)
    return f"{count} of {trials} {what}, {percent(count / trials)} (95 % interval {low} to {high})"
