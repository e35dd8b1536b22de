"""What is shown of a search while it runs, and what ends one that follows a growing file."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from eccaht.cli.output import shown_progress
from eccaht.policies import Policy
from eccaht.run.loop import Recorder, Step
from eccaht.run.replay import Replay

if TYPE_CHECKING:
    from eccaht.model.model import Model
    from eccaht.model.prepare import Feed, Follower


@contextmanager
def watching(
    source: Feed, policy: Policy, model: Model, per_window: int, *, quiet: bool
) -> Iterator[tuple[Replay, list[Recorder]]]:
    """The replay, and what shows each measurement: changes of the set while following, else a bar."""
    replay = Replay(source.windows, policy.problem, per_window=per_window, model=model)
    if source.follower is None:
        with _bar(len(source.windows.starts) * per_window) as shown:  # type: ignore[union-attr]
            yield replay, shown
        return
    with _ended_by_signals(source.follower):
        yield replay, [] if quiet else [_Changes(source)]


class _Changes(Recorder):
    """One line whenever the set changes."""

    def __init__(self, source: Feed) -> None:
        self._source, self._names = source, ""

    def after(self, policy: Policy, step: Step) -> None:
        """Show the set if it is another than before."""
        names = ", ".join(policy.decision_names) or "no sensor"
        if names != self._names:
            when = self._source.clock.show(step.time)
            typer.echo(f"{when}  measurement {step.number}: {names} (lead {policy.lead:.2f})")
            sys.stdout.flush()
        self._names = names


class _Bar(Recorder):
    """One step of a bar for each measurement."""

    def __init__(self, advance: Callable[[], object]) -> None:
        self._advance = advance

    def after(self, policy: Policy, step: Step) -> None:  # noqa: ARG002
        """Advance."""
        self._advance()


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
def _bar(total: int) -> Iterator[list[Recorder]]:
    """A bar on a terminal; nothing where standard error goes to a file."""
    with shown_progress("measurements at most", total) as bar:
        yield [_Bar(bar.advance)]
