"""The pictures of drills: the share of faults that were found and how soon, against their size and the readings."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from eccaht.base.presentation.style import PALETTE, TEXT_WIDTH, figure_style
from eccaht.plants.incident.counts import BANDS, Cell, Counts
from eccaht.plants.incident.faults import KINDS, LARGEST, SIZED, SMALLEST

_UNSIZED = tuple(kind for kind in KINDS if kind not in SIZED)
_HEIGHT = 4.4
_APART = 1.05  # ratio of the places of two curves, so that their intervals stand side by side


class _DrillLook(NamedTuple):
    """How a kind is drawn: shapes and dashes distinguish kinds where colours do not."""

    colour: str
    marker: str
    dash: str = "-"
    filled: bool = True


LOOKS = {
    "step": _DrillLook(PALETTE["blue"], "o"),
    "drift": _DrillLook(PALETTE["vermillion"], "s", "--"),
    "noise": _DrillLook(PALETTE["black"], "^", ":", filled=False),
    "concealed": _DrillLook(PALETTE["purple"], "X", "-."),
    "stuck": _DrillLook(PALETTE["green"], "D"),
    "replay": _DrillLook(PALETTE["purple"], "v"),
    "silent": _DrillLook(PALETTE["black"], "P", filled=False),
}


@figure_style()
def draw(counts: Counts, *, line: str = "", width: float = TEXT_WIDTH) -> Figure:
    """Draw the share found, with 95 % intervals, and below it the median delay.

    A curve for each kind that has a size, and a mark for each that has none. line: what stands above, as `Counts.line`
    gives it. width: in inches.
    """
    above = broken(line, round(17 * width))
    figure = Figure(figsize=(width, _HEIGHT + 0.16 * len(above)))
    grid = figure.subplots(2, 2, sharex="col", sharey="row", width_ratios=[2.6, 1.0], height_ratios=[1.5, 1.0])
    for place, kind in enumerate(SIZED):
        cells = counts.of_kind(kind)
        shift = _APART ** (place - (len(SIZED) - 1) / 2)
        _draw_cells(grid[:, 0], cells, [shift * float(np.sqrt(cell.low * cell.high)) for cell in cells])
    for place, kind in enumerate(_UNSIZED):
        cells = counts.of_kind(kind)
        _draw_cells(grid[:, 1], cells, [float(place)] * len(cells))
        if not cells:
            grid[0, 1].annotate("none", (place, 0.02), ha="center", va="bottom", fontsize=6.5)
    _label_sizes(grid[:, 0])
    _label_kinds(grid[:, 1])
    if above:
        figure.suptitle("\n".join(above), x=0.01, ha="left", fontsize=7.5)
    return figure


def broken(line: str, most: int) -> list[str]:
    """The line as several, each of at most so many letters, broken after a sentence if need be."""
    parts = [line] if len(line) <= most else line.replace(". ", ".\n").split("\n")
    return [short for part in parts for short in textwrap.wrap(part, most)]


def _draw_cells(axes: Any, cells: tuple[Cell, ...], places: list[float]) -> None:
    """The shares and the delays of one kind."""
    if not cells:
        return
    kind, look = cells[0].kind, LOOKS[cells[0].kind]
    mark = {"marker": look.marker, "markersize": 5, "markerfacecolor": look.colour if look.filled else "white"}
    drawn: dict[str, Any] = {"color": look.colour, "linestyle": look.dash, **mark, "zorder": 4, "clip_on": False}
    axes[0].plot(places, [cell.share for cell in cells], **drawn, label=kind)
    for place, cell in zip(places, cells, strict=True):
        axes[0].plot([place, place], cell.interval, color=look.colour, linewidth=0.9, zorder=1)
    found = [(place, cell.delay) for place, cell in zip(places, cells, strict=True) if cell.found]
    if found:
        axes[1].plot(*zip(*found, strict=True), **drawn)


def _label_sizes(axes: Any) -> None:
    top, bottom = axes
    ticks = sorted({end for band in BANDS for end in band})  # the ends of the ranges in which drills were counted
    top.set(xscale="log", xlim=(SMALLEST, LARGEST), ylim=(-0.03, 1.03))
    top.set_ylabel("faults found, 95 % interval")
    top.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    top.set_title("Faults that have a size", fontweight="bold", loc="left")
    bottom.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    bottom.minorticks_off()
    bottom.set_xlabel("size of the fault (robust units, logarithmic)")
    bottom.set_ylabel("median delay (windows)")
    bottom.set_ylim(bottom=0.0)
    for one in axes:
        one.grid(axis="x", color="#E4E4E4", linewidth=0.6, zorder=0)
    if top.lines:
        place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
        top.legend(ncols=len(SIZED), handlelength=2.4, columnspacing=1.0, borderpad=0.2, fontsize=6.5, **place)


def _label_kinds(axes: Any) -> None:
    top, bottom = axes
    top.set_title("Faults that have none", fontweight="bold", loc="left")
    bottom.set_xlim(-0.6, len(_UNSIZED) - 0.4)
    bottom.set_xticks(range(len(_UNSIZED)), _UNSIZED)
    bottom.tick_params(axis="x", length=0)
    bottom.set_xlabel("kind of fault")


_READING_LOOKS: dict[str, dict[str, Any]] = {
    "most telling": {"color": PALETTE["blue"], "marker": "o"},
    "in turn": {"color": PALETTE["vermillion"], "marker": "s", "linestyle": "--"},
    "all": {"color": PALETTE["black"], "marker": "D", "linestyle": "none"},
}


@figure_style()
def draw_readings(rows: Sequence[Mapping[str, Any]], line: str = "", *, width: float = TEXT_WIDTH) -> Figure:
    """Draw the shares found, with 95 % intervals, and below them the median delays; rows: of `ReadingDrills`."""
    figure = Figure(figsize=(width, 4.0))
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[1.5, 1.0])
    for rule, look in _READING_LOOKS.items():
        some = [row for row in rows if row["rule"] == rule and row["drills"]]
        if not some:
            continue
        top.plot([row["readings"] for row in some], [row["share"] for row in some], label=rule, **look)
        for row in some:
            top.plot([row["readings"]] * 2, row["interval"], color=look["color"], linewidth=0.9)
        found = [(row["readings"], row["delay"]) for row in some if row["delay"] is not None]
        if found:
            bottom.plot(*zip(*found, strict=True), **look)
    ticks = sorted({row["readings"] for row in rows})
    top.set(xscale="log", ylim=(-0.03, 1.03))
    top.set_ylabel("faults found, 95 % interval")
    top.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    top.legend(loc="lower right", fontsize=7)
    bottom.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    bottom.minorticks_off()
    bottom.set_xlabel("readings in a window (logarithmic)")
    bottom.set_ylabel("median delay (windows)")
    bottom.set_ylim(bottom=0.0)
    figure.suptitle("\n".join(broken(line, round(17 * width))), x=0.01, ha="left", fontsize=7.5)
    return figure
