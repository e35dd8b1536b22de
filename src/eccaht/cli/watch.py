"""`eccaht watch`: a plant watched window by window, recorded or as it happens."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal

import numpy as np
import typer

from eccaht.cli.identify_sums import Following
from eccaht.cli.options import DecimalComma, Missing, NoHeader, Timezone, option
from eccaht.cli.output import check_outputs, note
from eccaht.cli.watch_outlets import Commands, Log, json_line
from eccaht.cli.watch_view import View, shown_live
from eccaht.cli.watch_windows import Growing, Recording
from eccaht.cli.watching import ended_by_signals
from eccaht.data.clock import Clock
from eccaht.data.durations import parse_duration
from eccaht.files import regular_file
from eccaht.model.model import Model, load_model
from eccaht.model.prepare import Notation
from eccaht.presentation.text import counted, listed
from eccaht.watch.events import Event
from eccaht.watch.session import Session
from eccaht.watch.watchers import ModelWatch

BY_TIME, BY_COUNT = "1/30d", "1/5000w"  # what is promised unless asked otherwise
URGENT = ("alarm", "stuck", "silent")  # events on which the command runs
_RATE = re.compile(r"\s*([1-9]\d{0,5})\s*/\s*(.+?)\s*")
_WINDOWS = re.compile(r"([1-9]\d{0,11})\s*w")
_SAVED_EVERY = 1.0  # seconds at least between states without an event


def watch(
    model: Annotated[Path, option("MODEL", "What 'eccaht calibrate' wrote.")],
    data: Annotated[list[Path], option("FILE", "CSV or Parquet; repeat it for several files.")],
    follow: Annotated[bool, option(None, "Go on as the CSV file grows, until Ctrl-C or SIGTERM.", "--follow")] = False,
    false_alarms: Annotated[
        str | None,
        option("RATE", f"How many are bearable: 1/30d, or 1/5000w for windows. [default: {BY_TIME}]"),
    ] = None,
    state: Annotated[Path | None, option("FILE", "Keep the state here, and go on from it.")] = None,
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
    missing: Missing = "refuse",
    timezone: Timezone = None,
    decimal_comma: DecimalComma = None,
    no_header: NoHeader = False,
    as_json: Annotated[bool, option(None, "Print one JSON document a line.", "--json")] = False,
    poll: Annotated[float, option("SECONDS", "With --follow: look so often.")] = 1.0,
    timeout: Annotated[float | None, option("SECONDS", "With --follow: end after so long without new rows.")] = None,
) -> None:
    """Watch a plant round the clock and tell what goes wrong.

    Windows are prepared as the model's history was. Each event is one line: an alarm with the sensors that are wrong
    and since when, sensors that join or leave it, its end, sensors that fall silent or stand still, windows without
    rows. --false-alarms says how many false alarms are bearable in the long run. With --state the next start goes on
    after the last window that was counted, whatever ended the one before.
    """
    following = Following(follow, poll, timeout)
    following.check()
    check_outputs({"--state": state, "--log": log}, {"--model": model, "--data": data, "--orders": orders})
    commands = None if run is None else Commands(run)
    calibrated = load_model(model)
    every = promised(false_alarms, calibrated)
    shelved = [_order(text, calibrated) for text in shelve or ()]
    for path in data:
        regular_file(path, "data file").close()
    notation = Notation(timezone, decimal_comma, False if no_header else None)
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    session = _restored(state, calibrated, every, digest)
    after = None if session is None else session.position
    reading: dict[str, Any] = {"missing": missing, "notation": notation}
    windows = (
        Growing(calibrated, data, after, poll=poll, timeout=timeout, **reading)
        if follow
        else Recording(calibrated, data, after, whole=state is None, **reading)
    )
    outlets = Outlets(None if log is None else Log(log), commands, as_json=as_json)
    resumed = session is not None
    session = session or Session(calibrated, ModelWatch.of(calibrated, every), digest)
    for text in windows.notes:
        note(text)
    with ended_by_signals(windows.end), outlets.shown(session):
        outlets.tell([_started(session, model, every, resumed)])
        watching = Watching(session, state, outlets, orders)
        if not resumed:
            session.obeyed = len(watching.lines())
        watching.run(windows, shelved)
        outlets.tell([_of_program("stopped", f"stopped: {counted(session.windows, 'window')} so far")])
        outlets.finish()
    if windows.broken:
        raise typer.Exit(1)


def promised(text: str | None, model: Model) -> float:
    """The mean time to a false alarm, in windows of the model.

    >>> import re
    >>> [_RATE.fullmatch(text) is not None for text in ("1/30d", "2/1000w", "30d")]
    [True, True, False]
    """
    clock = model.clock
    text = text or (BY_COUNT if clock.counted else BY_TIME)
    match = _RATE.fullmatch(text)
    if match is None:
        raise ValueError(f"--false-alarms {text!r} is no rate: write 1/30d for one a month, 1/5000w for windows")
    windows = _WINDOWS.fullmatch(match[2])
    if windows is None and clock.counted:
        raise ValueError(f"--false-alarms {text!r}: rows of this model have no times, write 1/5000w for windows")
    seconds = None if windows is not None else parse_duration(match[2], "--false-alarms")
    every = (float(windows[1]) if windows is not None else seconds / model.seconds) / int(match[1])  # type: ignore[operator]
    if every < 1.0:
        raise ValueError(f"--false-alarms {text!r} is more than one in each window of {clock.length(model.seconds)}")
    return every


@dataclass
class Watching:
    """Takes the windows, tells their events and keeps the state."""

    session: Session
    path: Path | None
    outlets: Outlets
    orders: Path | None = None

    def run(self, windows: Recording | Growing, shelved: Iterable[tuple[str, str]]) -> None:
        """Tell what an earlier program may not have told, then watch until the windows end."""
        session = self.session
        if session.pending:
            self.outlets.tell_again(session.pending)
            session.settle()
            self._save()
        saved, first = monotonic(), [f"shelve {name} {length}" for name, length in shelved]
        for sample, late in windows:
            given = [*first, *self._new_orders()]
            first = []
            events = [event for order in given for event in self._obey(order, sample.start, windows.clock)]
            events += session.take(sample, windows.clock, late=late)
            self.outlets.see(sample.start, sample.values, windows.clock)
            if events:
                self._save()
                self.outlets.tell(events)
                session.settle()
            if events or given or monotonic() - saved >= _SAVED_EVERY:
                self._save()
                saved = monotonic()
        self._save()

    def lines(self) -> list[str]:
        """The finished lines of the file of orders, which need not be there yet."""
        if self.orders is None or not self.orders.is_file():
            return []
        text = self.orders.read_text(encoding="utf-8", errors="replace")
        return text[: text.rfind("\n") + 1].splitlines()

    def _new_orders(self) -> list[str]:
        """Those since the last window; a file that became shorter is another one and is read from its beginning."""
        lines = self.lines()
        done = self.session.obeyed if self.session.obeyed <= len(lines) else 0
        self.session.obeyed = len(lines)
        return [line for line in lines[done:] if line.strip()]

    def _obey(self, order: str, time: np.datetime64, clock: Clock) -> list[Event]:
        try:
            return self.session.obey(order, time, clock)
        except ValueError as error:
            note(f"the order {order.strip()!r} was not obeyed: {error}")
            return []

    def _save(self) -> None:
        if self.path is not None:
            self.session.save(self.path)


class Outlets:
    """Everywhere that events go: standard output, the log, commands, and the view on a terminal."""

    def __init__(self, log: Log | None, commands: Commands | None, *, as_json: bool) -> None:
        self._log, self._commands, self._as_json = log, commands, as_json
        self._view: View | None = None

    @contextmanager
    def shown(self, session: Session) -> Iterator[None]:
        """Show the state on a terminal meanwhile."""
        if self._as_json or not sys.stdout.isatty():
            yield
            return
        with shown_live(session) as self._view:
            yield
        self._view = None

    def see(self, time: np.datetime64, values: Any, clock: Clock) -> None:
        """Show a window."""
        if self._view is not None:
            self._view.see(clock.show(time), values)

    def tell(self, events: Iterable[Event]) -> None:
        """Tell events everywhere."""
        for event in events:
            if self._log is not None:
                self._log.write(event)
            self._print(event)
            self._run(event)

    def tell_again(self, events: Iterable[Event]) -> None:
        """Tell events that may have been told: those that the log has are neither logged nor printed again."""
        for event in events:
            if self._log is None or not self._log.has(event):
                self.tell([event])
            else:
                self._run(event)

    def finish(self) -> None:
        """Let commands end."""
        if self._commands is not None:
            self._commands.finish()

    def _print(self, event: Event) -> None:
        line = json_line(event) if self._as_json else f"{event.time}  {event.text}"
        if self._view is not None:
            self._view.say(line)
            return
        typer.echo(line)
        sys.stdout.flush()

    def _run(self, event: Event) -> None:
        if self._commands is not None and event.event in URGENT:
            self._commands.start(event)


def _restored(path: Path | None, model: Model, every: float, digest: str) -> Session | None:
    """The session of an earlier program, if there was one."""
    if path is None or not path.exists():
        return None
    session = Session.load(path, model, ModelWatch.restored, digest)
    before = session.watcher.false_alarm_every
    if abs(before - every) > 1e-9 * every:
        raise ValueError(
            f"--state {path} was begun with a false alarm in {before:g} windows, not in {every:g}: "
            "give the same --false-alarms, or another file to begin anew"
        )
    return session


def _order(text: str, model: Model) -> tuple[str, str]:
    """A sensor and for how long to leave it out."""
    name, colon, length = text.rpartition(":")
    if not colon:
        raise ValueError(f"--shelve {text!r} needs a sensor and a length of time, as FT-101:2h")
    model.places([name])
    parse_duration(length, f"--shelve {text}: the time")
    return name, length.strip()


def _started(session: Session, path: Path, every: float, resumed: bool) -> Event:
    model = session.model
    windows = f"windows of {model.clock.length(model.seconds)}"
    text = f"started: {path.name}, {counted(len(model.names), 'sensor')}, {windows}, {said_promise(model, every)}"
    if resumed and session.position is not None:
        text = f"{text}; goes on after {model.clock.show(session.position)}"
    return _of_program("started", text)


def said_promise(model: Model, every: float) -> str:
    """What is promised of false alarms, and where the history says that it will not be kept."""
    promise = f"at most one false alarm in {every:.6g} windows in the mean if they are independent around a fixed level"
    choice, broken = model.choice, []
    if choice is not None:
        broken += [f"a {choice.level} level"] if choice.level != "fixed" else []
        broken += ["memory"] if choice.memory != "none" else []
        broken += ["heavy tails"] if isfinite(choice.tails) else []
    return f"{promise}; the history has {listed(broken)}: expect more" if broken else promise


def _of_program(kind: Literal["started", "stopped"], text: str) -> Event:
    return Event(kind, datetime.now(UTC).isoformat(timespec="seconds"), text)
