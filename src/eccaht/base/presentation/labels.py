"""Names at the right end of lines, instead of a legend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from eccaht.base.arrays import Array

_LINE = 0.125  # inches that a label takes


class End(NamedTuple):
    """Where a line ends, in the axes' own numbers, what it is called, and whether it is one of the main ones."""

    y: float
    name: str
    colour: str
    main: bool = True


def label_ends(axes: Axes, x: Any, ends: Sequence[End], height: float) -> None:
    """Write the names beside x, pushed apart where they would overlap; `height`: of the axes in inches.

    The limits of the axes must be set before.
    """
    place = axes.transScale + axes.transLimits
    heights = np.array([place.transform((axes.get_xlim()[0], end.y))[1] for end in ends])
    for end, fraction in zip(ends, spread(heights, _LINE / height), strict=True):
        axes.annotate(
            end.name,
            (x, fraction),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            color=end.colour,
            va="center",
            fontsize=7,
            fontweight="bold" if end.main else "normal",
            annotation_clip=False,
        )


def spread(values: Array, gap: float) -> Array:
    """The values moved apart to at least `gap`, around where they were, and between 0 and 1 if they fit.

    >>> spread(np.array([0.5, 0.5, 0.9]), 0.2).round(2).tolist()
    [0.4, 0.6, 0.9]
    >>> spread(np.array([0.0, 0.0]), 0.2).round(2).tolist()
    [0.0, 0.2]
    """
    order = np.argsort(values, kind="stable")
    placed = values[order].astype(float)
    for _ in range(50 * len(placed)):
        close = np.flatnonzero(np.diff(placed) < gap - 1e-9)
        if close.size == 0:
            break
        for k in close:
            lack = 0.5 * (gap - (placed[k + 1] - placed[k]))
            placed[k], placed[k + 1] = placed[k] - lack, placed[k + 1] + lack
    room = gap * np.arange(len(placed))
    placed = np.maximum.accumulate(np.maximum(placed, 0.0) - room) + room  # up from the lower edge
    down = np.minimum(placed, 1.0)[::-1] + room  # and down from the upper one
    placed = (np.minimum.accumulate(down) - room)[::-1]
    result = np.empty_like(placed)
    result[order] = placed
    return result
