"""The picture of a watch's drills: the share of faults found against the time since their onset, a curve a kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eccaht.incident.drill_picture import LOOKS, broken
from eccaht.incident.faults import KINDS
from eccaht.presentation.style import TEXT_WIDTH, figure_style
from eccaht.presentation.text import percent
from eccaht.watch.drill_counts import WatchCell, WatchCounts

_HEIGHT = 2.9
_MARKS = 3  # on a curve


@figure_style()
def draw(counts: WatchCounts, *, line: str = "", seconds: float | None = None, width: float = TEXT_WIDTH) -> Figure:
    """Draw a curve for each kind that was drilled; those never found stay below the top.

    line: what stands above. seconds: length of a window, None where windows have none. width: in inches.
    """
    above = broken(line, round(17 * width))
    figure = Figure(figsize=(width, _HEIGHT + 0.16 * len(above)))
    axes = figure.subplots()
    unit = 1.0 if seconds is None else seconds / 60.0
    for kind in KINDS:
        cell = counts.of_kind(kind)
        if cell.faults:
            _draw_curve(axes, cell, counts.stretch, unit)
    axes.set(xscale="log", xlim=(unit, counts.stretch * unit), ylim=(-0.02, 1.02))
    axes.set_xlabel(f"{'windows' if seconds is None else 'minutes'} since the onset (logarithmic)")
    axes.set_ylabel("share of the faults found")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.yaxis.set_major_formatter(lambda share, _: percent(share))
    axes.grid(color="#E4E4E4", linewidth=0.6, zorder=0)
    if axes.lines:
        figure.legend(loc="outside right center", handlelength=2.4)
    if above:
        figure.suptitle("\n".join(above), x=0.01, ha="left", fontsize=7.5)
    return figure


def _draw_curve(axes: Axes, cell: WatchCell, stretch: int, unit: float) -> None:
    """A step up with every fault found; the marks of the kinds stand side by side where curves meet."""
    look, windows = LOOKS[cell.kind], np.arange(1, stretch + 1)
    shares = [cell.within(window) / cell.faults for window in windows.tolist()]
    aside = (KINDS.index(cell.kind) + 0.5) / len(KINDS)
    marked = np.unique(np.round(stretch ** ((np.arange(_MARKS) + aside) / _MARKS)).astype(int) - 1)
    style: dict[str, Any] = {"color": look.colour, "linestyle": look.dash, "marker": look.marker, "markersize": 5}
    style |= {"markerfacecolor": look.colour if look.filled else "white", "markevery": marked.tolist()}
    label = f"{cell.kind}, {cell.found} of {cell.faults}"
    axes.step(windows * unit, shares, where="post", label=label, clip_on=False, zorder=3, **style)
