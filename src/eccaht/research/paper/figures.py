"""The pictures of the catalogue: F1 curves, sweeps of the time to F1 0.95, final F1 against effective rank, figure 1.

All are drawn from Results, figure 1 from its table; no search is run. Effective ranks, and in a sweep of the budget the
place where its limit stops binding, are computed from the settings.
"""

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.base.presentation.style import NEUTRAL, PALETTE, TEXT_WIDTH, figure_style
from eccaht.base.statistics import bca_interval
from eccaht.research.experiments.comparison import TARGET
from eccaht.research.experiments.figures import draw_curves
from eccaht.research.experiments.looks import PolicyLook, looks, shown_name
from eccaht.research.experiments.tables import Table
from eccaht.research.paper.experiment import Ranks
from eccaht.research.paper.fig1 import CLOSE_UP, by_step
from eccaht.research.paper.results import Results, unlimited_budget

_FORMS = (("o", "-", True), ("s", "--", False), ("D", ":", True), ("v", "-.", False))  # marker, dash, filled
_HOLLOW: dict[str, Any] = {"marker": "^", "markerfacecolor": "white", "markersize": 4.5, "linestyle": ""}
_THIN: dict[str, Any] = {"color": "#555555", "linewidth": 0.7, "zorder": 1}
_LETTERS = "abcdefgh"
_LINE_LENGTH = 105  # characters of a title that fit the width of the text
_NARROW = 22  # characters of labels of which four fit side by side


def draw(results: Results) -> Figure:
    kind = results.experiment.kind
    if kind not in _DRAWINGS:
        raise ValueError(
            f"{results.experiment.id} is of kind {kind!r}: only {', '.join(_DRAWINGS)} are drawn from runs"
        )
    with figure_style():
        figure = Figure(figsize=(TEXT_WIDTH, 3.3))
        title = f"{results.experiment.id}: {results.experiment.title}".replace(">=", "≥")
        lines = [fill(title, _LINE_LENGTH), fill(_fixed(results), _LINE_LENGTH)]
        figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=8)
        _DRAWINGS[kind](figure, results)
    return figure


def _fixed(results: Results) -> str:
    settings = results.experiment.settings
    names = [setting.label if len(settings) == 1 else setting.family.replace("_", " ") for setting in settings]
    rhos = [f"rho {setting.arguments['rho']:g}" for setting in settings if "rho" in setting.arguments]
    sizes = [f"K = {setting.arguments.get('K') or setting.covariance().size}" for setting in settings]
    counts = [f"n = {setting.n_anomalies}" for setting in settings]
    shifts = [f"shift {setting.shift:g}" for setting in settings]
    budgets = [f"budget {setting.budget:g}" for setting in settings]
    columns = (names, rhos if len(settings) > 1 else [], sizes, counts, shifts, budgets)
    runs = "1 run" if results.runs == 1 else f"{results.runs} runs"
    return ", ".join([*(values[0] for values in columns if len({*values}) == 1), runs])


def _panels(figure: Figure, titles: Sequence[str]) -> list[Axes]:
    grid = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    for ax, letter, title in zip(grid, _LETTERS, titles, strict=False):
        ax.set_title(f"({letter}) {title}" if len(titles) > 1 else "")
    return list(grid)


def _legend(figure: Figure, entries: Sequence[Line2D], columns: int) -> None:
    """Put the entries below the panels, to be read row by row; matplotlib fills columns."""
    by_column = [entry for column in range(columns) for entry in entries[column::columns]]
    figure.legend(handles=by_column, loc="outside lower left", ncols=columns, handlelength=2.8, columnspacing=1.5)


def _log_ticks(ax: Axes, side: str, *, counts: bool = False) -> None:
    """Label a logarithmic axis with plain numbers: 1, 2, 5, 10, or evenly where it spans less than a decade.

    counts: of things, so that only whole numbers are labelled, if there are any.
    """
    axis, (low, high) = (ax.xaxis, ax.get_xlim()) if side == "x" else (ax.yaxis, ax.get_ylim())
    exponents = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [m * 10.0**e for e in exponents for m in (1, 2, 5)]
    if sum(low <= tick <= high for tick in ticks) < 3:
        ticks = list(MaxNLocator(4, integer=counts).tick_values(low, high))
    ticks = [tick for tick in ticks if low <= tick <= high]
    whole = [tick for tick in ticks if tick == round(tick)]
    ticks = whole if counts and whole else ticks
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def _bars(ax: Axes, x: Array, values: Array, colour: str, results: Results) -> list[LineCollection]:
    if len(values) == 1 or not x.size:
        return []
    low, high = bca_interval(values, rng=results.bootstrap())
    return [ax.vlines(x, low, high, color=colour, linewidth=0.8, alpha=0.7, zorder=1.5)]


def _draw_curves(figure: Figure, results: Results) -> None:
    experiment, settings = results.experiment, range(len(results.experiment.settings))
    figure.set_figheight(3.7)
    found = {name: sum(float(results.cells[k, name].mean()) for k in settings) for name in experiment.policies}
    best_first = sorted(found, key=lambda name: -found[name])
    censored = {name: [int(results.times(name, k, for_good=True)[1].sum()) for k in settings] for name in found}
    some = any(map(any, censored.values()))
    labels = {name: shown_name(name) + f"\n{_never(censored[name], results.runs)}" * some for name in best_first}
    panels = _panels(figure, [setting.label for setting in experiment.settings])
    for k, ax in enumerate(panels):
        draw_curves(ax, {name: results.f1(k, name) for name in best_first}, seed=results.seed, labels=labels)
        ax.label_outer()
        if len(panels) > 1 and ax.get_xscale() == "log":  # too narrow for all the labels
            ticks = [f"{tick:.0f}" for tick in ax.get_xticks()]
            ax.set_xticklabels([tick if tick[0] == "1" else "" for tick in ticks])
    reached = f"F1 ≥ {TARGET} for good"
    note = f"never: not at\n{reached}" if some else f"every run reaches\n{reached}"
    widest = max(len(line) for label in labels.values() for line in label.split("\n"))
    _legend(figure, [*panels[0].lines, Line2D([], [], linestyle="", label=note)], 4 if widest <= _NARROW else 3)


def _never(censored: list[int], runs: int) -> str:
    if not any(censored):
        return "all arrive"
    if len(censored) == 1:
        return f"{censored[0]}/{runs} never"
    return ", ".join(f"({letter}) {count}/{runs}" for letter, count in zip(_LETTERS, censored, strict=False)) + " never"


def _draw_sweep(figure: Figure, results: Results) -> None:
    experiment = results.experiment
    order = np.argsort([setting.x for setting in experiment.settings], kind="stable")
    x = np.array([experiment.settings[k].x for k in order])
    wide, anywhere = bool(x.min() > 0 and x.max() > 30 * x.min()), False
    shown = looks(experiment.policies)
    panels, drawings = _panels(figure, [f"first at F1 ≥ {TARGET}", f"at F1 ≥ {TARGET} for good"]), []
    for ax, for_good in zip(panels, (False, True), strict=True):
        ax.set_xscale("log" if wide else "linear")
        ax.set_yscale("log")
        drawn = []
        for name, look in shown.items():
            times, censored = results.sweep(name, order, for_good=for_good)
            drawn.append(_draw_times(ax, x, times, censored, look, results))
            anywhere |= bool(censored.any())
        drawings.append(drawn)
        ax.set_xlabel(experiment.x_label)
    marks = {name: look.line | look.mark(3.2) for name, look in shown.items()}
    entries = [Line2D([], [], **mark, linewidth=1.0, label=shown_name(name)) for name, mark in marks.items()]
    if anywhere:
        lines = [ax.axhline(experiment.horizon, gid="horizon", **_THIN) for ax in panels]
        lines[0].set_label(f"horizon, {experiment.horizon}")
        cut_off = Line2D([], [], color=_THIN["color"], **_HOLLOW, label="lower bound: some runs cut off")
        entries += [cut_off, lines[0]]
    if all(setting.x == setting.budget for setting in experiment.settings):
        limit = unlimited_budget(experiment.settings[0].problem())
        label = f"limit stops binding, {limit:.2f}"
        entries += [ax.axvline(limit, linestyle=":", gid="limit", label=label, **_THIN) for ax in panels][:1]
    panels[0].set_ylabel("mean measurements" + ", 95 % intervals" * (results.runs > 1))
    _log_ticks(panels[0], "y", counts=True)
    for ax, drawn in zip(panels, drawings, strict=True):
        if wide:
            _log_ticks(ax, "x")
        else:
            ax.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10]))
        _spread(figure, ax, drawn)
    _legend(figure, entries, 3)


def _draw_times(
    ax: Axes, x: Array, times: Array, censored: NDArray[np.bool_], look: PolicyLook, results: Results
) -> list[Line2D | LineCollection]:
    mean, some, every = times.mean(axis=0), censored.any(axis=0), censored.all(axis=0)
    marks = look.mark(3.2) | {"linestyle": ""}
    return [
        *ax.plot(x, mean, **look.line, linewidth=1.0, gid="mean"),
        *_bars(ax, x[~every], times[:, ~every], look.colour, results),
        *ax.plot(x[~some], mean[~some], **marks, color=look.colour, gid="observed"),
        *ax.plot(x[some], mean[some], **_HOLLOW, color=look.colour, gid="censored"),
    ]


def _spread(figure: Figure, ax: Axes, drawn: list[list[Line2D | LineCollection]]) -> None:
    """Move policies aside by a point or two, so that no bar hides another."""
    ax.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    for place, artists in enumerate(drawn):
        inches = 1.6 / 72 * (place - (len(drawn) - 1) / 2)
        moved = ax.transData + ScaledTranslation(inches, 0, figure.dpi_scale_trans)
        for artist in artists:
            artist.set_transform(moved)


def _draw_rank(figure: Figure, results: Results) -> None:
    experiment, (name,) = results.experiment, results.experiment.policies
    colour = looks([name])[name].colour
    forms = [setting.label for setting in experiment.settings]  # settings that differ in one number share it
    styles = dict(zip(dict.fromkeys(forms), _FORMS * len(forms), strict=False))
    panels = _panels(figure, ["entropy of the eigenvalues (Shannon)", "participation ratio of the eigenvalues"])
    for ax, kind in zip(panels, Ranks._fields, strict=True):
        x = np.array([getattr(setting.ranks(), kind) for setting in experiment.settings])
        for form, (marker, dash, filled) in styles.items():
            members = sorted((k for k, own in enumerate(forms) if own == form), key=lambda k: x[k])
            final = np.stack([results.arrivals[k, name].final for k in members], axis=1)
            look: dict[str, Any] = {"color": colour, "linestyle": dash, "marker": marker, "markersize": 3.2}
            look |= {} if filled else {"markerfacecolor": "white"}
            ax.plot(x[members], final.mean(axis=0), **look, linewidth=1.0, label=f"{name}, {form}", gid="mean")
            _bars(ax, x[members], final, colour, results)
        ax.set(xlabel="effective rank", xlim=(x.min() / 1.06, x.max() * 1.06), ylim=(-0.03, 1.03))
        ax.set_xscale("log")
        _log_ticks(ax, "x")
    panels[0].set_ylabel(
        f"mean F1 after {experiment.horizon} measurements" + ",\nwith 95 % intervals" * (results.runs > 1)
    )
    _legend(figure, panels[0].lines, 3)


_DRAWINGS: dict[str, Callable[[Figure, Results], None]] = {
    "curves": _draw_curves,
    "sweep": _draw_sweep,
    "rank": _draw_rank,
}


_RED, _BLUE = "#B2182B", "#2166AC"  # the ends of the heat map, so that a sign has one colour everywhere


def draw_search(table: Table) -> Figure:
    """Draw beliefs at four times, all measurements, and one of them over the correlation it uses."""
    with figure_style():
        figure = Figure(figsize=(TEXT_WIDTH, 4.2))
        rows = figure.add_gridspec(2, 1, height_ratios=[2, 3])
        snapshots = (0, 1, CLOSE_UP, int(table["step"].max()))  # panels (a) to (d)
        top, bottom = rows[0].subgridspec(1, len(snapshots)), rows[1].subgridspec(1, 2)
        for place, letter, step in zip(range(len(snapshots)), "abcd", snapshots, strict=True):
            _draw_beliefs(figure.add_subplot(top[place]), table, letter, step)
        _draw_actions(figure, figure.add_subplot(bottom[0]), table)
        _draw_close_up(figure.add_subplot(bottom[1]), table, CLOSE_UP)
        _draw_legend(figure)
    return figure


def _draw_beliefs(ax: Axes, table: Table, letter: str, step: int) -> None:
    belief, anomalous = by_step(table, "belief")[step], by_step(table, "anomalous")[step]
    named = int((by_step(table, "decided")[step] & anomalous).sum())
    ax.bar(range(belief.size), belief, color=np.where(anomalous, PALETTE["green"], NEUTRAL), width=0.8)
    found = "the prior" if step == 0 else f"{named} of {anomalous.sum()} found"
    ax.set_title(f"({letter}) $t={step}$: {found}")
    ax.set_ylim(0, 1.02)
    if letter == "a":  # the four panels share their axis
        ax.set_ylabel("belief $p_t(k)$")
    else:
        ax.tick_params(labelleft=False)
    _number_streams(ax, belief.size)


def _draw_actions(figure: Figure, ax: Axes, table: Table) -> None:
    weight, anomalous = by_step(table, "weight")[1:], by_step(table, "anomalous")[0]
    limit = float(np.abs(weight).max())
    steps, streams = weight.shape
    edges = np.arange(steps + 1) + 0.5, np.arange(streams + 1) - 0.5
    mesh = ax.pcolormesh(*edges, weight.T, cmap="RdBu_r", vmin=-limit, vmax=limit)
    mesh.set(edgecolor="face", linewidth=0.2)  # without edges PDF viewers show white seams between the cells
    truth = np.flatnonzero(anomalous)
    right = np.full(truth.size, edges[0][-1] + 0.7)
    ax.plot(right, truth, marker=4, color=PALETTE["green"], linestyle="", markersize=4, clip_on=False)
    ax.set_xlim(edges[0][0], edges[0][-1])
    ax.set_ylim(-0.5, streams - 0.5)
    ax.set_title("(e) the measurements $c_t[k]$")
    ax.set_xticks([1, *range(5, steps + 1, 5)])
    ax.set_xlabel("measurement $t$")
    ax.set_yticks(range(0, streams, 2))
    ax.set_ylabel("stream $k$")
    bar = figure.colorbar(mesh, ax=ax, label="weight $c_t[k]$", pad=0.04)
    bar.outline.set_visible(False)


def _draw_close_up(ax: Axes, table: Table, step: int) -> None:
    weight, correlation = by_step(table, "weight")[step], by_step(table, "correlation")[step]
    champion, challenger = (int(by_step(table, name)[step, 0]) for name in ("champion", "challenger"))
    streams = range(weight.size)
    ax.bar(streams, correlation, width=1.0, color=PALETTE["yellow"], alpha=0.5, label="correlation")
    ax.bar(streams, weight, width=0.55, color=np.where(weight > 0, _RED, _BLUE), label="weight")
    ax.axhline(0, color="black", linewidth=0.6)
    _label(ax, champion, max(weight[champion], correlation[champion]), "champion", "bottom", streams[-1])
    _label(ax, challenger, weight[challenger], "challenger", "top", streams[-1])
    ax.margins(y=0.16)
    ax.set_title(f"(f) $t={step}$: stream {champion} against stream {challenger}")
    ax.set_ylabel(f"weight $c_{step}[k]$, correlation")
    _number_streams(ax, weight.size)


def _label(ax: Axes, stream: int, height: float, text: str, side: str, last: int) -> None:
    """Name a bar beyond its end, growing inwards from the edges of the panel."""
    align = "left" if stream == 0 else "right" if stream == last else "center"
    x = stream + {"left": -0.4, "center": 0.0, "right": 0.4}[align]
    offset = (0, 1.5 if side == "bottom" else -1.5)
    ax.annotate(text, (x, height), xytext=offset, textcoords="offset points", ha=align, va=side, fontsize=6.5)


def _number_streams(ax: Axes, streams: int) -> None:
    ax.set_xlim(-0.7, streams - 0.3)
    ax.set_xticks(range(0, streams, 2))
    ax.set_xlabel("stream $k$")


def _draw_legend(figure: Figure) -> None:
    handles = [
        Patch(color=PALETTE["green"], label="anomalous stream"),
        Patch(color=NEUTRAL, label="nominal stream"),
        Patch(color=_RED, label="weight > 0"),
        Patch(color=_BLUE, label="weight < 0"),
        Patch(color=PALETTE["yellow"], alpha=0.5, label="correlation with the champion"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, handlelength=1.0, columnspacing=1.5)
