"""Figures of the benchmark: functions of its rows, which never run anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D

from benchmarks.jobs import Row
from benchmarks.scaling import TARGET_MB, TARGET_SECONDS
from benchmarks.steps import CONTENDERS
from benchmarks.tables import times
from eccaht.base.files import replacing

# Okabe and Ito's palette, distinguishable with any colour vision
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#707070"
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}
BARS = dict(zip(CONTENDERS, (BLUE, SKY, ORANGE, VERMILION), strict=True))


def _look(label: str, color: str, marker: str, ls: str = "-") -> dict[str, Any]:
    return {"label": label, "color": color, "marker": marker, "ls": ls, "ms": 4, "lw": 1.3}


LINES = {  # (covariance, limit), roughly from the slowest to the fastest
    ("SparsePrecision, grid", "free"): _look("sparse precision, grid", PURPLE, "D", "--"),
    ("Kronecker", "free"): _look("Kronecker 10 x K/10", GREEN, "s"),
    ("Circulant", "free"): _look("circulant", ORANGE, "^"),
    ("SparsePrecision, chain", "free"): _look("sparse precision, chain", PURPLE, "d"),
    ("LowRank, 3 factors", "free"): _look("low rank, 3 factors", VERMILION, "v", "--"),
    ("LowRank, equicorrelation", "free"): _look("low rank, equicorrelation", VERMILION, "<"),
    ("BlockDiagonal", "free"): _look("block diagonal", SKY, "p"),
    ("AR1", "free"): _look("AR1", BLACK, "o"),
    ("AR1", "binds"): _look("AR1, limit binds", BLACK, "o", "--"),
}


def save(figure: Figure, out: Path, name: str) -> None:
    """Write PNG and PDF."""
    for kind in ("png", "pdf"):
        with replacing(out / f"{name}.{kind}") as file:
            figure.savefig(file, format=kind, dpi=200, bbox_inches="tight")
    plt.close(figure)


def draw_steps(rows: Sequence[Row]) -> Figure:
    """Bars of the time of a step, one group a setting."""
    settings = list(dict.fromkeys(_setting(row) for row in rows))
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.8, 0.95 * len(settings) + 0.9), layout="constrained")
        for row in rows:
            y = settings.index(_setting(row)) + 0.2 * (CONTENDERS.index(row["contender"]) - 1.5)
            s, colour = row["median_s"], BARS[row["contender"]]
            axes.barh(y, s, height=0.18, color=colour)
            ratio = "" if row["ratio"] == 1.0 else f"   {times(row['ratio'])}"
            axes.text(1.08 * s, y, _duration(s) + ratio, va="center", fontsize=7.5)
        axes.set_yticks(range(len(settings)), settings)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        _duration_axis(axes, [row["median_s"] for row in rows])
        handles = [Line2D([], [], color=BARS[name], lw=6, label=name) for name in CONTENDERS]
        figure.legend(handles=handles, loc="outside upper center", ncols=2, handlelength=1.0)
    return figure


def _setting(row: Row) -> str:
    return f"K = {row['streams']:,}\nbudget {row['budget']:g}\n(limit {row['limit']})"


def _duration_axis(axes: Axes, taken: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.set_xticks([1e-4, 1e-3, 1e-2, 1e-1, 1, 10], ["0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s"])
    axes.set_xlim(0.4 * min(taken), 25.0 * max(taken))
    axes.minorticks_off()
    axes.set_xlabel("median time of a step (ask + measure + tell), and its ratio to eccaht")


def _duration(s: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if s >= size:
            return f"{s / size:.3g} {unit}"
    return f"{s / 1e-6:.3g} µs"


def draw_scaling(rows: Sequence[Row]) -> Figure:
    """Time of a step and peak memory against K, on logarithmic axes."""
    done = [row for row in rows if row.get("median_s") is not None]
    with plt.rc_context(STYLE):
        engine = ConstrainedLayoutEngine(wspace=0.06)
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 4.0), layout=engine)
        for key, look in LINES.items():
            line = [row for row in done if (row["covariance"], row["limit"]) == key]
            K = [row["streams"] for row in line]
            left.plot(K, [1e3 * row["median_s"] for row in line], **look)
            right.plot(K, [row["peak_mb"] for row in line], **look)
        _decorate(left, "median time of a step, ms", 1e3 * TARGET_SECONDS, "AR1 target 50 ms")
        _decorate(right, "peak memory of the process, MB", TARGET_MB, "AR1 target 2 GB")
        _dense_memory(right)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, handlelength=2.8)
    return figure


def _decorate(axes: Axes, label: str, target: float, remark: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("streams K")
    axes.set_ylabel(label)
    axes.grid(True, color="#e6e6e6", lw=0.6)
    axes.set_axisbelow(True)
    axes.axhline(target, color=GREY, lw=0.9, ls=":")
    place = axes.get_yaxis_transform()
    axes.text(0.02, 1.08 * target, remark, transform=place, va="bottom", color=GREY, fontsize=7.5)


def _dense_memory(axes: Axes) -> None:
    """What one K x K matrix would take, as far as the axis goes."""
    low, high = 40.0, 4.0 * TARGET_MB
    ends = [(mb * 2**20 / 8.0) ** 0.5 for mb in (low, high)]
    axes.plot(ends, [low, high], color=GREY, lw=0.9)
    text = "one dense\nK x K matrix"
    axes.text(0.9 * (ends[0] * ends[1]) ** 0.5, 700.0, text, ha="right", color=GREY, fontsize=7.5)
    axes.set_ylim(low, high)
