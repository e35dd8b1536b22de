"""The picture of a comparison: mean F1 against measurements, the best policy first."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from eccaht.arrays import Array
from eccaht.experiments.comparison import Records, curve_steps
from eccaht.experiments.policy_style import draw_curves, draw_policy, f1_label, scale_axes
from eccaht.presentation.style import NEUTRAL, TEXT_WIDTH, figure_style

TOGETHER = 6  # policies that one panel can show: more bands than that hide each other
_COLUMNS = 4


def draw(records: Records) -> Figure:
    """Draw few policies in one panel, many in a panel each with all others in grey behind."""
    best_first = sorted(records.hits, key=lambda name: -records.hits[name].mean())
    f1 = {name: records.f1(name) for name in best_first}
    with figure_style():
        return (_draw_together if len(f1) <= TOGETHER else _draw_apart)(f1, records.seed)


def _draw_together(f1: Mapping[str, Array], seed: int) -> Figure:
    figure = Figure(figsize=(TEXT_WIDTH, 3.2))
    draw_curves(figure.add_subplot(), f1, seed=seed)
    figure.legend(loc="outside right upper", handlelength=2.8)
    return figure


def _draw_apart(f1: Mapping[str, Array], seed: int) -> Figure:
    rows = -(-len(f1) // _COLUMNS)
    figure = Figure(figsize=(TEXT_WIDTH, 0.5 + 1.15 * rows))
    panels = figure.subplots(rows, _COLUMNS, sharex=True, sharey=True, squeeze=False).ravel()
    runs, horizon = next(iter(f1.values())).shape
    steps = curve_steps(horizon)
    means = {name: curves[:, steps - 1].mean(axis=0) for name, curves in f1.items()}
    for place, (ax, (name, curves)) in enumerate(zip(panels, f1.items(), strict=False)):
        for other, mean in means.items():
            if other != name:
                ax.plot(steps, mean, color=NEUTRAL, linewidth=0.4, alpha=0.7, zorder=0.5)
        draw_policy(ax, name, name, curves, seed=seed, opacity=0.25)
        ax.lines[-1].set_linestyle("-")  # alone it needs no dash to be known by
        ax.set_title(name, fontweight="bold")
        scale_axes(ax, horizon, narrow=True)
        last = place + _COLUMNS >= len(f1)  # of its column
        ax.tick_params(labelleft=place % _COLUMNS == 0, labelbottom=last)
    for ax in panels[len(f1) :]:
        ax.set_visible(False)
    figure.supxlabel("measurements", fontsize=7.5)
    figure.supylabel(f"{f1_label(runs)}; in grey all others", fontsize=7.5)
    return figure
