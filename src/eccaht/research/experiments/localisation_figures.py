"""Pictures of searches in recorded rows: how long each method takes, group by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from eccaht.base.arrays import Array
from eccaht.base.presentation.style import NEUTRAL, TEXT_WIDTH, figure_style
from eccaht.base.randomness import rng_for
from eccaht.base.statistics import delay, reached_for_good
from eccaht.research.experiments.comparison import TARGET, Records
from eccaht.research.experiments.comparison_figure import policy_style
from eccaht.research.experiments.localisation import policy_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HIGHEST = 12.0  # inches
_GREY = "#555555"
Reached = Callable[[Array, float], int | None]


def look(name: str) -> dict[str, Any]:
    """How a method is drawn: as its policy; a method blind to correlation as its seeing twin, hollow."""
    policy, blind = ("ecc-aht", True) if name == "diagonal" else policy_of(name)
    colour, dash = policy_style(policy)
    return {"color": colour, "linestyle": dash, "markerfacecolor": "white" if blind else colour}


class Times(NamedTuple):
    """One value a run, None for a run that was cut off at the limit."""

    values: Sequence[float | None]
    limit: float


def draw_delays(
    groups: Mapping[str, Records], *, title: str, unit: str, reached: Reached = reached_for_good, seed: int = 0
) -> Figure:
    """Draw measurements until the right set is named, first or for good."""
    times = {
        label: {
            name: Times([reached(curve, TARGET) for curve in records.f1(name)], hits.shape[1])
            for name, hits in records.hits.items()
        }
        for label, records in groups.items()
    }
    for_good = " for good" if reached is reached_for_good else ""
    return draw_times(times, title=title, label=f"{unit} until F1 ≥ {TARGET}{for_good}", seed=seed)


def draw_times(groups: Mapping[str, Mapping[str, Times]], *, title: str, label: str, seed: int = 0) -> Figure:
    """Draw times by group and method: mean, 95 % interval and faintly the runs; a triangle is a lower bound."""
    names = list(dict.fromkeys(name for methods in groups.values() for name in methods))
    with figure_style():
        figure, ax = _canvas(groups, names, title)
        cut = False
        for row, methods in enumerate(groups.values()):
            for name, times in methods.items():
                _draw_times(ax, _height(row, name, names), times, look(name), seed)
                cut |= None in times.values
        ax.set_xlabel(f"{label}, mean with 95 % interval")
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
        extra = [Line2D([], [], color=_GREY, marker="|", linestyle="", label="single searches")]
        if cut:
            extra.append(Line2D([], [], color=_GREY, marker="^", linestyle="", label="lower bound: some cut off"))
        _legend(figure, names, extra)
    return figure


def _canvas(groups: Mapping[str, Any], names: Sequence[str], title: str) -> tuple[Figure, Axes]:
    height = min(_HIGHEST, 1.5 + len(groups) * (0.16 + 0.115 * len(names)))
    figure = Figure(figsize=(TEXT_WIDTH, height))
    ax = figure.add_subplot()
    ax.set_title(title)
    ax.set_yticks(range(len(groups)), list(groups))
    ax.set_ylim(len(groups) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    for row in range(1, len(groups)):
        ax.axhline(row - 0.5, color=NEUTRAL, linewidth=0.4, zorder=0.5)
    return figure, ax


def _height(row: int, name: str, names: Sequence[str]) -> float:
    return row + (names.index(name) - (len(names) - 1) / 2) * 0.8 / len(names)


def _legend(figure: Figure, names: Sequence[str], extra: Sequence[Line2D]) -> None:
    entries = [Line2D([], [], **look(name), marker="o", markersize=3.6, label=name) for name in names]
    figure.legend(handles=[*entries, *extra], loc="outside lower left", ncols=4, handlelength=2.8, columnspacing=1.5)


def _draw_times(ax: Axes, y: float, times: Times, drawn: dict[str, Any], seed: int) -> None:
    single = [times.limit if value is None else value for value in times.values]
    ax.plot(single, [y] * len(single), "|", color=drawn["color"], alpha=0.35, markersize=3.5)
    _, mean, ends = delay(times.values, times.limit, rng=rng_for(seed, "bootstrap"))
    _draw_mean(ax, y, mean, ends, drawn, "^" if None in times.values else "o")


def _draw_mean(
    ax: Axes, y: float, mean: float, ends: tuple[float, float] | None, drawn: dict[str, Any], marker: str = "o"
) -> None:
    if ends is not None:
        ax.plot(ends, [y, y], color=drawn["color"], linestyle=drawn["linestyle"], linewidth=0.9, zorder=2)
    ax.plot(mean, y, **drawn, marker=marker, markersize=4.2 if marker == "^" else 3.6, zorder=3)
