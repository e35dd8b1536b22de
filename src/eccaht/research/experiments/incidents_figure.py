"""The picture of the bench: precision at n by method and collection, on labelled and on replayed incidents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from eccaht.base.presentation.style import NEUTRAL, PALETTE, TEXT_WIDTH, figure_style
from eccaht.base.statistics import Estimate
from eccaht.research.experiments.incidents_methods import OURS
from eccaht.research.experiments.incidents_summary import BOTH, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _MARGINS = 0.155, 0.75  # inches
_RIVAL = "#555555"


def draw(summaries: Mapping[str, Summary]) -> Figure:
    """Draw mean precision at n with its interval, one row for each collection and method."""
    labelled = {name: _column(each.labelled, "precision_at_n") for name, each in summaries.items()}
    replayed = {name: _column(each.replayed, BOTH) for name, each in summaries.items()}
    panels = {"labelled incidents": labelled, "replayed incidents of one and of three sensors": replayed}
    rows = _layout(panels)
    with figure_style():
        figure = Figure(figsize=(TEXT_WIDTH, _MARGINS + _ROW * len(rows)))
        axes = figure.subplots(1, len(panels), sharey=True)
        for ax, (title, collections) in zip(axes, panels.items(), strict=True):
            for y, (collection, method) in enumerate(rows):
                if method in collections[collection]:
                    _draw_mean(ax, y, collections[collection][method], method)
            ax.set(title=title, xlabel="share of the n wrong sensors among the first n", xlim=(0, 1.02))
            ax.xaxis.grid(True, color=NEUTRAL, linewidth=0.3)
            ax.set_axisbelow(True)
            ax.tick_params(axis="y", length=0)
            for y, (_, method) in enumerate(rows):
                if not method and y:
                    ax.axhline(y - 0.5, color=NEUTRAL, linewidth=0.5)
        _label_rows(axes[0], rows)
    return figure


def _column(estimates: Mapping[str, Mapping[str, Estimate]], key: str) -> dict[str, Estimate]:
    return {method: each[key] for method, each in estimates.items() if key in each}


def _layout(panels: Mapping[str, Mapping[str, Mapping[str, Estimate]]]) -> list[tuple[str, str]]:
    """The rows from the top: the name of a collection, then its methods."""
    rows: list[tuple[str, str]] = []
    for collection in next(iter(panels.values())):
        methods = dict.fromkeys(method for each in panels.values() for method in each[collection])
        rows += [(collection, ""), *((collection, method) for method in methods)]
    return rows


def _label_rows(ax: Axes, rows: list[tuple[str, str]]) -> None:
    ax.set_yticks(range(len(rows)), [method or collection for collection, method in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    for label, (_, method) in zip(ax.get_yticklabels(), rows, strict=True):
        label.set_fontweight("bold" if method in ("", OURS) else "normal")
        if not method:
            label.set_fontsize(7.5)


def _look(method: str) -> dict[str, Any]:
    """Ours is round; rivals are square and grey."""
    if method != OURS:
        return {"color": _RIVAL, "marker": "s", "markersize": 3.2}
    return {"color": PALETTE["blue"], "marker": "o", "markersize": 4.4}


def _draw_mean(ax: Axes, y: float, value: Estimate, method: str) -> None:
    look = _look(method)
    if value.interval is not None:
        ax.plot(value.interval, [y, y], color=look["color"], linewidth=1.0, zorder=2)
    ax.plot(value.mean, y, **look, zorder=3, clip_on=False)
