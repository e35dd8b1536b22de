"""How policies look in figures: a colour and a dash for each name, and their F1 as curves with bands."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from zlib import crc32

from matplotlib.axes import Axes

from eccaht.arrays import Array
from eccaht.experiments.comparison import curve_steps
from eccaht.presentation.style import PALETTE
from eccaht.randomness import rng_for
from eccaht.statistics import bca_interval

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
        draw_policy(ax, name, labels.get(name, name), curves, seed=seed, opacity=0.18 if len(f1) <= 5 else 0.1)
    ax.set(xlabel="measurements", ylabel=f1_label(runs))
    scale_axes(ax, horizon)


def f1_label(runs: int) -> str:
    """What the vertical axis of such curves is called."""
    return "mean F1, with 95 % intervals" if runs > 1 else "F1 of one run"


def scale_axes(ax: Axes, horizon: int, *, narrow: bool = False) -> None:
    """Measurements, on a logarithmic axis where there are many, against F1."""
    ax.set(xlim=(1, max(horizon, 2)), ylim=(0, 1.02))
    if horizon > 200:
        ax.set_xscale("log", subs=[])
        leading = (1, 2, 5) if horizon < 20_000 and not narrow else (1,)
        ticks = [m * 10**e for e in range(len(str(horizon))) for m in leading if m * 10**e <= horizon]
        ax.set_xticks(ticks, [str(tick) for tick in ticks])


def draw_policy(ax: Axes, name: str, label: str, f1: Array, *, seed: int, opacity: float) -> None:
    """Draw the mean F1 of one policy, from (runs, horizon), and its intervals as a band."""
    colour, dash = policy_style(name)
    steps = curve_steps(f1.shape[1])
    curves = f1[:, steps - 1]
    ax.plot(steps, curves.mean(axis=0), color=colour, linestyle=dash, label=label, zorder=2)
    if len(curves) > 1:
        low, high = bca_interval(curves, rng=rng_for(seed, "bootstrap"))
        ax.fill_between(steps, low, high, color=colour, alpha=opacity, linewidth=0, zorder=1)
