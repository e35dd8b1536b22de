"""Axes of time."""

from __future__ import annotations

from datetime import tzinfo

from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter


def label_times(axes: Axes, zone: tzinfo | None) -> None:
    """Short dates in this zone below the axes; where rows have no times, their numbers."""
    if zone is None:
        axes.set_xlabel("row")
        return
    locator = AutoDateLocator(tz=zone, minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))  # type: ignore[no-untyped-call]
