"""What is shown of a search while it runs, and what ends one that follows a growing file."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from eccaht.cli.output import Bar, shown_progress
from eccaht.plants.model.model import Model
from eccaht.plants.model.prepare import SearchableWindows
from eccaht.plants.replay import Replay
from eccaht.streams.policies import Policy
from eccaht.streams.run.loop import Recorder, Step


@contextmanager
def watching(
    source: SearchableWindows, policy: Policy, model: Model, per_window: int, *, quiet: bool
) -> Iterator[tuple[Replay, list[Recorder]]]:
    """The replay, and what shows each measurement: changes of the set while following, else a bar."""
    replay = Replay(source.windows, policy.problem, per_window=per_window, model=model)
    if source.follower is None:
        most = len(source.windows.starts) * per_window  # type: ignore[union-attr]
        with shown_progress("measurements at most", most) as bar:
            yield replay, [_Count(bar)]
        return
    with ended_by_signals(source.follower.end):
        yield replay, [] if quiet else [_Changes(source)]


class _Changes(Recorder):
    """One line whenever the set changes."""

    def __init__(self, source: SearchableWindows) -> None:
        self._source, self._names = source, ""

    def after(self, policy: Policy, step: Step) -> None:
        """Show the set if it is another than before."""
        names = ", ".join(policy.decision_names) or "no sensor"
        if names != self._names:
            when = self._source.clock.show(step.time)
            typer.echo(f"{when}  measurement {step.number}: {names} (lead {policy.lead:.2f})")
            sys.stdout.flush()
        self._names = names


class _Count(Recorder):
    """One step of a bar for each measurement."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar

    def after(self, policy: Policy, step: Step) -> None:  # noqa: ARG002
        self._bar.advance()


@contextmanager
def ended_by_signals(end_work: Callable[[], object]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end what is done now, not the program; a second one ends the program."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        restore()
        end_work()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        restore()
