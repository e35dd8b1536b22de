"""`eccaht drill`: how well would faults be found in this plant? Estimated on its own quiet data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from eccaht.base.arrays import check_alpha
from eccaht.base.presentation.text import counted, percent
from eccaht.base.statistics import clopper_pearson
from eccaht.cli.noise import given
from eccaht.cli.output import PLOTS, Json, check_outputs, deliver, note, option, saved, show_lines, shown_progress
from eccaht.plants import Counts, Drilled, Model, Windows, drill_trials, false_alarm_every, load_model
from eccaht.plants.incident.answer import kept
from eccaht.plants.incident.drill import ALPHA, AT_ALARM, HEADINGS, RUNS, keeping, rows
from eccaht.plants.incident.trials import Trial

_SHOWN = 10  # alarms in quiet data that are listed


def drill(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What 'eccaht calibrate' wrote.")],
    data: Annotated[
        list[Path] | None, option("QUIET", "Quiet data that the model has not seen; repeat it for several files.")
    ] = None,
    runs: Annotated[int | None, option("N", f"Faults to inject. [default: {RUNS}]", min=1)] = None,
    seed: Annotated[int | None, option("N", "Another seed is other faults. [default: 0]", min=0)] = None,
    alpha: Annotated[float | None, option("A", f"1 less the confidence of a sure answer. [default: {ALPHA}]")] = None,
    plot: Annotated[Path | None, option("FILE", "Draw the share found and the delay: .png, .pdf or .svg.")] = None,
    out: Annotated[Path | None, option("MODEL", "Write the model with these drills instead of its own.")] = None,
    watch: Annotated[bool, option(None, "Also show how often an alarm names the right set.", "--watch")] = False,
    false_alarms: Annotated[
        str | None, option("RATE", "As 1/30d or 1/5000w. [default: what the history can carry]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate how well faults would be found, on your own quiet data.

    Steps, drifts, stuck sensors, noise, replayed readings, silence and faults that are concealed by replayed readings
    of their neighbours are put into random sensors of quiet data, each with a beginning and an end. They go through the
    same engine as with 'eccaht identify' and 'eccaht watch': which share is found, how soon, how well it is dated, and
    how often exactly the faulty sensors are named. The quiet data are also run as they are, and false alarms counted.

    Without --data, the drills that the model keeps are shown: 'eccaht calibrate' ran them on its history.
    """
    options = given(runs=runs, seed=seed, alpha=None if alpha is None else check_alpha(alpha))
    asked = [f"--{name}" for name in given(**options, false_alarms=false_alarms, out=out)]
    if not data and asked:
        option_name = asked[0].replace("_", "-")
        raise ValueError(f"{option_name} needs new drills: give --data QUIET, quiet data that the model has not seen")
    check_outputs({"--plot": plot, "--out": out}, {"--data": data}, {"--plot": PLOTS})
    check_outputs({"--plot": plot}, {"MODEL": model})  # --out may be MODEL itself: it is replaced once it is complete
    calibrated = load_model(model)
    windows: Windows | None = None
    trials: Sequence[Trial] = ()
    notes: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    if data:
        settings = {"runs": RUNS, "seed": 0, "alpha": ALPHA} | options
        settings["every"] = false_alarm_every(false_alarms, calibrated)
        with shown_progress("reading the data") as bar:
            windows = calibrated.prepare(data, bad="skip")
            bar.total(settings["runs"], "drills")
            result, trials = drill_trials(calibrated, windows, **settings, unseen=True, progress=bar.advance)
        notes = (*windows.notes, *_seen(calibrated, windows))
        calibrated = keeping(calibrated, result)
    elif (found := kept(calibrated)) is None:
        raise ValueError(f"{model} has no drills: give --data QUIET, or calibrate it without --no-drill")
    else:
        result = found
    for text in notes:
        note(text)
    counts, seconds = result.counts, None if calibrated.clock.counted else calibrated.seconds
    deliver(
        [saved(plot, lambda path: _draw(counts, seconds, path)), saved(out, calibrated.save)],
        show=lambda: _print(counts, seconds, windows, watch=watch),
        document=lambda files: {
            "model": str(model),
            "settings": {"data": [str(path) for path in data or ()], **settings},
            **document(result, seconds),
            "quiet_alarms": _begun(counts, windows),
            "trials": [_trial(trial, calibrated.names) for trial in trials],
            "notes": list(notes),
            "files": files,
        },
        as_json=as_json,
    )


def _seen(model: Model, windows: Windows) -> Iterator[str]:
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
    from eccaht.base.presentation.style import save_picture
    from eccaht.plants.incident.drill_picture import draw  # as late as the picture, which alone needs matplotlib

    save_picture(draw(counts, line=counts.line(seconds)), path)


# -- for people ----------------------------------------------------------------------------------------


def _print(counts: Counts, seconds: float | None, windows: Windows | None, *, watch: bool) -> None:
    typer.echo(f"{counts.line(seconds)}\n")
    show_lines([(*HEADINGS, AT_ALARM) if watch else HEADINGS, *rows(counts, at_alarm=watch)])
    typer.echo("")
    for line in (*_remarks(counts, seconds), *_listed(counts, windows)):
        typer.echo(line)


def _remarks(counts: Counts, seconds: float | None) -> Iterator[str]:
    yield "size: in robust units; delay: median windows to the alarm; right set, onset, end: of the faults found."
    alarms, expected = counts.false_alarms
    rate = f"{counts.every:.6g} windows" if seconds is None else f"{counts.every * seconds / 86_400:.3g} days"
    asked = f"one in {rate} was asked for, {expected:.2g} expected"
    quiet = counted(counts.quiet.windows, "quiet window")
    yield f"False alarms: {alarms} in {quiet}; {asked}. Time in alarm: {percent(counts.share_in_alarm)}."
    sure, wrong = counts.sure
    if not sure:
        yield f"Sure and wrong: no answer had a confidence of {percent(1.0 - counts.alpha)}."
        return
    low, high = map(percent, clopper_pearson(wrong, sure))
    kept = "" if counts.holds else ": more than chance explains, so 'eccaht identify' gives no confidence"
    yield (
        f"Sure and wrong: {wrong} of {sure} confident answers, {percent(wrong / sure)} (95 % interval {low} to "
        f"{high}), where {percent(counts.alpha)} may be{kept}."
    )


def _listed(counts: Counts, windows: Windows | None) -> Iterator[str]:
    """The first alarms in the quiet data, to look up what was there; or how to drill other data."""
    if windows is None:
        yield "These drills were run on the history. Give --data QUIET to drill quiet data that the model has not seen."
        return
    clock, begun = windows.clock, counts.quiet.begun
    if begun:
        yield f"Alarms in the quiet data{clock.said}; check whether these were false:"
        yield from (f"  {clock.show(windows.starts[t])}" for t in begun[:_SHOWN])
        if len(begun) > _SHOWN:
            yield f"  and {len(begun) - _SHOWN} more, which --json lists"


# -- for programs --------------------------------------------------------------------------------------


def document(drilled: Drilled, seconds: float | None) -> dict[str, Any]:
    """What a program may want to know of drills."""
    counts = drilled.counts
    sure, wrong = counts.sure
    alarms, expected = counts.false_alarms
    names = {"found": "found", "right": "sets_right", "at_alarm": "sets_right_at_alarm", "onset": "onset_within_2"}
    names |= {"end": "end_within_5", "sensors": "sensors_faulty", "named": "sensors_found"}
    return {
        "line": counts.line(seconds),
        "alpha": counts.alpha,
        "faults": counts.drills,
        **{key: counts.total(name) for name, key in names.items()},
        "sure": sure,
        "sure_and_wrong": wrong,
        "sure_and_wrong_interval": clopper_pearson(wrong, sure) if sure else None,
        "confidence_holds": counts.holds,
        "quiet_windows": counts.quiet.windows,
        "quiet_hours": None if seconds is None else counts.quiet.windows * seconds / 3600.0,
        "false_alarm_every": counts.every,
        "alarms": alarms,
        "alarms_expected": expected,
        "time_in_alarm": counts.share_in_alarm,
        "kinds": [
            {
                "kind": cell.kind,
                "sizes": [cell.low, cell.high] if cell.high else None,
                "faults": cell.drills,
                **{key: getattr(cell, name) for name, key in names.items()},
                "sure": cell.sure,
                "sure_and_wrong": cell.wrong,
                "delay": cell.delay if cell.found else None,
                "share": cell.share,
                "interval": cell.interval,
            }
            for cell in counts.cells
        ],
        "confidence": {name: part for name, part in drilled.header().items() if name != "counts"},
    }


def _begun(counts: Counts, windows: Windows | None) -> list[str]:
    if windows is None:
        return []
    return [windows.clock.exact(windows.starts[t]) for t in counts.quiet.begun]


def _trial(trial: Trial, names: Sequence[str]) -> dict[str, Any]:
    sets = {"sensors": trial.truth, "named": trial.named, "named_at_alarm": trial.raised}
    numbers = ("kind", "size", "lasted", "found", "delay", "onset_error", "end_error", "right", "right_at_alarm")
    return {name: getattr(trial, name) for name in numbers} | {
        key: [names[k] for k in places] for key, places in sets.items()
    }
