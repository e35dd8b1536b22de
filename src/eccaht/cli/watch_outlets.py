"""Where the events of a watch go: standard output, a file of JSON lines, and commands on an alarm."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal

import typer

from eccaht.base.files import NotWritten
from eccaht.cli.output import note
from eccaht.plants import Event

URGENT = ("alarm", "stuck", "silent", "range", "moved", "no-data")  # events on which the command runs
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

    The event is on its standard input as JSON. Its own output goes to standard error.
    """

    def __init__(self, text: str) -> None:
        try:
            self._words = shlex.split(text)
        except ValueError as error:
            raise ValueError(f"--exec {text!r} is no command: {error}") from None
        if not self._words or shutil.which(self._words[0]) is None:
            raise ValueError(f"--exec {text!r} cannot be run: there is no program {(self._words or [''])[0]!r}")
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, document: Document) -> None:
        self._forget_ended()
        with TemporaryFile() as event:  # a pipe could fill up
            event.write(json_line(document).encode())
            event.seek(0)
            try:
                self._running.append(subprocess.Popen(self._words, stdin=event, stdout=sys.stderr.fileno()))
            except OSError as error:
                note(f"--exec could not be run: {error.strerror or error}")

    def finish(self) -> None:
        """Wait for the commands that are still running."""
        for process in self._running:
            process.wait()
        self._forget_ended()

    def _forget_ended(self) -> None:
        for process in [each for each in self._running if each.poll() is not None]:
            self._running.remove(process)
            if process.returncode:
                note(f"--exec ended with code {process.returncode}")


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
                typer.echo(json_line(document) if self._as_json else f"{document['time']}  {document['text']}")
                sys.stdout.flush()
            if self._commands is not None and event.event in URGENT:
                self._commands.start(document)

    def finish(self) -> None:
        if self._commands is not None:
            self._commands.finish()
