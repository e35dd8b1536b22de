"""Ctrl-C and the wish of the system to end: one line, an exit code that says which, and no half file.

While the program itself is imported there is nothing to undo, and it ends at once. Later a signal becomes an exception
that closes files, workers and the screen on its way out. It waits while a library is imported, because many of
them turn an exception in that time into a message of their own.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import NoReturn

INTERRUPTED, TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
_LATER = 0.02  # seconds until a signal that came during an import is looked at again


class Terminated(BaseException):
    """The system asked the program to end; as little an error as KeyboardInterrupt is."""


def leave_at_once() -> None:
    """End with one line on the first signal; those that were ignored from the beginning stay so, as under nohup."""
    _handle(_leave)


def unwind() -> None:
    """Turn the first signal into an exception; a second one ends the program at once."""
    _handle(_raise)


def ignore() -> None:
    """Hear no further signal, where this module listens: what is left to do takes no time."""
    for number in WORDS:
        if signal.getsignal(number) in (_leave, _raise):
            signal.signal(number, signal.SIG_IGN)


def _handle(handler: object) -> None:
    for number in WORDS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)  # type: ignore[arg-type]


def _leave(number: int, _: FrameType | None) -> NoReturn:
    os.write(2, f"eccaht: {WORDS[signal.Signals(number)]}\n".encode())  # print could be in the middle of a line
    os._exit(128 + number)


def _raise(number: int, frame: FrameType | None) -> None:
    if _importing(frame):
        again = threading.Timer(_LATER, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()
        return
    _handle(_leave)
    if number == signal.SIGTERM:
        raise Terminated
    raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
