"""The picture of counted errors: when the searches stopped, and how often they were wrong."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eccaht.base.presentation.style import NEUTRAL, PALETTE, TEXT_WIDTH, figure_style
from eccaht.research.experiments.error_counts import ErrorCounts, Level, summarise

_COLOURS = ("blue", "green", "purple", "orange", "sky", "black")  # of the alphas; errors are vermillion
_LONG = 20  # times as late as the first stop: the axis becomes logarithmic


def draw(records: ErrorCounts) -> Figure:
    """Draw the share of searches that had stopped after each measurement, and counted errors against alpha."""
    with figure_style():
        figure = Figure(figsize=(TEXT_WIDTH, 2.9))
        left, right = figure.subplots(1, 2, width_ratios=[1.5, 1.0])
        _draw_stops(left, records)
        _draw_errors(right, summarise(records))
        figure.legend(loc="outside lower left", ncols=3, handlelength=1.6, columnspacing=1.2)
    return figure


def colour_of(place: int) -> str:
    return PALETTE[_COLOURS[place % len(_COLOURS)]]


def _draw_stops(axes: Axes, records: ErrorCounts) -> None:
    runs, last = len(records.searches), max(search.n_measurements for search in records.searches)
    good = sorted(search.right_for_good for search in records.searches if search.right_for_good is not None)
    if good:
        _draw_share(axes, good, runs, last, colour=NEUTRAL, label="right for good", dash="--")
    wrong: list[tuple[int, float]] = []
    for place, alpha in enumerate(records.alphas):
        ended = [search.stops[place] for search in records.searches]
        stops = sorted((stop.n_measurements, stop.right) for stop in ended if stop is not None)
        times = [time for time, _ in stops]
        cut = f", {runs - len(stops)} not stopped" if len(stops) < runs else ""
        _draw_share(axes, times, runs, last, colour=colour_of(place), label=f"stopped at alpha {alpha:g}{cut}")
        wrong += [(time, (k + 1) / runs) for k, (time, right) in enumerate(stops) if not right]
    if wrong:
        x, y = zip(*wrong, strict=True)
        axes.plot(x, y, "x", color=PALETTE["vermillion"], markersize=4.5, label="stopped with a wrong set", zorder=4)
    axes.set(xlabel="measurements", ylabel="share of searches", ylim=(0, 1.03))
    early = min((stop.n_measurements for s in records.searches for stop in s.stops if stop is not None), default=1)
    if last > _LONG * early:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlim(1, last)
    else:
        axes.set_xlim(0, last + 1)
        axes.locator_params(axis="x", integer=True)
    axes.set_title(f"When {runs} searches stopped")


def _draw_share(
    axes: Axes, times: list[int], runs: int, last: int, *, colour: str, label: str, dash: str = "-"
) -> None:
    x = np.array([1, *times, last])
    y = np.array([0, *range(1, len(times) + 1), len(times)]) / runs
    axes.step(x, y, where="post", color=colour, linestyle=dash, label=label)


def _draw_errors(axes: Axes, levels: list[Level]) -> None:
    """Shares on a logarithmic axis; no error at all is drawn as a triangle on its floor."""
    axes.set(xscale="log", yscale="log", xlabel="alpha", ylabel="share of wrong sets, 95 % interval")
    alphas = [level.alpha for level in levels]
    counted = [level for level in levels if level.share is not None]
    positive = [level.share for level in counted if level.share] + [alphas[-1]]
    floor = 0.2 * min(positive)
    x = np.array([alphas[-1] / 2.5, min(alphas[0] * 2.5, 1.0)])
    axes.plot(x, x, color="black", linewidth=0.8)
    axes.fill_between(x, x, 1.0, color=NEUTRAL, alpha=0.25, linewidth=0)
    axes.text(0.03, 0.97, "more than the bound", transform=axes.transAxes, va="top", fontsize=6.5, color="#4D4D4D")
    for place, level in enumerate(levels):
        if level.share is None or level.interval is None:
            continue
        low, high = level.interval
        axes.plot([level.alpha] * 2, [max(low, floor), high], color=colour_of(place), linewidth=1.2)
        mark = {"marker": "o", "markersize": 4.5} if level.share else {"marker": "v", "markersize": 5}
        axes.plot([level.alpha], [level.share or floor], color=colour_of(place), clip_on=False, zorder=4, **mark)  # type: ignore[arg-type]
        label = f"{level.errors}/{level.stopped}"
        place_of = (level.alpha, level.share or floor)
        axes.annotate(label, place_of, xytext=(5, 2), textcoords="offset points", fontsize=6.5)
    axes.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas])
    axes.minorticks_off()
    top = max([x[1], *(level.interval[1] for level in counted if level.interval)])
    axes.set(xlim=x, ylim=(floor, min(1.0, 2.0 * top)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title("Errors counted")
