"""`eccaht watch`: a plant watched window by window, recorded or as it happens."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any

import typer

from eccaht.base.durations import parse_duration
from eccaht.base.files import regular_file
from eccaht.base.presentation.text import counted
from eccaht.cli.identify_sums import Following
from eccaht.cli.options import DecimalComma, Missing, NoHeader, Timezone, option
from eccaht.cli.output import check_outputs, note
from eccaht.cli.search_view import ended_by_signals
from eccaht.cli.watch_fleet import Fleet, watch_fleet
from eccaht.cli.watch_outlets import Commands, Log, Outlets, of_program
from eccaht.cli.watch_session import Watching, check_rate
from eccaht.cli.watch_windows import Growing, RecordedWindows
from eccaht.plants.model.model import Model, load_model
from eccaht.plants.model.prepare import Notation
from eccaht.plants.watch.events import Event
from eccaht.plants.watch.rates import false_alarm_every, rate_line
from eccaht.plants.watch.session import Session
from eccaht.plants.watch.watchers import WatchedPlant


def watch(
    model: Annotated[Path | None, option("MODEL", "What 'eccaht calibrate' wrote.")] = None,
    data: Annotated[list[Path] | None, option("FILE", "CSV or Parquet; repeat it for several files.")] = None,
    follow: Annotated[bool, option(None, "Go on as the CSV file grows, until Ctrl-C or SIGTERM.", "--follow")] = False,
    false_alarms: Annotated[
        str | None,
        option("RATE", "1/30d for one a month, 1/5000w for windows. [default: what the history can carry]"),
    ] = None,
    state: Annotated[
        Path | None, option("FILE", "Keep the state here, and go on from it. With --fleet: a directory.")
    ] = None,
    log: Annotated[Path | None, option("FILE", "Append each event as a line of JSON.")] = None,
    run: Annotated[
        str | None,
        option("CMD", "Run this on an alarm, or if a sensor is stuck or silent; the event is on its stdin.", "--exec"),
    ] = None,
    shelve: Annotated[
        list[str] | None, option("NAME:TIME", "Leave a sensor out for a time, as FT-101:2h. Repeat.")
    ] = None,
    orders: Annotated[
        Path | None, option("FILE", "Obey the lines that are added to this file: acknowledge, shelve NAME 2h, normal.")
    ] = None,
    fleet: Annotated[
        Path | None, option("DIR", "Watch many plants: a folder each, with its model and data, or a plant.toml.")
    ] = None,
    scheduler: Annotated[
        str | None, option("ADDR", "With --fleet, for recordings: replay on the Dask cluster of this scheduler.")
    ] = None,
    missing: Missing = "refuse",
    timezone: Timezone = None,
    decimal_comma: DecimalComma = None,
    no_header: NoHeader = False,
    as_json: Annotated[bool, option(None, "Print one JSON document a line.", "--json")] = False,
    poll: Annotated[float, option("SECONDS", "With --follow: look so often.")] = 1.0,
    timeout: Annotated[float | None, option("SECONDS", "With --follow: end after so long without new rows.")] = None,
) -> None:
    """Watch a plant round the clock and report what goes wrong.

    Windows are prepared as the model's history was. Each event is one line: an alarm with the sensors that are wrong
    and since when, sensors that join or leave it, its end, sensors that fall silent or stand still, windows without
    rows. --false-alarms says how many false alarms are bearable in the long run. With --state the next start goes on
    after the last window that was counted, whatever ended the one before.
    """
    Following(follow, poll, timeout).check()
    commands = None if run is None else Commands(run)
    notation = Notation(timezone, decimal_comma, False if no_header else None)
    reading: dict[str, Any] = {"missing": missing, "notation": notation}
    if fleet is not None:
        single = {"--model": model, "--data": data, "--shelve": shelve, "--orders": orders}
        if given := [name for name, value in single.items() if value]:
            raise ValueError(f"--fleet watches many plants, each with its own data: leave out {', '.join(given)}")
        waits = (poll, timeout) if follow else None
        watch_fleet(Fleet(fleet, waits, false_alarms, state, log, commands, as_json, scheduler, reading))
        return
    if scheduler is not None:
        raise ValueError("--scheduler is for replays of many plants: add --fleet DIR")
    if model is None or not data:
        raise ValueError("give --model and --data, or --fleet DIR for many plants")
    check_outputs({"--state": state, "--log": log}, {"--model": model, "--data": data, "--orders": orders})
    calibrated = load_model(model)
    every = false_alarm_every(false_alarms, calibrated)
    shelved = [_order(text, calibrated) for text in shelve or ()]
    for path in data:
        regular_file(path, "data file").close()
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    session = None
    if state is not None and state.exists():
        session = check_rate(Session.load(state, calibrated, WatchedPlant.restored, digest), every, state)
    after = None if session is None else session.position
    windows = (
        Growing(calibrated, data, after, poll=poll, timeout=timeout, **reading)
        if follow
        else RecordedWindows(calibrated, data, after, whole=state is None, **reading)
    )
    outlets = Outlets(None if log is None else Log(log), commands, as_json=as_json)
    resumed = session is not None
    session = session or Session(calibrated, WatchedPlant.of(calibrated, every, windows.decimals), digest)
    for text in windows.notes:
        note(text)
    with ended_by_signals(windows.end), outlets.shown(session):
        outlets.report([_started(session, model, resumed)])
        watching = Watching(session, state, outlets, orders)
        if not resumed:
            session.obeyed = len(watching.lines())
        watching.run(windows, shelved)
        outlets.report([of_program("stopped", f"stopped: {counted(session.windows, 'window')} so far")])
        outlets.finish()
    if windows.broken:
        raise typer.Exit(1)


def _order(text: str, model: Model) -> str:
    """The order to leave a sensor out for a time."""
    name, colon, length = text.rpartition(":")
    if not colon:
        raise ValueError(f"--shelve {text!r} needs a sensor and a length of time, as FT-101:2h")
    model.places([name])
    parse_duration(length, f"--shelve {text}: the time")
    return f"shelve {name} {length.strip()}"


def _started(session: Session, path: Path, resumed: bool) -> Event:
    model = session.model
    assert isinstance(session.watcher, WatchedPlant)
    windows = f"windows of {model.clock.length(model.seconds)}"
    rate = rate_line(session.watcher.watch)
    text = f"started: {path.name}, {counted(len(model.names), 'sensor')}, {windows}, {rate}"
    if resumed and session.position is not None:
        text = f"{text}; goes on after {model.clock.show(session.position)}"
    return of_program("started", text)
