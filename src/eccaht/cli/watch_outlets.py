"""Where the events of a watch go: standard output, a file of JSON lines, and commands on an alarm."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import typer

from eccaht.base.files import NotWritten
from eccaht.cli.output import note
from eccaht.plants import Event

URGENT = ("alarm", "stuck", "silent", "range", "moved")  # events on which the command runs

LONGEST_RUN = 60.0  # seconds that a command may take
_AT_ONCE = 8  # commands that may run side by side
_TAIL = 1 << 20  # bytes at the end of a log in which a line is looked for

Document = Mapping[str, Any]  # an event


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
            note(f"--exec was not run on {document['text']!r}: {_AT_ONCE} commands are still running")
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


class Outlets:
    """Everywhere that events go: standard output, the log and commands."""

    def __init__(self, log: Log | None, commands: Commands | None, *, as_json: bool) -> None:
        self._log, self._commands, self._as_json = log, commands, as_json

    def report(self, events: Iterable[Event], *, again: bool = False) -> None:
        """Report events; again: what the log has, because it was reported before, is neither logged nor printed."""
        for event in events:
            document = event.document()
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
        typer.echo(json_line(document) if self._as_json else f"{document['time']}  {document['text']}")
        sys.stdout.flush()
