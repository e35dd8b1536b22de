"""What is shown of a search while it runs, and what ends one that follows a growing file."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from eccaht.model.model import Model
    from eccaht.model.prepare import Feed, Follower
    from eccaht.policies import Policy
    from eccaht.problem import Problem
    from eccaht.run.replay import Replay
    from eccaht.run.search import Entry


@contextmanager
def watching(
    source: Feed, policy: Policy, model: Model, per_window: int, *, quiet: bool
) -> Iterator[tuple[Replay, Callable[[Entry], object]]]:
    """The replay, and what to show of each measurement: changes of the set while following, else a bar."""
    from eccaht.run.replay import Replay

    replay = Replay(source.windows, policy.problem, per_window=per_window, model=model)
    if source.follower is None:
        with _bar(len(source.windows.starts) * per_window) as advance:  # type: ignore[union-attr]
            yield replay, advance
        return
    with _ended_by_signals(source.follower):
        yield replay, _silent if quiet else _Changes(policy.problem, source)


def _silent(_: Entry) -> None:
    """Show nothing."""


class _Changes:
    """One line whenever the set changes."""

    def __init__(self, problem: Problem, source: Feed) -> None:
        self._problem, self._source, self._names = problem, source, ""

    def __call__(self, entry: Entry) -> None:
        from eccaht.run.record import name_of

        names = ", ".join(name_of(self._problem, k) for k in entry.decision) or "no sensor"
        if names != self._names:
            when = self._source.clock.show(entry.time)
            typer.echo(f"{when}  measurement {entry.number}: {names} (lead {entry.lead:.2f})")
            sys.stdout.flush()
        self._names = names


@contextmanager
def _ended_by_signals(follower: Follower) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the following, not the program; a second one ends the program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        restore()
        follower.end()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        restore()


@contextmanager
def _bar(total: int) -> Iterator[Callable[[Entry], object]]:
    """A bar on a terminal; nothing where standard error goes to a file."""
    if not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    parts = (BarColumn(), MofNCompleteColumn(), TextColumn("measurements at most"))
    with Progress(*parts, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda _: bar.advance(task)
