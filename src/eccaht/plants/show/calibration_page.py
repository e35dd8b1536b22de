"""A calibration as one page: what became of each column, and what drills found."""

from __future__ import annotations

from collections.abc import Iterator

from eccaht.base.presentation.document import Badge, Block, Grid, Heading, Items, Paragraph, Picture, html
from eccaht.base.presentation.style import embedded_png
from eccaht.plants.data.cleaning import HEADINGS as COLUMNS
from eccaht.plants.incident.counts import kept
from eccaht.plants.incident.drill import HEADINGS, rows
from eccaht.plants.model.model import Model
from eccaht.plants.show import drill_picture
from eccaht.version import __version__


def write_calibration(model: Model, title: str) -> str:
    """The page as HTML; title: what the model is called."""
    return html(f"Calibration of {title}", _blocks(model))


def _about(model: Model) -> str:
    clock = model.clock
    return (
        f"{len(model.names)} sensors, {model.n_windows} windows of {clock.length(model.seconds)} from "
        f"{clock.show(model.first)} to {clock.show(model.last)}{clock.said}, covariance by {model.estimator}"
        + (f" with ridge {model.ridge:g}" if model.ridge else "")
    )


def _blocks(model: Model) -> Iterator[Block]:
    yield Paragraph(f"{_about(model)}. eccaht {__version__}.")
    yield Heading("Drills: how well faults would be found", "drills")
    if (found := kept(model)) is None:
        yield Paragraph("No fault was injected into this history, so answers have no confidence.")
    else:
        counts = found.counts
        yield Items(counts.sentences(model.timed_seconds))
        if counts.caution:
            yield Paragraph([Badge("CAUTION", "partly"), f" {counts.caution}."])
        caption = "Share of the injected faults that were found, with 95 % intervals, and the median delay."
        yield Picture(embedded_png(drill_picture.draw(counts)), "Faults found by kind and size", caption)
        yield Grid("Drills by kind and size, in robust units", HEADINGS, [list(row) for row in rows(counts)])
    yield Heading("Columns", "columns")
    yield Items(model.reading["notes"])
    yield Grid("What became of each column", COLUMNS, [list(column.cells) for column in model.columns])
