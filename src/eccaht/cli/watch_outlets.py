"""Where the events of a watch go: standard output, a file of JSON lines, commands on an alarm, and the terminal."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from eccaht.base.arrays import Array
from eccaht.base.clock import Clock
from eccaht.base.files import NotWritten
from eccaht.cli.output import note
from eccaht.plants import Event, Session

URGENT = ("alarm", "stuck", "silent", "range", "moved")  # events on which the command runs

LONGEST_RUN = 60.0  # seconds that a command may take
_AT_ONCE = 8  # commands that may run side by side
_TAIL = 1 << 20  # bytes at the end of a log in which a line is looked for
_SHOWN, _RECENT, _SUSPECTS = 60, 5, 8  # windows of a line on a terminal; those that say who moved; sensors
_WIDTH = 30  # cells of the evidence, the threshold at its end
_STYLES = {"quiet": "green", "suspicious": "yellow", "alarm": "bold red"}
_LEVELS = "▁▂▃▄▅▆▇█"

_ALONE: Mapping[str, str | None] = MappingProxyType({})

Document = Mapping[str, Any]  # an event, perhaps with the name of its plant


def of_program(kind: Literal["started", "stopped"], text: str) -> Event:
    """What the program does itself, at the time of the machine."""
    return Event(kind, datetime.now(UTC).isoformat(timespec="seconds"), text)


def json_line(document: Document) -> str:
    """The event as one line of JSON, without its end."""
    return json.dumps(document, allow_nan=False)


class Log:
    """A file to which events are appended, one line and one write each, and on the disk when `write` returns.

    A last line that was not finished is taken away: its event is still pending in the state of the watch.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("a+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _TAIL, 0))
            tail = file.read()
            kept = tail.rfind(b"\n") + 1
            *_, last = [b"{}", *BytesIO(tail[:kept])]
            if not last.startswith(b"{") or not (tail[kept:] or b"{").startswith(b"{"):
                raise ValueError(f"--log {path} holds something else than events: give another file")
            file.truncate(size - len(tail) + kept)
        self._known = frozenset(tail[:kept].decode("utf-8", "replace").splitlines())

    def has(self, document: Document) -> bool:
        """Was this very event, with its number, among the last ones when the file was opened?"""
        return json_line(document) in self._known

    def write(self, document: Document) -> None:
        """Append an event; the file is opened anew for each, so that it may be moved away at any time."""
        try:
            with self._path.open("ab", buffering=0) as file:
                file.write(f"{json_line(document)}\n".encode())
                os.fsync(file.fileno())
        except OSError as error:
            raise NotWritten(error.errno, error.strerror or str(error), str(self._path)) from None


class Commands:
    """Starts a command for each event that it is given, without a shell, and never waits for it.

    The event is on its standard input as JSON and in EVENT_... variables. Its own output goes to standard error. After
    `longest` seconds it is killed. Eight may run at once; further ones are left out, with a note.
    """

    def __init__(self, text: str, longest: float = LONGEST_RUN) -> None:
        try:
            self._words = shlex.split(text)
        except ValueError as error:
            raise ValueError(f"--exec {text!r} is no command: {error}") from None
        if not self._words or shutil.which(self._words[0]) is None:
            raise ValueError(f"--exec {text!r} cannot be run: there is no program {(self._words or [''])[0]!r}")
        self._longest = longest
        self._threads: list[threading.Thread] = []

    def start(self, document: Document) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= _AT_ONCE:
            note(f"--exec was not run on {shown_text(document)!r}: {_AT_ONCE} commands are still running")
            return
        thread = threading.Thread(target=self._run, args=(document,), daemon=True)
        thread.start()
        self._threads.append(thread)

    def finish(self) -> None:
        """Wait for the commands that are still running, which end soon."""
        end = monotonic() + self._longest + 1.0
        for thread in self._threads:
            thread.join(max(end - monotonic(), 0.0))

    def _run(self, document: Document) -> None:
        try:
            done = subprocess.run(
                self._words,
                input=json_line(document).encode(),
                env={**os.environ, **variables(document)},
                stdout=sys.stderr.fileno(),
                timeout=self._longest,
                check=False,
            )
        except subprocess.TimeoutExpired:
            note(f"--exec was killed after {self._longest:g} seconds")
        except OSError as error:
            note(f"--exec could not be run: {error.strerror or error}")
        else:
            if done.returncode:
                note(f"--exec ended with code {done.returncode}")


def variables(document: Document) -> dict[str, str]:
    """The event as variables of the environment; lists have commas between.

    >>> event = Event("silent", "2024-05-01T08:00:00", "silent: FT-1", 7, sensors=("FT-1", "FT-2"))
    >>> variables(event.document())["EVENT_SENSORS"]
    'FT-1,FT-2'
    """
    found = {}
    for name, value in document.items():
        text = "" if value is None else ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        found["EVENT" if name == "event" else f"EVENT_{name.upper()}"] = text.replace("\0", "")
    return found


def shown_text(document: Document) -> str:
    """The event for people, with its plant where there are several."""
    plant = document.get("plant")
    return str(document["text"]) if plant is None else f"{plant}: {document['text']}"


class Outlets:
    """Everywhere that events go: standard output, the log, commands, and the view on a terminal.

    among: what documents of one of several plants begin with: its name, None for what the program does itself.
    """

    def __init__(
        self, log: Log | None, commands: Commands | None, *, as_json: bool, among: Mapping[str, str | None] = _ALONE
    ) -> None:
        self._log, self._commands, self._as_json, self._among = log, commands, as_json, among
        self._view: _WatchView | None = None

    def of(self, plant: str | None) -> Outlets:
        """The same for one of several plants."""
        return Outlets(self._log, self._commands, as_json=self._as_json, among={"plant": plant})

    @contextmanager
    def shown(self, session: Session) -> Iterator[None]:
        """Show the state on a terminal meanwhile."""
        if self._as_json or not sys.stdout.isatty():
            yield
            return
        with Live(console=Console(), refresh_per_second=4, transient=True) as live:
            self._view = _WatchView(session, live)
            yield
        self._view = None

    def see(self, time: np.datetime64, values: Array, clock: Clock) -> None:
        if self._view is not None:
            self._view.see(clock.show(time), values)

    def report(self, events: Iterable[Event], *, again: bool = False) -> None:
        """Report events; again: what the log has, because it was reported before, is neither logged nor printed."""
        for event in events:
            document = {**self._among, **event.document()}
            if not (again and self._log is not None and self._log.has(document)):
                if self._log is not None:
                    self._log.write(document)
                self._print(document)
            if self._commands is not None and event.event in URGENT:
                self._commands.start(document)

    def finish(self) -> None:
        """Let commands end."""
        if self._commands is not None:
            self._commands.finish()

    def _print(self, document: Document) -> None:
        line = json_line(document) if self._as_json else f"{document['time']}  {shown_text(document)}"
        if self._view is not None:
            self._view.say(line)
            return
        typer.echo(line)
        sys.stdout.flush()


# -- on a terminal -------------------------------------------------------------------------------------


class _WatchView:
    """The state, the evidence against the threshold, and the sensors that moved most, redrawn with every window."""

    def __init__(self, session: Session, live: Live) -> None:
        self._session, self._live = session, live
        self._values: deque[Array] = deque(maxlen=_SHOWN)

    def see(self, time: str, values: Array) -> None:
        """Take a window, in robust units."""
        self._values.append(values)
        self._live.update(_frame(self._session, time, np.array(self._values)))

    def say(self, line: str) -> None:
        self._live.console.print(Text(line))


def _frame(session: Session, time: str, values: Array) -> Group:
    """Draw the state after the last of these windows, (T, K)."""
    watch, names = session.watch, session.model.names
    alarm, state, evidence = watch.alarm, watch.state, watch.evidence
    known = alarm is not None and session.operator.acknowledged == alarm.time
    cells = round(_WIDTH * min(evidence, 1.0))
    shown_state = (state + (" (acknowledged)" if known else ""), _STYLES[state])
    lines = [
        Text.assemble((f"{time}  ", "dim"), shown_state, f"  {session.windows} windows"),
        Text.assemble("evidence  ", ("█" * cells).ljust(_WIDTH, "·"), f"│ {evidence:.3g} of 1"),
    ]
    named = () if alarm is None else alarm.names
    for name in suspects(names, named, values):
        column = values[:, names.index(name)]
        style = _STYLES["alarm"] if name in named else ""
        lines.append(Text.assemble((f"{name[:20]:<20} ", style), sparkline(column), f" {column[-1]:+.2f}"))
    return Group(*lines)


def suspects(names: Sequence[str], named: Sequence[str], values: Array) -> list[str]:
    """The sensors of an alarm, then those whose last windows lie furthest from the earlier ones, at most eight."""
    if len(values) <= _RECENT:
        return list(named)[:_SUSPECTS]
    filled = np.where(np.isnan(values), 0.0, values)
    moved = np.abs(filled[-_RECENT:].mean(axis=0) - np.median(filled[:-_RECENT], axis=0))
    others = [names[k] for k in np.argsort(-moved, kind="stable").tolist() if names[k] not in named]
    return [*named, *others][:_SUSPECTS]


def sparkline(values: Array) -> str:
    """Values as bars of eight heights, blank where there is none.

    >>> sparkline(np.array([0.0, 1.0, np.nan, 7.0]))
    '▁▂ █'
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return " " * len(values)
    low, span = float(known.min()), float(np.ptp(known)) or 1.0
    heights = np.nan_to_num((values - low) / span * (len(_LEVELS) - 1))
    return "".join(
        " " if np.isnan(x) else _LEVELS[round(h)] for x, h in zip(values.tolist(), heights.tolist(), strict=True)
    )
