"""`eccaht drill`: how well would faults be found in this plant? Estimated on its own quiet data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from eccaht.base.arrays import check_alpha
from eccaht.base.presentation.text import counted, percent
from eccaht.base.statistics import clopper_pearson
from eccaht.cli.output import PLOTS, Json, check_outputs, deliver, note, option, saved, show_lines
from eccaht.cli.problems import given
from eccaht.plants import Counts, Windows, false_alarm_every
from eccaht.plants.front import Drills, ReadingDrills, load_model
from eccaht.plants.front.reading_drills import RUNS as READING_RUNS
from eccaht.plants.incident.drill import ALPHA, AT_ALARM, HEADINGS, RUNS, keeping, rows

_SHOWN = 10  # alarms in quiet data that are listed


def drill(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What 'eccaht calibrate' wrote.")],
    data: Annotated[
        list[Path] | None, option("QUIET", "Quiet data that the model has not seen; repeat it for several files.")
    ] = None,
    runs: Annotated[int | None, option("N", f"Faults to inject. [default: {RUNS}]", min=1)] = None,
    seed: Annotated[int | None, option("N", "Another seed is other faults. [default: 0]", min=0)] = None,
    alpha: Annotated[float | None, option("A", f"1 less the confidence asked for. [default: {ALPHA}]")] = None,
    plot: Annotated[Path | None, option("FILE", "Draw the share found and the delay: .png, .pdf or .svg.")] = None,
    out: Annotated[Path | None, option("MODEL", "Write the model with these drills instead of its own.")] = None,
    watch: Annotated[bool, option(None, "Also show how often an alarm names the right set.", "--watch")] = False,
    false_alarms: Annotated[
        str | None, option("RATE", "As 1/30d or 1/5000w. [default: what the history can carry]")
    ] = None,
    readings: Annotated[
        str | None, option("LIST", "How well with so many readings in a window, as 2,4,8,all, instead.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate how well faults would be found, on your own quiet data.

    Faults of known kind, each with a beginning and an end, are put into random sensors of quiet data, and found
    as 'eccaht identify' and 'eccaht watch' find them. The quiet data are also run as they are, and false alarms
    counted.

    Without --data, the drills that the model keeps are shown: 'eccaht calibrate' ran them on its history.

    --readings 2,4,8,all: the price of reading less, on the history that the model keeps or on --data. The same
    faults are watched with so many readings of a window, those that tell most or all sensors in turn.
    """
    if readings is not None:
        if watch or out is not None:
            raise ValueError("--watch and --out are for drills of the full watch: leave them out, or --readings")
        _drill_readings(model, data, _numbers(readings), plot, runs, seed, false_alarms, as_json=as_json)
        return
    options = given(runs=runs, seed=seed, alpha=None if alpha is None else check_alpha(alpha))
    asked = [f"--{name}" for name in given(**options, false_alarms=false_alarms, out=out)]
    if not data and asked:
        option_name = asked[0].replace("_", "-")
        raise ValueError(f"{option_name} needs new drills: give --data QUIET, quiet data that the model has not seen")
    check_outputs({"--plot": plot, "--out": out}, {"--data": data}, {"--plot": PLOTS})
    check_outputs({"--plot": plot}, {"MODEL": model})  # --out may be MODEL itself: it is replaced once it is complete
    calibrated = load_model(model)
    if data:
        false_alarm_every(false_alarms, calibrated)  # so that a message calls it by the name of the option
        drills = calibrated.drill(data, **options, false_alarms=false_alarms)
    elif calibrated.drilled is None:
        raise ValueError(f"{model} has no drills: give --data QUIET, or calibrate with drills on at least 100 windows")
    else:
        drills = calibrated.drill()
    for text in drills.notes:
        note(text)
    deliver(
        [saved(plot, drills.plot), saved(out, keeping(calibrated, drills.drilled).save)],
        show=lambda: _print(drills, watch=watch),
        document=lambda files: {
            "model": str(model),
            "settings": {"data": [str(path) for path in data or ()], **drills.settings},
            **drills.to_dict(),
            "files": files,
        },
        as_json=as_json,
    )


def _numbers(text: str) -> list[float | None]:
    """Numbers of readings; None stands for all."""
    try:
        return [None if part.strip() == "all" else float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--readings {text!r} is no list of numbers: write it as 2,4,8,all") from None


def _drill_readings(
    path: Path,
    data: list[Path] | None,
    numbers: list[float | None],
    plot: Path | None,
    runs: int | None,
    seed: int | None,
    false_alarms: str | None,
    *,
    as_json: bool,
) -> None:
    check_outputs({"--plot": plot}, {"--data": data, "MODEL": path}, {"--plot": PLOTS})
    model = load_model(path)
    false_alarm_every(false_alarms, model)  # so that a message calls it by the name of the option
    found = model.drill(data or None, readings=numbers, runs=runs, seed=seed, false_alarms=false_alarms)
    settings = {"data": [str(each) for each in data or ()], "runs": runs or READING_RUNS, "seed": seed or 0}
    deliver(
        [saved(plot, found.plot)],
        show=lambda: _print_readings(found),
        document=lambda files: {"model": str(path), "settings": settings, **found.to_dict(), "files": files},
        as_json=as_json,
    )


def _print_readings(found: ReadingDrills) -> None:
    typer.echo(f"{found.line}\n")
    table: list[tuple[str, ...]] = [
        ("readings", "rule", "drills", "found", "95 % interval", "delay", "later", "false alarms")
    ]
    for each in found.counts:
        low, high = map(percent, each.interval)
        share = percent(each.found / each.drills) if each.drills else ""
        shown = ["" if value is None else f"{value:.3g}" for value in (each.delay, each.later)]
        table.append(
            (f"{each.readings:g}", each.rule, str(each.drills), share, f"{low} to {high}", *shown, str(each.alarms))
        )
    show_lines(table)
    quiet = found.counts[0].quiet if found.counts else 0
    typer.echo(
        f"\ndelay: median windows to the alarm; later: mean windows after the full watch, of faults that both found; "
        f"false alarms: in {counted(quiet, 'quiet window')}, {quiet / found.every:.2g} expected."
    )


def _print(drills: Drills, *, watch: bool) -> None:
    counts = drills.counts
    typer.echo("\n".join([*drills.sentences, ""]))
    show_lines([(*HEADINGS, AT_ALARM) if watch else HEADINGS, *rows(counts, at_alarm=watch)])
    typer.echo("")
    for line in (*_remarks(counts, drills.model.timed_seconds), *_listed(counts, drills.windows)):
        typer.echo(line)


def _remarks(counts: Counts, seconds: float | None) -> Iterator[str]:
    yield "size: in robust units; delay: median windows to the alarm; right set, onset, end: of the faults found."
    alarms, expected = counts.false_alarms
    rate = f"{counts.every:.6g} windows" if seconds is None else f"{counts.every * seconds / 86_400:.3g} days"
    asked = f"one in {rate} was asked for, {expected:.2g} expected"
    quiet = counted(counts.quiet.windows, "quiet window")
    yield f"False alarms: {alarms} in {quiet}; {asked}. Time in alarm: {percent(counts.share_in_alarm)}."
    confident, wrong = counts.confident
    if not confident:
        yield f"Confident and wrong: no answer had a confidence of {percent(1.0 - counts.alpha)}."
        return
    low, high = map(percent, clopper_pearson(wrong, confident))
    kept = "" if counts.holds else ": more than chance explains, so 'eccaht identify' gives no confidence"
    yield (
        f"Confident and wrong: {wrong} of {confident} confident answers, {percent(wrong / confident)} (95 % interval "
        f"{low} to {high}), where {percent(counts.alpha)} may be{kept}."
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
