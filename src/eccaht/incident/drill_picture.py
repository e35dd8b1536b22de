"""The picture of drills: the share of faulty sensors that were found against the size of the fault."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eccaht.incident.counts import Cell, Counts
from eccaht.incident.faults import KINDS, LARGEST, SIZED, SMALLEST
from eccaht.presentation.style import PALETTE, TEXT_WIDTH, figure_style

_UNSIZED = tuple(kind for kind in KINDS if kind not in SIZED)
_HEIGHT = 2.9
_APART = 1.05  # ratio of the places of two curves, so that their intervals stand side by side


class Look(NamedTuple):
    """How a kind is drawn: shapes and dashes tell kinds apart where colours do not."""

    colour: str
    marker: str
    dash: str = "-"
    filled: bool = True


LOOKS = {
    "step": Look(PALETTE["blue"], "o"),
    "drift": Look(PALETTE["vermillion"], "s", "--"),
    "noise": Look(PALETTE["black"], "^", ":", filled=False),
    "stuck": Look(PALETTE["green"], "D"),
    "replay": Look(PALETTE["purple"], "v"),
    "silent": Look(PALETTE["black"], "P", filled=False),
}


@figure_style()
def draw(counts: Counts, *, line: str = "", width: float = TEXT_WIDTH) -> Figure:
    """Draw a curve for each kind that has a size and a mark for each that has none, with 95 % intervals.

    line: what stands above, as `Counts.line` says it. width: in inches.
    """
    above = broken(line, round(17 * width))
    figure = Figure(figsize=(width, _HEIGHT + 0.16 * len(above)))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[2.6, 1.0])
    for place, kind in enumerate(SIZED):
        _draw_curve(left, counts, kind, _APART ** (place - (len(SIZED) - 1) / 2))
    for place, kind in enumerate(_UNSIZED):
        _draw_mark(right, counts.of_kind(kind), place)
    _label_sizes(left)
    _label_kinds(right)
    if above:
        figure.suptitle("\n".join(above), x=0.01, ha="left", fontsize=7.5)
    return figure


def broken(line: str, most: int) -> list[str]:
    """The line as several, each of at most so many letters, broken after a semicolon if need be."""
    parts = [line] if len(line) <= most else line.replace("; ", ";\n").split("\n")
    return [short for part in parts for short in textwrap.wrap(part, most)]


def _draw_curve(axes: Axes, counts: Counts, kind: str, shift: float) -> None:
    cells = [cell for cell in counts.cells if cell.kind == kind and cell.present]
    if not cells:
        return
    x = [shift * float(np.sqrt(cell.low * cell.high)) for cell in cells]
    shares = [cell.found / cell.present for cell in cells]
    axes.plot(x, shares, **_drawn(kind), linestyle=LOOKS[kind].dash, label=kind)
    for place, cell in zip(x, cells, strict=True):
        _draw_interval(axes, place, cell)


def _draw_mark(axes: Axes, cell: Cell, place: int) -> None:
    if cell.share is None:
        axes.annotate("none", (place, 0.02), ha="center", va="bottom", fontsize=6.5)
        return
    axes.plot([place], [cell.share], **_drawn(cell.kind))
    axes.hlines(cell.share, place - 0.35, place + 0.35, color=LOOKS[cell.kind].colour, linewidth=1.2, zorder=3)
    _draw_interval(axes, place, cell)


def _drawn(kind: str) -> dict[str, Any]:
    look = LOOKS[kind]
    mark = {"marker": look.marker, "markersize": 5, "markerfacecolor": look.colour if look.filled else "white"}
    return {"color": look.colour, **mark, "zorder": 4, "clip_on": False}


def _draw_interval(axes: Axes, place: float, cell: Cell) -> None:
    if cell.interval is not None:
        axes.plot([place, place], cell.interval, color=LOOKS[cell.kind].colour, linewidth=0.9, zorder=1)


def _label_sizes(axes: Axes) -> None:
    axes.set(xscale="log", xlim=(SMALLEST, LARGEST), ylim=(-0.03, 1.03))
    ticks = [1, 2, 3, 5, 10]  # the ends of the ranges in which drills were counted
    axes.set_xticks(ticks, [f"{tick}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("size of the fault (robust units, logarithmic)")
    axes.set_ylabel("faulty sensors found, 95 % interval")
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.grid(axis="x", color="#E4E4E4", linewidth=0.6, zorder=0)
    axes.set_title("Faults that have a size", fontweight="bold")
    if axes.lines:
        above: dict[str, Any] = {
            "loc": "lower right",
            "bbox_to_anchor": (1.0, 1.025),
            "borderaxespad": 0.0,
        }  # on the line of the title
        axes.legend(ncols=len(SIZED), handlelength=2.4, columnspacing=1.2, borderpad=0.2, **above)


def _label_kinds(axes: Axes) -> None:
    axes.set_xlim(-0.6, len(_UNSIZED) - 0.4)
    axes.set_xticks(range(len(_UNSIZED)), _UNSIZED)
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("kind of fault")
    axes.set_title("Faults that have none", fontweight="bold")
