"""Pictures of experiments: each is one function of their records, and runs nothing.

A policy looks the same in all of them, and in the figures of the paper: `eccaht.research.experiments.looks`.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from eccaht.base.arrays import Array
from eccaht.base.presentation.style import NEUTRAL, TEXT_WIDTH, figure_style
from eccaht.base.randomness import rng_for
from eccaht.base.statistics import bca_interval, delay, reached_for_good
from eccaht.research.experiments.comparison import TARGET, Records, curve_steps
from eccaht.research.experiments.localisation import policy_of
from eccaht.research.experiments.looks import PolicyLook, looks, shown_name

TOGETHER = 6  # policies that one panel can show: more bands than that hide each other
_MARKS = 7  # on each curve, about; those of different policies are at different places

_HIGHEST = 12.0  # inches
_GREY = "#555555"


def draw_curves(
    ax: Axes, f1: Mapping[str, Array], *, seed: int, labels: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Draw mean F1 against measurements with pointwise intervals, from F1 by policy, (runs, horizon).

    labels: what the legend calls a policy, if not by its own name and the paper's.
    """
    runs, horizon = next(iter(f1.values())).shape
    opacity, drawn = 0.18 if len(f1) <= 5 else 0.1, looks(f1)
    for place, (name, curves) in enumerate(f1.items()):
        label = labels.get(name, shown_name(name))
        line = _draw_policy(ax, drawn[name], label, curves, seed=seed, opacity=opacity)
        apart = max(1, len(np.asarray(line.get_xdata())) // _MARKS)
        line.set(**drawn[name].mark(3.8), markevery=(int(place / len(f1) * apart), apart), markeredgewidth=0.0)
    ylabel = "mean F1, with 95 % intervals" if runs > 1 else "F1 of one run"
    ax.set(xlabel="measurements", ylabel=ylabel)
    _scale_axes(ax, horizon)


def _scale_axes(ax: Axes, horizon: int) -> None:
    ax.set(xlim=(1, max(horizon, 2)), ylim=(0, 1.02))
    if horizon <= 200:
        ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    else:
        ax.set_xscale("log", subs=[])
        leading = (1, 2, 5) if horizon < 20_000 else (1,)
        ticks = [m * 10**e for e in range(len(str(horizon))) for m in leading if m * 10**e <= horizon]
        ax.set_xticks(ticks, [str(tick) for tick in ticks])


def _draw_policy(ax: Axes, look: PolicyLook, label: str, f1: Array, *, seed: int, opacity: float) -> Line2D:
    steps = curve_steps(f1.shape[1])
    curves = f1[:, steps - 1]
    (line,) = ax.plot(steps, curves.mean(axis=0), **look.line, label=label, zorder=2)
    if len(curves) > 1:
        low, high = bca_interval(curves, rng=rng_for(seed, "bootstrap"))
        ax.fill_between(steps, low, high, color=look.colour, alpha=opacity, linewidth=0, zorder=1)
    return line


def draw_comparison(records: Records) -> Figure:
    """Draw the policies, of more than six the best ones."""
    best_first = sorted(records.hits, key=lambda name: -records.hits[name].mean())
    with figure_style():
        figure = Figure(figsize=(TEXT_WIDTH, 3.2))
        ax = figure.add_subplot()
        draw_curves(ax, {name: records.f1(name) for name in best_first[:TOGETHER]}, seed=records.seed)
        ax.set_title(f"the best {TOGETHER} of {len(best_first)} policies" if len(best_first) > TOGETHER else "")
        figure.legend(loc="outside right upper", handlelength=2.8)
    return figure


Reached = Callable[[Array, float], int | None]


def _methods(names: Sequence[str]) -> dict[str, tuple[PolicyLook, bool]]:
    """How methods are drawn: as their policies; one that is made blind to correlation as its seeing twin, hollow."""
    policies = {name: policy_of(name) for name in names}
    drawn = looks(policy for policy, _ in policies.values())
    return {name: (drawn[policy], blind) for name, (policy, blind) in policies.items()}


class Times(NamedTuple):
    """One value a run, None for a run that was cut off at the limit."""

    values: Sequence[float | None]
    limit: float


def draw_delays(groups: Mapping[str, Records], *, title: str, unit: str, reached: Reached = reached_for_good) -> Figure:
    """Draw measurements until the right set is named, first or for good."""
    times = {
        label: {
            name: Times([reached(curve, TARGET) for curve in records.f1(name)], hits.shape[1])
            for name, hits in records.hits.items()
        }
        for label, records in groups.items()
    }
    for_good = " for good" if reached is reached_for_good else ""
    return draw_times(times, title=title, label=f"{unit} until F1 ≥ {TARGET}{for_good}")


def draw_times(groups: Mapping[str, Mapping[str, Times]], *, title: str, label: str) -> Figure:
    """Draw times by group and method: mean, 95 % interval and faintly the runs; a triangle is a lower bound."""
    names = list(dict.fromkeys(name for methods in groups.values() for name in methods))
    drawn = _methods(names)
    with figure_style():
        figure, ax = _canvas(groups, names, title)
        cut = False
        for row, methods in enumerate(groups.values()):
            for name, times in methods.items():
                y = row + (names.index(name) - (len(names) - 1) / 2) * 0.8 / len(names)
                _draw_times(ax, y, times, *drawn[name])
                cut |= None in times.values
        ax.set_xlabel(f"{label}, mean with 95 % interval")
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
        handles = [Line2D([], [], **_point(*drawn[name]), label=shown_name(name)) for name in names]
        handles.append(Line2D([], [], color=_GREY, marker="|", linestyle="", label="single searches"))
        if cut:
            handles.append(Line2D([], [], color=_GREY, marker="^", linestyle="", label="lower bound: some cut off"))
        figure.legend(handles=handles, loc="outside lower left", ncols=4, handlelength=2.8, columnspacing=1.5)
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


def _point(look: PolicyLook, hollow: bool) -> dict[str, Any]:
    return {**look.line, **look.mark(3.6), "markerfacecolor": "white" if hollow else look.colour}


def _draw_times(ax: Axes, y: float, times: Times, look: PolicyLook, hollow: bool) -> None:
    single, cut = [times.limit if value is None else value for value in times.values], None in times.values
    ax.plot(single, [y] * len(single), "|", color=look.colour, alpha=0.35, markersize=3.5)
    drawn = _point(look, hollow) | ({"marker": "^", "markersize": 4.2} if cut else {})
    found = delay(times.values, times.limit, rng=rng_for(0, "bootstrap"))
    if found.interval is not None:
        ax.plot(found.interval, [y, y], **look.line, linewidth=0.9, zorder=2)
    ax.plot(found.mean, y, **drawn, zorder=3)
