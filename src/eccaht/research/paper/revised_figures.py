"""The pictures of the revision: readings of each procedure by setting, the authors' beside ours."""

from __future__ import annotations

import math
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, ScalarFormatter

from eccaht.base.arrays import Array
from eccaht.base.presentation.style import TEXT_WIDTH, figure_style
from eccaht.base.statistics import bca_interval
from eccaht.research.experiments.looks import PolicyLook, looks, shown_name
from eccaht.research.paper.published import PUBLISHED
from eccaht.research.paper.results import Results
from eccaht.research.paper.revised import information_limit

_COLUMNS = 4
_APART = 0.09  # between procedures of one setting
_GREY = "#555555"


def draw_revised(results: Results) -> Figure:
    """Draw mean readings with 95 % intervals against what varies; hollow marks are the authors'."""
    experiment = results.experiment
    panels = _by_panel(results)
    rows = math.ceil(len(panels) / _COLUMNS)
    with figure_style():
        figure = Figure(figsize=(TEXT_WIDTH, 1.2 + 1.9 * rows))
        title = fill(f"{experiment.id}: {experiment.title} ({results.runs} searches each)", 105)
        figure.suptitle(title, x=0.01, ha="left", fontsize=8)
        grid = figure.subplots(rows, min(len(panels), _COLUMNS), squeeze=False).ravel()
        for ax, (label, settings) in zip(grid, panels.items(), strict=False):
            _draw_panel(ax, label, settings, results)
        for ax in grid[len(panels) :]:
            ax.set_visible(False)
        what = "readings x Gamma* / log(1/alpha)" if _normalised(results) else "mean readings"
        for ax in grid[:: min(len(panels), _COLUMNS)]:
            ax.set_ylabel(what)
        shown = looks(experiment.shown)
        handles = [
            Line2D([], [], **look.line, **look.mark(3.6), linewidth=1.0, label=shown_name(name))
            for name, look in shown.items()
        ]
        handles.append(Line2D([], [], color=_GREY, marker="o", markerfacecolor="white", linestyle="", label="authors"))
        if _normalised(results):
            handles.append(Line2D([], [], color=_GREY, linewidth=0.7, linestyle="--", label="the limit"))
        figure.legend(handles=handles, loc="outside lower left", ncols=5, columnspacing=1.4, handlelength=2.4)
    return figure


def _by_panel(results: Results) -> dict[str, list[int]]:
    """The settings of each panel; settings that have no place on an axis are one panel."""
    panels: dict[str, list[int]] = {}
    for k, setting in enumerate(results.experiment.settings):
        panels.setdefault("" if math.isnan(setting.x) else setting.label, []).append(k)
    return panels


def _normalised(results: Results) -> bool:
    return results.experiment.id == "revised-rate"


def _scale(results: Results, k: int) -> float:
    """What readings are multiplied by to be readings for each nat of log(1/alpha), in those of the limit."""
    setting = results.experiment.settings[k]
    if not _normalised(results):
        return 1.0
    return (information_limit(setting) or math.nan) / math.log(1.0 / setting.options["alpha"])


def _draw_panel(ax: Axes, label: str, settings: list[int], results: Results) -> None:
    experiment = results.experiment
    named = [experiment.settings[k].label for k in settings]
    x = np.arange(len(settings), dtype=float) if not label else np.array([experiment.settings[k].x for k in settings])
    scale = np.array([_scale(results, k) for k in settings])
    for place, (name, look) in enumerate(looks(experiment.shown).items()):
        aside = 0.0 if label else _APART * (place - (len(experiment.shown) - 1) / 2)
        readings = np.stack([results.cells[k, name][:, 1] for k in settings], axis=1) * scale
        _draw_row(ax, x + aside, readings, look, results, joined=bool(label))
        theirs = [PUBLISHED.get((experiment.id, k, name), (math.nan,))[0] for k in settings]
        hollow = {**look.mark(5.5), "markerfacecolor": "none", "markeredgewidth": 0.8, "linestyle": "", "zorder": 3}
        ax.plot(x + aside, np.array(theirs) * scale, color=look.colour, **hollow)
    if _normalised(results):
        ax.axhline(1.0, color=_GREY, linewidth=0.7, linestyle="--", zorder=1)
        ax.set_xlabel("log10(1/alpha)")
    ax.set_title(label)
    if not label:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_xticks(x, named)
    else:
        ax.set_ylim(bottom=0.0)
        ax.xaxis.set_major_locator(MaxNLocator(5))


def _draw_row(ax: Axes, x: Array, readings: Array, look: PolicyLook, results: Results, *, joined: bool) -> None:
    line = look.line if joined else {**look.line, "linestyle": ""}
    ax.plot(x, readings.mean(axis=0), **line, **look.mark(3.6), linewidth=1.0, zorder=2)
    if len(readings) > 1:
        low, high = bca_interval(readings, rng=results.bootstrap())
        ax.vlines(x, low, high, color=look.colour, linewidth=0.8, alpha=0.7, zorder=1.5)
