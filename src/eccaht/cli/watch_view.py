"""A watch on a terminal: its state, the evidence against the threshold, and the sensors that moved most."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from eccaht.base.arrays import Array
from eccaht.plants.watch.session import Session

_SHOWN, _RECENT, _SUSPECTS = 60, 5, 8  # windows of a line; those that say who moved; sensors
_WIDTH = 30  # cells of the evidence, the threshold at its end
_STYLES = {"quiet": "green", "suspicious": "yellow", "alarm": "bold red"}
_LEVELS = "▁▂▃▄▅▆▇█"


class WatchView:
    """What is shown, redrawn with every window."""

    def __init__(self, session: Session, live: Live) -> None:
        self._session, self._live = session, live
        self._values: deque[Array] = deque(maxlen=_SHOWN)

    def see(self, time: str, values: Array) -> None:
        """Take a window, in robust units."""
        self._values.append(values)
        self._live.update(frame(self._session, time, np.array(self._values)))

    def say(self, line: str) -> None:
        self._live.console.print(Text(line))


@contextmanager
def shown_live(session: Session) -> Iterator[WatchView]:
    """A view for as long as the watch runs."""
    with Live(console=Console(), refresh_per_second=4, transient=True) as live:
        yield WatchView(session, live)


def frame(session: Session, time: str, values: Array) -> Group:
    """Draw the state after the last of these windows, (T, K)."""
    watcher = session.watcher
    fault = watcher.fault
    known = fault is not None and session.operator.acknowledged == fault.raised
    state = watcher.state + (" (acknowledged)" if known else "")
    share = min(watcher.evidence, 1.0)
    cells = round(_WIDTH * share)
    lines = [
        Text.assemble((f"{time}  ", "dim"), (state, _STYLES[watcher.state]), f"  {session.windows} windows"),
        Text.assemble("evidence  ", ("█" * cells).ljust(_WIDTH, "·"), f"│ {watcher.evidence:.3g} of 1"),
    ]
    named = () if fault is None else fault.named
    for name in suspects(session.model.names, named, values):
        column = values[:, session.model.names.index(name)]
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
