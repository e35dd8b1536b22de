"""The picture of drills shows what was counted, kinds differ without colour, and nothing lies on anything else."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose

from eccaht.base.presentation.style import figure_style
from eccaht.plants.incident.counts import BANDS, Cell, Counts, Quiet
from eccaht.plants.incident.faults import KINDS, SIZED
from eccaht.plants.show.drill_picture import LOOKS, draw
from tests.plants.show.test_picture import overlapping


def example_counts() -> Counts:
    """Drills of which more are found, and sooner, the larger they are."""
    cells = []
    for place, kind in enumerate(KINDS):
        for band, (low, high) in enumerate(BANDS if kind in SIZED else [(0.0, 0.0)]):
            found = 12 + 3 * band + place
            counts = {"right": found - 3, "at_alarm": found - 6, "onset": found - 4, "end": found - 5}
            sensors = {"sensors": 60, "named": 50, "confident": 8, "wrong": 1}
            cells.append(Cell(kind, low, high, 30, found, **counts, **sensors, delay=9.0 - 3.0 * band + place / 2))
    return Counts(tuple(cells), Quiet(2880, 1, 30), 8640.0, 0.05)


@pytest.fixture(scope="module")
def counts() -> Counts:
    return example_counts()


def test_a_curve_a_kind_shows_the_shares_and_the_delays(counts: Counts) -> None:
    share, unsized, delay, unsized_delay = draw(counts).axes
    for kind in SIZED:
        [curve] = [line for line in share.lines if line.get_label() == kind]
        cells = counts.of_kind(kind)
        assert_allclose(np.asarray(curve.get_ydata(), dtype=float), [cell.share for cell in cells])
        places = np.asarray(curve.get_xdata(), dtype=float)
        assert ((places > [low for low, _ in BANDS]) & (places < [high for _, high in BANDS])).all()
    delays = {tuple(np.asarray(line.get_ydata(), dtype=float)) for line in delay.lines}
    assert delays == {tuple(cell.delay for cell in counts.of_kind(kind)) for kind in SIZED}
    assert {tick.get_text() for tick in unsized_delay.get_xticklabels()} == set(KINDS) - set(SIZED)
    marks = [np.asarray(line.get_ydata(), dtype=float) for line in unsized.lines]
    heights = [float(mark[0]) for mark in marks if len(mark) == 1]
    assert_allclose(heights, [counts.of_kind(kind)[0].share for kind in ("stuck", "replay", "silent")])


def test_intervals_are_drawn(counts: Counts) -> None:
    drawn = {
        tuple(np.round(np.asarray(line.get_ydata(), dtype=float), 9))
        for axes in draw(counts).axes
        for line in axes.lines
        if len(np.asarray(line.get_xdata())) == 2
    }
    assert {tuple(np.round(cell.interval, 9)) for cell in counts.cells} <= drawn


def test_kinds_differ_without_colour() -> None:
    assert set(LOOKS) == set(KINDS)
    assert len({look.marker for look in LOOKS.values()}) == len(KINDS)
    assert len({LOOKS[kind].dash for kind in SIZED}) == len(SIZED)
    luminance = [np.dot(to_rgb(look.colour), (0.299, 0.587, 0.114)) for look in LOOKS.values()]
    assert max(luminance) < 0.7  # dark enough on white


def test_nothing_lies_on_anything_else(counts: Counts) -> None:
    with figure_style():
        assert overlapping(draw(counts, line=counts.line(60.0))) == []


def test_kinds_that_were_not_drilled_leave_a_gap(counts: Counts) -> None:
    few = Counts(counts.of_kind("step"), counts.quiet, counts.every, counts.alpha)
    left, right, *_ = draw(few).axes
    assert {str(line.get_label()) for line in left.lines} & set(KINDS) == {"step"}
    assert [text.get_text() for text in right.texts] == ["none"] * 3
    empty = Counts((), Quiet(10, 0, 0), 30.0, 0.05)
    draw(empty, line="On your own history: nothing").draw_without_rendering()
