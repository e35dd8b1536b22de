"""The picture of drills shows what was counted, tells kinds apart without colour, and nothing lies on anything else."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose

from eccaht.incident.counts import Counts, count
from eccaht.incident.drill_picture import LOOKS, draw
from eccaht.incident.faults import KINDS, SIZED
from eccaht.presentation.style import figure_style
from tests.explain.test_picture import overlapping
from tests.incident.judges import believing, drill_of, example_counts


@pytest.fixture(scope="module")
def counts() -> Counts:
    return example_counts()


def test_a_curve_a_kind_shows_the_shares(counts: Counts) -> None:
    left, right = draw(counts).axes
    for kind in SIZED:
        [curve] = [line for line in left.lines if line.get_label() == kind]
        expected = [cell.share for cell in counts.cells if cell.kind == kind]
        assert_allclose(np.asarray(curve.get_ydata(), dtype=float), expected)  # type: ignore[arg-type]
        places = np.asarray(curve.get_xdata(), dtype=float)
        assert ((places > [1, 2, 3, 5]) & (places < [2, 3, 5, 10])).all()
    shown = {tick.get_text() for tick in right.get_xticklabels()}
    assert shown == set(KINDS) - set(SIZED)
    heights = [float(line.get_ydata()[0]) for line in right.lines if len(line.get_xdata()) == 1]  # type: ignore[arg-type, index]
    assert_allclose(heights, [counts.of_kind(kind).share for kind in ("stuck", "replay", "silent")])  # type: ignore[arg-type]


def test_intervals_are_drawn(counts: Counts) -> None:
    drawn = {
        tuple(np.round(np.asarray(line.get_ydata(), dtype=float), 9))
        for axes in draw(counts).axes
        for line in axes.lines
        if len(np.asarray(line.get_xdata())) == 2
    }
    assert {tuple(np.round(cell.interval or (), 9)) for cell in counts.cells} <= drawn


def test_kinds_differ_without_colour() -> None:
    assert len({look.marker for look in LOOKS.values()}) == len(KINDS)
    assert len({LOOKS[kind].dash for kind in SIZED}) == len(SIZED)
    luminance = [np.dot(to_rgb(look.colour), (0.299, 0.587, 0.114)) for look in LOOKS.values()]
    assert max(luminance) < 0.7  # dark enough on white


def test_nothing_lies_on_anything_else(counts: Counts) -> None:
    with figure_style():
        assert overlapping(draw(counts, line=counts.line(60.0))) == []


def test_kinds_that_were_not_drilled_leave_a_gap() -> None:
    few = count([drill_of(True, 9.0, "count"), drill_of(False, 9.0, "count", size=7.0)], believing(), 0.05)
    left, right = draw(few).axes
    assert {str(line.get_label()) for line in left.lines} & set(KINDS) == {"step"}
    assert [text.get_text() for text in right.texts] == ["none"] * 3
    draw(count([], believing(), 0.05), line="On your own history: nothing").draw_without_rendering()
