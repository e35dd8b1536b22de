"""How policies look in figures, and the picture of a comparison: mean F1 against measurements, best policy first."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from zlib import crc32

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eccaht.base.arrays import Array
from eccaht.base.presentation.style import NEUTRAL, PALETTE, TEXT_WIDTH, figure_style
from eccaht.base.randomness import rng_for
from eccaht.base.statistics import bca_interval
from eccaht.research.experiments.comparison import Records, curve_steps

TOGETHER = 6  # policies that one panel can show: more bands than that hide each other
_COLUMNS = 4

# what may coincide, ecc-aht and its variants, differs in both colour and dash
_STYLES = {
    "ecc-aht": ("blue", "-"),
    "cost-free": ("orange", "--"),
    "robust": ("sky", ":"),
    "simple-difference": ("green", "--"),
    "mean-difference": ("green", ":"),
    "diagonal": ("purple", "-."),
    "random-sparse": ("orange", "-"),
    "round-robin": ("vermillion", "-"),
    "restricted-tree": ("green", "-."),
    "restricted-coordinates": ("sky", "-"),
    "ttts-challenger": ("purple", "-"),
    "base-arm-combgape": ("purple", "--"),
    "combgape": ("black", "-"),
    "ttts": ("black", "--"),
    "t3c": ("black", ":"),
    "hds": ("vermillion", "--"),
    "joint": ("green", "-"),
    "joint-pair": ("sky", "--"),
    "exact": ("sky", "-."),
}
_SPARE = [("blue", "-."), ("vermillion", "-."), ("orange", "-."), ("blue", ":"), ("vermillion", ":"), ("black", "-.")]


def policy_style(name: str) -> tuple[str, str]:
    """Colour and line style of a policy, the same in every figure; a name without its own gets a spare one."""
    colour, dash = _STYLES.get(name) or _SPARE[crc32(name.encode()) % len(_SPARE)]
    return PALETTE[colour], dash


def draw_curves(
    ax: Axes, f1: Mapping[str, Array], *, seed: int, labels: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Draw mean F1 against measurements with pointwise intervals, from F1 by policy, (runs, horizon).

    labels: what the legend calls a policy, its name if absent.
    """
    runs, horizon = next(iter(f1.values())).shape
    for name, curves in f1.items():
        _draw_policy(ax, name, labels.get(name, name), curves, seed=seed, opacity=0.18 if len(f1) <= 5 else 0.1)
    ax.set(xlabel="measurements", ylabel=_f1_label(runs))
    _scale_axes(ax, horizon)


def _f1_label(runs: int) -> str:
    """What the vertical axis of such curves is called."""
    return "mean F1, with 95 % intervals" if runs > 1 else "F1 of one run"


def _scale_axes(ax: Axes, horizon: int, *, narrow: bool = False) -> None:
    """Measurements, on a logarithmic axis where there are many, against F1."""
    ax.set(xlim=(1, max(horizon, 2)), ylim=(0, 1.02))
    if horizon > 200:
        ax.set_xscale("log", subs=[])
        leading = (1, 2, 5) if horizon < 20_000 and not narrow else (1,)
        ticks = [m * 10**e for e in range(len(str(horizon))) for m in leading if m * 10**e <= horizon]
        ax.set_xticks(ticks, [str(tick) for tick in ticks])


def _draw_policy(ax: Axes, name: str, label: str, f1: Array, *, seed: int, opacity: float) -> None:
    """Draw the mean F1 of one policy, from (runs, horizon), and its intervals as a band."""
    colour, dash = policy_style(name)
    steps = curve_steps(f1.shape[1])
    curves = f1[:, steps - 1]
    ax.plot(steps, curves.mean(axis=0), color=colour, linestyle=dash, label=label, zorder=2)
    if len(curves) > 1:
        low, high = bca_interval(curves, rng=rng_for(seed, "bootstrap"))
        ax.fill_between(steps, low, high, color=colour, alpha=opacity, linewidth=0, zorder=1)


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
        _draw_policy(ax, name, name, curves, seed=seed, opacity=0.25)
        ax.lines[-1].set_linestyle("-")  # alone it needs no dash to be known by
        ax.set_title(name, fontweight="bold")
        _scale_axes(ax, horizon, narrow=True)
        last = place + _COLUMNS >= len(f1)  # of its column
        ax.tick_params(labelleft=place % _COLUMNS == 0, labelbottom=last)
    for ax in panels[len(f1) :]:
        ax.set_visible(False)
    figure.supxlabel("measurements", fontsize=7.5)
    figure.supylabel(f"{_f1_label(runs)}; in grey all others", fontsize=7.5)
    return figure
