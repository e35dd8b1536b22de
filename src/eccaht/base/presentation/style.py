"""How every figure looks, and how it is written."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import tzinfo
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from eccaht.base.files import replacing

TEXT_WIDTH = 6.75  # inches: figures are drawn at the size they are printed at

# Okabe & Ito, then four that stay apart from these: distinguishable with every common kind of colour vision
PALETTE = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
    "yellow": "#F0E442",
    "wine": "#882255",
    "indigo": "#332288",
    "brown": "#8C510A",
    "olive": "#999933",
}
NEUTRAL = "#B4B4B4"

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib, so that every machine draws the same figure
    "font.size": 7.5,
    "axes.titlesize": 7.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 7.5,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.2,
    "axes.prop_cycle": cycler(color=list(PALETTE.values())),
    "figure.constrained_layout.use": True,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,  # outlines that stay text: publishers refuse the default bitmap-like Type 3
}

# without a date the same table gives the same bytes
_METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
_COORDINATE = re.compile(r"(\.\d\d)\d+")  # hundredths of a point are fine enough


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw in the common style, starting from matplotlib's defaults whatever the user's own settings."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def saving_figure(figure: Figure, path: Path) -> Iterator[Path]:
    """Write path.pdf and path.png one by one, so that what was written is known where the next fails."""
    for suffix in ("pdf", "png"):
        yield save_picture(figure, path.with_name(f"{path.name}.{suffix}"))


def save_picture(figure: Figure, path: Path) -> Path:
    """Write one picture, in the format that its name ends in."""
    suffix = path.suffix[1:]
    with figure_style(), replacing(path) as file:
        figure.savefig(file, format=suffix, metadata=_METADATA.get(suffix))
    return path


def for_notebooks(figure: Figure, path: str | PathLike[str] | None = None) -> Figure:
    """The figure, which notebooks show although pyplot does not know it; path: also saved there."""
    if path is not None:
        known = figure.canvas.get_supported_filetypes()
        if Path(path).suffix[1:] not in known:
            raise ValueError(f"{path} must end in .png, .pdf, .svg or another of: {', '.join(sorted(known))}")
        save_picture(figure, Path(path))
    figure._repr_png_ = lambda: embedded_png(figure)  # type: ignore[attr-defined]
    return figure


def embedded_png(figure: Figure) -> bytes:
    """A picture for a page, cut to what is drawn; the same figure gives the same bytes."""
    file = BytesIO()
    with figure_style():
        figure.savefig(file, format="png", dpi=220, bbox_inches="tight", pad_inches=0.04, metadata={"Software": None})
    return file.getvalue()


def embedded_svg(figure: Figure, name: str, colours: Mapping[str, str]) -> str:
    """A drawing for a page, without a background; the same figure gives the same text.

    name: distinguishes the drawings of a page. colours: what stands for each colour, as `var(--ink)` for "#000000".
    """
    file = BytesIO()
    with figure_style(), matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue().decode("utf-8")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)  # ids are those of the whole page
    svg = svg.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")  # alike in width where the first is absent
    svg = re.sub(r' (?:d|x|y)="[^"]*"', lambda match: _COORDINATE.sub(r"\1", match[0]), svg)  # half of the text
    for colour, shown in colours.items():
        svg = re.sub(rf"(?<=[ :\"]){colour}\b", shown, svg, flags=re.IGNORECASE)
    return svg


def label_times(axes: Axes, zone: tzinfo | None) -> None:
    """Short dates in this zone below the axes; where rows have no times, their numbers."""
    if zone is None:
        axes.set_xlabel("row")
        return
    locator = AutoDateLocator(tz=zone, minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))  # type: ignore[no-untyped-call]
