"""The picture of what readings buy: the share of faults found and the delay, against the readings in a window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from eccaht.base.presentation.style import PALETTE, TEXT_WIDTH, figure_style
from eccaht.plants.show.drill_picture import broken

_LOOKS: dict[str, dict[str, Any]] = {
    "most telling": {"color": PALETTE["blue"], "marker": "o"},
    "in turn": {"color": PALETTE["vermillion"], "marker": "s", "linestyle": "--"},
    "all": {"color": PALETTE["black"], "marker": "D", "linestyle": "none"},
}


@figure_style()
def draw(rows: Sequence[Mapping[str, Any]], line: str = "", *, width: float = TEXT_WIDTH) -> Figure:
    """Draw the shares found, with 95 % intervals, and below them the median delays; rows: of `ReadingDrills`."""
    figure = Figure(figsize=(width, 4.0))
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[1.5, 1.0])
    for rule, look in _LOOKS.items():
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
