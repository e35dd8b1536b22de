"""The diagnosis as one self-contained HTML page, and its pictures, each a function of the model view."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
from scipy.spatial.distance import squareform
from scipy.special import ndtri

from eccaht.base.arrays import Array, Index
from eccaht.base.presentation.document import (
    Badge,
    Block,
    Code,
    Grid,
    Heading,
    Items,
    Paragraph,
    Picture,
    Piece,
    Text,
    html,
)
from eccaht.base.presentation.style import NEUTRAL, PALETTE, embedded_png, figure_style
from eccaht.base.presentation.text import shortened
from eccaht.plants.diagnose.report import PURPOSE, Diagnosis
from eccaht.plants.diagnose.view import ModelView, Verdict
from eccaht.plants.model.model_file import PROBABILITIES
from eccaht.version import __version__

WIDTH = 5.4  # inches: text stays legible when a telephone shows the picture at 400 pixels
PANELS = 6
_LABELLED, _ORDERED = 40, 300  # sensors that fit as labels, and that are ordered as well as possible
_BLUE_RED = LinearSegmentedColormap.from_list("blue-white-red", [PALETTE["blue"], "#ffffff", PALETTE["vermillion"]])


def clustered(correlation: Array) -> Index:
    """An order in which sensors that move together, in either direction, stand together."""
    if len(correlation) < 3:
        return np.arange(len(correlation))
    distances = squareform(np.clip(1.0 - np.abs(correlation), 0.0, None), checks=False)
    tree = linkage(distances, method="average")
    if len(correlation) <= _ORDERED:
        tree = optimal_leaf_ordering(tree, distances)
    order: Index = leaves_list(tree).astype(np.intp)
    return order


@figure_style()
def draw_correlation(view: ModelView) -> Figure:
    """The correlation matrix, ordered by clustering."""
    order = clustered(view.believed)
    figure, axes = _single(0.86)
    shown = view.believed[np.ix_(order, order)]
    image = axes.imshow(shown, cmap=_BLUE_RED, vmin=-1.0, vmax=1.0, interpolation="nearest")
    axes.spines[:].set_visible(False)
    if view.size <= _LABELLED:
        names = [_short(view.names[k]) for k in order]
        size = min(6.5, 230.0 / view.size)
        axes.set_xticks(range(view.size), names, rotation=90, fontsize=size)
        axes.set_yticks(range(view.size), names, fontsize=size)
        axes.tick_params(length=0)
    else:
        axes.set(xlabel="sensors, similar ones together", xticks=[], yticks=[])
    bar = figure.colorbar(image, ax=axes, shrink=0.6, ticks=[-1, -0.5, 0, 0.5, 1])
    bar.outline.set_visible(False)
    bar.set_label("correlation")
    return figure


@figure_style()
def draw_spectrum(view: ModelView) -> Figure:
    """Eigenvalues of the correlations, beside those that independent sensors would show by chance."""
    values = view.eigenvalues[::-1]
    ratio = view.size * float(np.median(view.memory.time_of_products)) / view.n_windows
    figure, axes = _single()
    if ratio < 1.0:  # Marchenko and Pastur's edges
        low, high = (1.0 - np.sqrt(ratio)) ** 2, (1.0 + np.sqrt(ratio)) ** 2
        axes.axhspan(low, high, color=NEUTRAL, alpha=0.35, lw=0, label="independent sensors, by chance")
    axes.semilogy(np.arange(1, view.size + 1), values, "o-", ms=2.5, color=PALETTE["blue"], label="eigenvalues")
    axes.axvline(view.rank, color=PALETTE["vermillion"], lw=1, ls="--", label=f"effective rank {view.rank:.3g}")
    steps = (1.0, 2.0, 5.0) if values[0] < 200.0 * values[-1] else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set(xlim=(0.5, view.size + 0.5), xlabel="number, from the largest", ylabel="eigenvalue")
    figure.legend(loc="outside upper right", ncols=3)
    return figure


@figure_style()
def draw_whiteness(view: ModelView) -> Figure:
    """Autocorrelation between windows against the band that independent windows stay in."""
    rho = view.history.autocorrelation
    lags, band = np.arange(len(rho)), 1.96 / np.sqrt(view.n_windows)
    figure, axes = _single()
    axes.axhspan(-band, band, color=NEUTRAL, alpha=0.4, lw=0, label="independent windows, 95 %")
    low, middle, high = np.quantile(rho, [0.1, 0.5, 0.9], axis=1)
    axes.fill_between(lags[1:], low[1:], high[1:], color=PALETTE["sky"], alpha=0.45, lw=0, label="8 of 10 sensors")
    axes.plot(lags[1:], middle[1:], color=PALETTE["blue"], label="median sensor")
    slowest = int(np.argmax(view.memory.time + len(rho) * view.memory.plateau))
    label = f"slowest: {_short(view.names[slowest])}"
    axes.plot(lags[1:], rho[1:, slowest], color=PALETTE["vermillion"], lw=0.9, label=label)
    heights = 1.05 * rho[1:].min(initial=-0.1), min(1.1 * rho[1:].max(initial=0.25), 1.02)
    axes.set(xlim=(1, max(len(rho) - 1, 2)), ylim=heights, xlabel="lag in windows", ylabel="autocorrelation")
    figure.legend(loc="outside upper right", ncols=4)  # memory or drift fill the panel
    return figure


def draw_normality(view: ModelView) -> Figure:
    """Quantiles of the least normal sensors against those of the normal distribution."""
    z, spread = ndtri(PROBABILITIES), _spread(view)

    def one(axes: Axes, k: int) -> None:
        q = view.history.quantiles[:, k]
        centre = float(view.history.block_means[:, k].mean())
        axes.plot([-3.4, 3.4], [-3.4, 3.4], color=NEUTRAL, lw=1)
        axes.plot(z, (q - centre) / spread[k], ".", ms=3, color=PALETTE["blue"])
        axes.set(xlim=(-3.4, 3.4), title=f"{_short(view.names[k], 18)}\n1 - W' = {view.deviation[k]:.2g}")

    figure = _panels(view, np.argsort(-view.deviation, kind="stable"), one)
    figure.supxlabel("normal quantile", fontsize=7.5)
    figure.supylabel("quantile, in standard deviations", fontsize=7.5)
    return figure


def draw_drift(view: ModelView) -> Figure:
    """Means of consecutive stretches of the sensors that drift most, with what their memory would do by chance."""
    (share, expected), spread = view.drift, _spread(view)
    model, sizes = view.model, view.history.block_sizes
    days = (model.last - model.first) / np.timedelta64(1, "D")
    units = ((1.0, "days"), (24.0, "hours"), (1440.0, "minutes"))
    unit, name = next((u, n) for u, n in units if days * u >= 2 or n == "minutes")
    middle = (np.cumsum(sizes) - 0.5 * sizes) / sizes.sum() * days * unit

    def one(axes: Axes, k: int) -> None:
        means = view.history.block_means[:, k]
        half = 1.96 * np.sqrt(expected[k])
        axes.axhspan(-half, half, color=NEUTRAL, alpha=0.4, lw=0)
        axes.plot(middle, (means - sizes @ means / sizes.sum()) / spread[k], ".-", ms=3, lw=0.9, color=PALETTE["blue"])
        axes.set_title(f"{_short(view.names[k], 18)}\nslow share {share[k]:.2g}")

    figure = _panels(view, np.argsort(-share, kind="stable"), one, sharey=True)
    figure.supxlabel(f"{name} from the beginning", fontsize=7.5)
    figure.supylabel("mean, in standard deviations", fontsize=7.5)
    return figure


def _single(height: float = 0.5) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH, height * WIDTH))
    return figure, figure.subplots()


@figure_style()
def _panels(view: ModelView, order: Index, one: Callable[[Axes, int], object], **shared: Any) -> Figure:
    """Small multiples of the first sensors of an order."""
    count = min(PANELS, view.size)
    rows, columns = -(-count // 3), min(3, count)
    figure = Figure(figsize=(WIDTH, 0.15 + 1.55 * rows))
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, **shared).ravel()
    for axes, k in zip(grid, order, strict=False):
        one(axes, int(k))
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure


def _spread(view: ModelView) -> Array:
    return np.maximum(np.sqrt(view.variance), np.finfo(float).tiny)


def _short(name: str, most: int = 24) -> str:
    """A name that fits, safe from being read as a formula."""
    return shortened(name, most).replace("$", r"\$")


# -- the page ------------------------------------------------------------------------------------------

_KINDS: dict[Verdict, str] = {"ok": "yes", "caution": "partly", "not fit": "no"}
_SAYS: dict[Verdict, str] = {
    "ok": "The model is fit for searches by sums.",
    "caution": "The model can carry searches by sums, with care: see what to do.",
    "not fit": "The model is not fit for searches by sums as it is: see what to do.",
}

_PICTURES = (
    (
        "Sensors that move together",
        draw_correlation,
        "Correlation matrix ordered by clustering",
        "Correlations that the model believes in, sensors ordered so that similar ones stand together. Blocks are "
        "groups with a common cause; noise that is common can be cancelled.",
    ),
    (
        "Spectrum",
        draw_spectrum,
        "Eigenvalues of the correlation matrix",
        "Eigenvalues of the correlations. Those above the band are common causes; those far below it are combinations "
        "of sensors that are nearly constant, which measurements rely on.",
    ),
    (
        "Independence of windows",
        draw_whiteness,
        "Autocorrelation between windows",
        "Autocorrelation of the windows. What leaves the grey band is memory: consecutive windows then say less than "
        "independent ones. What does not come back to it is drift.",
    ),
    (
        "Normality",
        draw_normality,
        "Quantile-quantile plots of the least normal sensors",
        "The least normal sensors: on the line is normal; steeper ends are heavy tails, a step is two levels.",
    ),
    (
        "Drift",
        draw_drift,
        "Means of consecutive stretches of the history",
        "The sensors that drift most: means of consecutive stretches of the history. The grey band holds 95 % of them "
        "if only the memory between windows moves them.",
    ),
)


def write(diagnosis: Diagnosis, title: str) -> str:
    about = [Paragraph(PURPOSE), Paragraph(f"{diagnosis.about}. eccaht {__version__}.")]
    return html(f"Diagnosis of {title}", [*about, *blocks(diagnosis)])


def blocks(diagnosis: Diagnosis) -> Iterator[Block]:
    """The checks and their pictures, also as a part of the report on a calibration."""
    yield Heading("Verdict on searches by sums", "verdict")
    yield Paragraph([_badge(diagnosis.verdict), f" {_SAYS[diagnosis.verdict]}"])
    rows: list[list[Text]] = [
        [
            check.name.capitalize(),
            check.shown,
            _badge(check.verdict),
            check.meaning,
            _with_code(check.action or "Nothing."),
        ]
        for check in diagnosis.checks
    ]
    header = ("Check", "Number", "Verdict", "What it means", "What to do")
    yield Grid(
        "Every check with its number; the verdict on the whole is the worst of them", header, rows, kind="claims checks"
    )
    if concerned := [check for check in diagnosis.checks if check.sensors]:
        yield Heading("Sensors concerned", "sensors")
        yield Paragraph("All of them, worst first.")
        yield Items([f"{check.name.capitalize()}: {', '.join(check.sensors)}" for check in concerned])
    for heading, draw, alt, caption in _PICTURES:
        yield Heading(heading, draw.__name__.removeprefix("draw_"))
        yield Picture(embedded_png(draw(diagnosis.view)), alt, caption)
    yield Heading("Limits", "limits")
    yield Items([f"{check.name.capitalize()}: {check.limits}." for check in diagnosis.checks])


def _with_code(text: str) -> Sequence[Piece]:
    """Mark text between backticks as code."""
    return [Code(part) if place % 2 else part for place, part in enumerate(text.split("`"))]


def _badge(verdict: Verdict) -> Badge:
    return Badge(verdict, _KINDS[verdict])
