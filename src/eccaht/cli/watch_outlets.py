"""Where the events of a watch go: a file of JSON lines, and commands that an alarm starts."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from io import BytesIO
from pathlib import Path
from time import monotonic

from eccaht.cli.output import note
from eccaht.files import NotWritten
from eccaht.watch.events import Event

LONGEST_RUN = 60.0  # seconds that a command may take
_AT_ONCE = 8  # commands that may run side by side
_TAIL = 1 << 20  # bytes at the end of a log in which a line is looked for


def json_line(event: Event) -> str:
    """The event as one line of JSON, without its end."""
    return json.dumps(event.document(), allow_nan=False)


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

    def has(self, event: Event) -> bool:
        """Was this very event, with its number, among the last ones when the file was opened?"""
        return json_line(event) in self._known

    def write(self, event: Event) -> None:
        """Append an event; the file is opened anew for each, so that it may be moved away at any time."""
        try:
            with self._path.open("ab", buffering=0) as file:
                file.write(f"{json_line(event)}\n".encode())
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

    def start(self, event: Event) -> None:
        """Run the command on an event."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= _AT_ONCE:
            note(f"--exec was not run on event {event.number}: {_AT_ONCE} commands are still running")
            return
        thread = threading.Thread(target=self._run, args=(event,), daemon=True)
        thread.start()
        self._threads.append(thread)

    def finish(self) -> None:
        """Wait for the commands that are still running, which end soon."""
        end = monotonic() + self._longest + 1.0
        for thread in self._threads:
            thread.join(max(end - monotonic(), 0.0))

    def _run(self, event: Event) -> None:
        try:
            done = subprocess.run(
                self._words,
                input=json_line(event).encode(),
                env={**os.environ, **variables(event)},
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


def variables(event: Event) -> dict[str, str]:
    """The event as variables of the environment; lists have commas between.

    >>> variables(Event("silent", "2024-05-01T08:00:00", "silent: FT-1", 7, sensors=("FT-1", "FT-2")))["EVENT_SENSORS"]
    'FT-1,FT-2'
    """
    found = {}
    for name, value in event.document().items():
        text = "" if value is None else ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
        found["EVENT" if name == "event" else f"EVENT_{name.upper()}"] = text.replace("\0", "")
    return found
