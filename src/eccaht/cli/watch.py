"""`eccaht watch`: a plant watched window by window, recorded or as it happens.

Windows come from complete files (`RecordedWindows`) or from one that grows (`Growing`). `Watching` hands them to the
session of the plant, reports the events and keeps the state.
"""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event as Flag
from time import monotonic
from typing import Annotated, Any

import numpy as np
import typer

from eccaht.base.clock import Clock, parse_duration
from eccaht.base.files import exclusive, regular_file
from eccaht.base.presentation.text import counted
from eccaht.cli.output import (
    DecimalComma,
    Missing,
    NoHeader,
    Timezone,
    check_outputs,
    ended_by_signals,
    note,
    option,
)
from eccaht.cli.watch_outlets import Commands, Log, Outlets, of_program
from eccaht.plants import (
    Event,
    Model,
    Notation,
    PlantWatch,
    Sample,
    Session,
    false_alarm_every,
    load_model,
    rate_line,
)
from eccaht.plants.front.rows import begin_plan
from eccaht.plants.incident.investigate import compare
from eccaht.plants.intake import Follower
from eccaht.plants.watch.active import masked

_SAVED_EVERY = 1.0  # seconds at least between states without an event


def watch(
    model: Annotated[Path, option("MODEL", "What 'eccaht calibrate' wrote.")],
    data: Annotated[list[Path], option("FILE", "CSV or Parquet; repeat it for several files.")],
    follow: Annotated[bool, option(None, "Go on as the CSV file grows, until Ctrl-C or SIGTERM.", "--follow")] = False,
    false_alarms: Annotated[
        str | None,
        option("RATE", "1/30d for one a month, 1/5000w for windows. [default: what the history can carry]"),
    ] = None,
    state: Annotated[Path | None, option("FILE", "Keep the state here, and go on from it.")] = None,
    log: Annotated[Path | None, option("FILE", "Append each event as a line of JSON.")] = None,
    run: Annotated[
        str | None,
        option(
            "CMD", "Run this if something is wrong, or nothing can be watched; the event is on its stdin.", "--exec"
        ),
    ] = None,
    orders: Annotated[
        Path | None,
        option("FILE", "Obey the lines added to this file: acknowledge, shelve NAME 2h, normal, restore."),
    ] = None,
    readings: Annotated[
        float | None, option("M", "Use only M readings of a window, those that the watch asks for, of all in the data.")
    ] = None,
    missing: Missing = "refuse",
    timezone: Timezone = None,
    decimal_comma: DecimalComma = None,
    no_header: NoHeader = False,
    as_json: Annotated[bool, option(None, "Print one JSON document a line.", "--json")] = False,
    timeout: Annotated[str | None, option("TIME", "With --follow: end after so long without new rows, as 50s.")] = None,
) -> None:
    """Watch a plant round the clock and report what goes wrong.

    Each event is one line: an alarm with the sensors that are wrong and since when, sensors that join or leave
    it, its end, sensors that fall silent or stand still, windows without rows. With --state the next start goes
    on after the last window that was counted, whatever ended the one before.
    """
    if timeout is not None and not follow:
        raise ValueError("--timeout is for growing files: add --follow")
    quiet = None if timeout is None else parse_duration(timeout, "--timeout")
    commands = None if run is None else Commands(run)
    reading: dict[str, Any] = {
        "missing": missing,
        "notation": Notation(timezone, decimal_comma, False if no_header else None),
    }
    check_outputs({"--state": state, "--log": log}, {"--model": model, "--data": data, "--orders": orders})
    calibrated = load_model(model)
    every = false_alarm_every(false_alarms, calibrated)
    for path in data:
        regular_file(path, "data file").close()
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    with ExitStack() as held:
        if state is not None:
            busy = f"--state {state} is in use by another watch: end that one, or give another file"
            held.enter_context(exclusive(state.with_name(f"{state.name}.lock"), busy))
        session = resumed(state, calibrated, digest, every, readings)
        after = None if session is None else session.position
        windows = (
            Growing(calibrated, data, after, timeout=quiet, **reading)
            if follow
            else RecordedWindows(calibrated, data, after, whole=state is None, **reading)
        )
        outlets = Outlets(None if log is None else Log(log), commands, as_json=as_json)
        begun = session is None
        if session is None:
            plan = begin_plan(calibrated, readings)
            watched = PlantWatch(calibrated, false_alarm_every=every, decimals=windows.decimals, plan=plan)
            session = Session(watched, digest)
        if readings is not None:
            note(f"of each window only {readings:g} readings are used, those asked for, as if no more had come")
        for text in windows.notes:
            note(text)
        with ended_by_signals(windows.end):
            outlets.report([_started(session, model, begun)])
            watching = Watching(session, state, outlets, orders)
            if begun:
                session.obeyed = len(watching.lines())
            watching.run(windows)
            outlets.report([of_program("stopped", f"stopped: {counted(session.windows, 'window')} so far")])
            outlets.finish()
    if windows.broken:
        raise typer.Exit(1)


def resumed(
    path: Path | None, model: Model, digest: str, every: float, readings: float | None = None
) -> Session | None:
    """The session that an earlier program left, if there is one; refused if it watches in another way."""
    if path is None or not path.exists():
        return None
    session = Session.load(path, model, digest)
    before, plan = session.watch.false_alarm_every, session.watch.plan
    if (None if plan is None else plan.readings) != readings:
        how = "without --readings" if plan is None else f"with --readings {plan.readings:g}"
        raise ValueError(f"--state {path} was begun {how}: go on so, or give another file to begin anew")
    if abs(before - every) > 1e-9 * every:
        raise ValueError(
            f"--state {path} was begun with a false alarm in {before:g} windows, not in {every:g}: "
            f"go on at that rate with --false-alarms 1/{before:.0f}w, or give another file to begin anew"
        )
    return session


def _started(session: Session, path: Path, begun: bool) -> Event:
    model, clock = session.model, session.model.clock
    sensors, windows = counted(len(model.names), "sensor"), f"windows of {clock.length(model.seconds)}"
    text = f"started: {path.name}, {sensors}, {windows}, {rate_line(session.watch)}"
    if not begun and session.position is not None:
        text = f"{text}; goes on after {clock.show(session.position)}"
    return of_program("started", text)


class RecordedWindows:
    """The windows of complete files after the start `after`; the last one, which may lack rows, only if `whole`."""

    broken = False

    def __init__(
        self, model: Model, data: list[Path], after: np.datetime64 | None, *, whole: bool, **reading: Any
    ) -> None:
        self._windows = model.prepare(data, bad="skip", **reading)
        self._after, self._whole, self._ended = after, whole, Flag()
        self.clock, self.decimals = self._windows.clock, self._windows.decimals
        self.notes = (*self._windows.notes, *compare(model, self._windows)[1])
        self.end = self._ended.set

    def __iter__(self) -> Iterator[Sample]:
        starts = self._windows.starts
        first = 0 if self._after is None else int(np.searchsorted(starts, self._after, side="right"))
        last = len(starts) if self._whole else len(starts) - 1
        for k, sample in enumerate(self._windows.samples()):
            if self._ended.is_set():
                return
            if first <= k < last:
                yield sample


class Growing:
    """The complete windows after the start `after` of a CSV file that grows, until `end` or a time without rows.

    The last window, which more rows may follow, is left to the next program. broken: whether an error ended it.
    decimals: only known of recordings.
    """

    decimals: dict[str, int | None] | None = None

    def __init__(self, model: Model, data: list[Path], after: np.datetime64 | None, **reading: Any) -> None:
        if len(data) != 1:
            raise ValueError(f"--follow needs one growing CSV file, not {len(data)}: give one --data")
        self._follower, self._after = Follower(model, data[0], note=note, **reading), after
        self.notes, self.broken, self._ended = list[str](), False, False
        if reading["missing"] == "allow" and (absent := {*model.names} - {*self._follower.file.present()}):
            self.notes.append(f"not watched, because the file does not have them: {', '.join(sorted(absent))}")

    @property
    def clock(self) -> Clock:
        """What the times mean, known from the first window on."""
        return self._follower.clock

    def end(self) -> None:
        """End soon; safe to call from a signal handler."""
        self._ended = True
        self._follower.end()

    def __iter__(self) -> Iterator[Sample]:
        file, samples = self._follower.file, iter(self._follower)
        while True:
            try:
                sample = next(samples, None)
            except ValueError:
                if self._over and not file.rows:  # ended before anything was written
                    return
                raise
            if self._over:
                return
            if sample is None:
                self.broken = True
                return
            if self._after is None or sample.start > self._after:
                yield sample

    @property
    def _over(self) -> bool:
        return self._ended or self._follower.file.timed_out


class Watching:
    """Takes the windows of one plant, reports their events and keeps the state, in the file `path` if there is one."""

    def __init__(self, session: Session, path: Path | None, outlets: Outlets, orders: Path | None = None) -> None:
        self._session, self._path, self._outlets, self._orders = session, path, outlets, orders
        self._saved = monotonic()

    def run(self, windows: RecordedWindows | Growing) -> None:
        """Report what an earlier program may not have reported, then watch until the windows end."""
        if self._session.pending:
            self._outlets.report(self._session.pending, again=True)
            self._session.settle()
            self._save()
        for sample in windows:
            self._take(sample, windows.clock)
        self._save()

    def _take(self, sample: Sample, clock: Clock) -> None:
        """Take a window; events are in the state before they are given out, and crossed out there afterwards."""
        session, given = self._session, self._new_orders()
        events = [event for order in given for event in self._obey(order, sample.start, clock)]
        if session.watch.plan is not None:
            asked = session.model.places(session.watch.ask())
            sample = sample._replace(values=masked(sample.values, asked))
        events += session.take(sample, clock) + session.hear(clock)
        if events:
            self._save()
            self._outlets.report(events)
            session.settle()
        if events or given or monotonic() - self._saved >= _SAVED_EVERY:
            self._save()

    def _save(self) -> None:
        if self._path is not None:
            self._session.save(self._path)
        self._saved = monotonic()

    def lines(self) -> list[str]:
        """The finished lines of the file of orders, which need not be there yet."""
        if self._orders is None or not self._orders.is_file():
            return []
        text = self._orders.read_text(encoding="utf-8", errors="replace")
        return text[: text.rfind("\n") + 1].splitlines()

    def _new_orders(self) -> list[str]:
        """Those since the last window; a file that became shorter is another one and is read from its beginning."""
        lines = self.lines()
        done = self._session.obeyed if self._session.obeyed <= len(lines) else 0
        self._session.obeyed = len(lines)
        return [line for line in lines[done:] if line.strip()]

    def _obey(self, order: str, time: np.datetime64, clock: Clock) -> list[Event]:
        try:
            return self._session.obey(order, time, clock)
        except ValueError as error:
            note(f"the order {order.strip()!r} was not obeyed: {error}")
            return []
