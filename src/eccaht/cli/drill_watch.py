"""`eccaht drill --watch`: what would `eccaht watch` do here? Counted on quiet data of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from eccaht.cli.drill import seen
from eccaht.cli.noise import given
from eccaht.cli.output import PLOTS, check_outputs, deliver, note, saved, show_lines, shown_progress
from eccaht.data.clock import Clock
from eccaht.model.model import Model, load_model
from eccaht.presentation.text import listed
from eccaht.watch.drill import MOST_RUNS, RUNS, QuietAlarm, WatchDrilled, drill_watch, total
from eccaht.watch.drill_counts import WatchCounts
from eccaht.watch.drill_document import document
from eccaht.watch.drill_words import HEADINGS, history_line, line, remarks, rows
from eccaht.watch.history import Rule
from eccaht.watch.kept import Drilled, drills_of, keeping, rule_of
from eccaht.watch.plant import PlantWatch
from eccaht.watch.rates import promised

_SHOWN = 10  # alarms in quiet data that are listed


def drill_the_watch(
    model: Path,
    data: list[Path] | None,
    *,
    runs: int | None,
    seed: int | None,
    false_alarms: str | None,
    plot: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Watch quiet data, put faults into them, and tell what was counted."""
    if not data and (asked := list(given(runs=runs, seed=seed, plot=plot, out=out))):
        raise ValueError(f"--{asked[0]} needs new drills: give --data QUIET, quiet data that the model has not seen")
    if runs is not None and runs > MOST_RUNS:
        raise ValueError(f"--runs {runs}: a watch is drilled with at most {MOST_RUNS} faults")
    check_outputs({"--plot": plot, "--out": out}, {"--data": data}, {"--plot": PLOTS})
    check_outputs({"--plot": plot}, {"MODEL": model})  # --out may be MODEL itself: it is replaced once it is complete
    calibrated = load_model(model)
    every = promised(false_alarms, calibrated)
    rule = rule_of(calibrated)
    if not data:
        _tell_kept(model, calibrated, rule, every, as_json=as_json)
        return
    options: dict[str, Any] = {"runs": RUNS if runs is None else runs, "seed": seed or 0}
    watch = PlantWatch(calibrated, rule, false_alarm_every=every)
    with shown_progress("reading the data") as bar:
        windows = calibrated.prepare(data, bad="skip")
        bar.total(total(len(windows.values), watch.normal.width, options["runs"]), "windows")
        drilled = drill_watch(watch, windows, **options, progress=bar.advance)
    counts, seconds = WatchCounts.of(drilled), None if calibrated.clock.counted else calibrated.seconds
    kept = Drilled(counts, drilled.confidence)
    notes = (*windows.notes, *seen(calibrated, windows))
    for text in notes:
        note(text)
    deliver(
        [saved(plot, lambda path: _draw(counts, seconds, path)), saved(out, keeping(calibrated, rule, kept).save)],
        tell=lambda: _tell(drilled, counts, seconds, windows.clock),
        document=lambda files: {
            "model": str(model),
            "settings": {"data": [str(path) for path in data], **options},
            **document(drilled, windows),
            "notes": list(notes),
            "files": files,
        },
        as_json=as_json,
    )


def _tell_kept(path: Path, model: Model, rule: Rule, every: float, *, as_json: bool) -> None:
    """The drills that a model keeps, or else what its rule says of itself."""
    drilled, seconds = drills_of(model), None if model.clock.counted else model.seconds
    said = history_line(rule, every) if drilled is None else line(drilled.counts, seconds)

    def tell() -> None:
        typer.echo(said)
        if drilled is None:
            typer.echo("Give --data QUIET to drill it: quiet data that the model has not seen.")
        else:
            _tell_counts(drilled.counts, seconds)

    deliver(
        [],
        tell=tell,
        document=lambda _: {
            "model": str(path),
            "line": said,
            "false_alarm_every": every if drilled is None else drilled.counts.every,
            "history_windows": rule.passes.windows,
            "basis": rule.basis(every),
            "counts": None if drilled is None else drilled.counts.header(),
        },
        as_json=as_json,
    )


def _draw(counts: WatchCounts, seconds: float | None, path: Path) -> None:
    from eccaht.presentation.style import save_picture
    from eccaht.watch.drill_picture import draw

    save_picture(draw(counts, line=line(counts, seconds), seconds=seconds), path)


def _tell(drilled: WatchDrilled, counts: WatchCounts, seconds: float | None, clock: Clock) -> None:
    typer.echo(line(counts, seconds))
    _tell_counts(counts, seconds)
    for remark in _listed(drilled.plain.alarms, clock):
        typer.echo(remark)


def _tell_counts(counts: WatchCounts, seconds: float | None) -> None:
    typer.echo("")
    show_lines([HEADINGS, *rows(counts)])
    typer.echo("")
    for remark in remarks(counts, seconds):
        typer.echo(remark)


def _listed(alarms: tuple[QuietAlarm, ...], clock: Clock) -> Iterator[str]:
    """The first alarms in the quiet data, so that somebody can look what was there."""
    if alarms:
        yield f"Alarms in the quiet data{clock.said}; look whether these were false:"
    for alarm in alarms[:_SHOWN]:
        yield f"  {clock.show(alarm.time)}  {alarm.basis}: {listed(alarm.names)}"
    if len(alarms) > _SHOWN:
        yield f"  and {len(alarms) - _SHOWN} more, which --json lists"
