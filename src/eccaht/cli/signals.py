"""Ctrl-C and the wish of the system to end: one line, an exit code that says which, and no half file.

While the program itself is imported there is nothing to undo, and it ends at once. Later a signal becomes an exception
that closes files, workers and the screen on its way out. It waits while a library is imported, because many of
them turn an exception in that time into a message of their own.
"""

from __future__ import annotations

# nothing here that takes time to import: until this module is there, Python answers Ctrl-C in its own way
import _signal as signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

INTERRUPTED, TERMINATED = 128 + int(signal.SIGINT), 128 + int(signal.SIGTERM)
WORDS = {int(signal.SIGINT): "interrupted", int(signal.SIGTERM): "terminated"}
_PATIENCE = 5.0  # seconds that ending workers may take
_LATER = 0.02  # seconds until a signal that came during an import is looked at again


class Terminated(BaseException):
    """The system asked the program to end; like KeyboardInterrupt no error."""


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


def exit_with(code: int) -> NoReturn:
    """Exit; Python could otherwise end by the signal itself, without our code, if a library saw the exception pass."""
    ignore()
    _end_workers(code)
    if code in (INTERRUPTED, TERMINATED):
        import atexit
        import contextlib

        atexit._run_exitfuncs()  # joblib's among them, which clear up after its workers
        with contextlib.suppress(OSError):  # standard output may be closed already
            sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def _end_workers(code: int) -> None:
    """End other processes, if there are any; whatever becomes of them, this one ends soon."""
    workers = sys.modules.get("eccaht.research.experiments.workers")
    if workers is None:
        return
    _later(_PATIENCE, os._exit, code)
    workers.end()


def _handle(handler: Any) -> None:
    for number in WORDS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    os.write(2, f"eccaht: {WORDS[number]}\n".encode())  # print could be in the middle of a line
    os._exit(128 + number)


def _raise(number: int, frame: FrameType | None) -> None:
    if _importing(frame):
        _later(_LATER, os.kill, os.getpid(), number)
        return
    _handle(_leave)
    _quieten()
    if number == signal.SIGTERM:
        raise Terminated
    raise KeyboardInterrupt


def _later(seconds: float, action: Any, *arguments: int) -> None:
    """Act after some time, if the program still runs then."""
    import threading

    timer = threading.Timer(seconds, action, arguments)
    timer.daemon = True
    timer.start()


def _quieten() -> None:
    """Let threads and finalizers of libraries, whose work is taken from them, end without a word."""
    import threading

    threading.excepthook = lambda _: None
    sys.unraisablehook = _unraised


def _unraised(lost: Any) -> None:
    """An exception that came in a finalizer goes no further: if it was ours, send the signal once more."""
    if issubclass(lost.exc_type, (KeyboardInterrupt, Terminated)):
        _handle(_raise)
        number = signal.SIGTERM if issubclass(lost.exc_type, Terminated) else signal.SIGINT
        _later(_LATER, os.kill, os.getpid(), int(number))


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
