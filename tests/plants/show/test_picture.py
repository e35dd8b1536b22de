"""The picture shows what sensors read beside what the others predict, and nothing in it lies on anything else."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.testing import assert_allclose

from eccaht.base.clock import Clock
from eccaht.base.presentation.style import TEXT_WIDTH, figure_style
from eccaht.plants.answer import Answer
from eccaht.plants.show.picture import ONSET, OUTSIDE, PHONE_WIDTH, READ, draw
from tests.plants.show.example_answers import BEFORE, MINUTE, START, answer_of


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other, ticks without those outside the axes."""
    figure.draw_without_rendering()
    texts: list[Text] = []
    for ax in figure.axes:
        texts += [*ax.texts, ax.xaxis.label, ax.yaxis.label, ax.xaxis.get_offset_text()]
        texts += [child for child in ax.get_children() if isinstance(child, Text)]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    shown = {id(text): text for text in texts if text.get_visible() and text.get_text().strip()}
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown.values()]
    return [(a, b) for k, (a, one) in enumerate(boxes) for b, other in boxes[:k] if one.overlaps(other)]


@cache
def case_of(name: str) -> Answer:
    return {
        "three": lambda: answer_of(),
        "eight": lambda: answer_of(("step",) * 8, windows=600),
        "none": lambda: answer_of(()),
        "standing still": lambda: answer_of(("stuck", "silent", "free")),
        "over": lambda: answer_of(("step",), ended=START + 100 * MINUTE),
        "odd names": lambda: answer_of(
            ("step", "drift"), names=["$x_1$ and a name that is longer than any label", "a$b"]
        ),
    }[name]()


@cache
def figure_of(name: str, width: float = TEXT_WIDTH) -> Figure:
    return draw(case_of(name), width=width)


def panel_of(figure: Figure, sensor: str) -> int:
    """Which of the axes shows a sensor."""
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    return next(k for k, title in enumerate(titles) if title.split("  ")[0] == sensor)


@pytest.mark.parametrize("width", [TEXT_WIDTH, PHONE_WIDTH])
@pytest.mark.parametrize("case", ["three", "none", "odd names", "over"])
def test_nothing_lies_on_anything_else(case: str, width: float) -> None:
    with figure_style():
        figure = figure_of(case, width)
        assert overlapping(figure) == []
        right = figure.bbox.x1
        for text in (text for axes in figure.axes for text in (axes.title, axes._left_title, axes._right_title)):  # type: ignore[attr-defined]
            assert text.get_window_extent().x1 <= right + 1


def test_each_named_sensor_is_drawn_with_its_band_and_marked_where_it_leaves_it() -> None:
    answer, figure = case_of("three"), figure_of("three")
    assert len(figure.axes) == 3 + 1 + 1
    for course in answer.largest.courses:
        axes = figure.axes[panel_of(figure, course.sensor)]
        (line,) = [line for line in axes.lines if line.get_color() == READ]
        assert_allclose(np.asarray(line.get_ydata(), dtype=float), course.read)
        band = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1]
        assert (band.min(), band.max()) == pytest.approx((course.low.min(), course.high.max()))
        (rings,) = [line for line in axes.lines if line.get_markeredgecolor() == OUTSIDE]
        beyond = (course.read < course.low) | (course.read > course.high)
        assert_allclose(np.asarray(rings.get_ydata(), dtype=float), course.read[beyond])
        assert rings.get_marker() == "o"  # known by its shape too


def test_at_most_six_sensors_are_drawn_and_the_others_counted() -> None:
    figure = figure_of("eight")
    assert len(figure.axes) == 6 + 1 + 1
    assert figure.get_supxlabel() == "and 2 more named, not drawn"


def test_both_ends_of_an_incident_are_drawn() -> None:
    for axes in figure_of("over").axes:
        marks = [line.get_xdata()[0] for line in axes.lines if line.get_color() == ONSET]  # type: ignore[index]
        assert marks == [START + BEFORE * MINUTE, START + 100 * MINUTE]
    assert [sum(line.get_color() == ONSET for line in axes.lines) for axes in figure_of("none").axes] == [0, 0]


def test_where_no_sensor_is_named_the_closest_is_shown() -> None:
    closest, _ = figure_of("none").axes
    assert "closest to being named" in closest.get_title(loc="left")


def test_a_silent_sensor_is_marked() -> None:
    figure = figure_of("standing still")
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert texts[1] == ["no reading"]
    assert texts[0] == texts[2] == []


def test_no_line_leads_over_windows_that_are_missing() -> None:
    answer = case_of("three")
    (incident,) = answer.incidents
    kept = np.r_[0:20, 50 : len(incident.starts)]
    course = incident.courses[0]
    columns = {name: getattr(course, name)[kept] for name in ("starts", "read", "expected", "low", "high")}
    cut = replace(incident, courses=(replace(course, **columns), *incident.courses[1:]))
    (line,) = [line for line in draw(replace(answer, incidents=(cut,))).axes[0].lines if line.get_color() == READ]
    drawn = np.asarray(line.get_ydata(), dtype=float)
    assert np.flatnonzero(np.isnan(drawn)).tolist() == [20]


def test_rows_without_times_are_counted() -> None:
    figure = draw(answer_of(clock=Clock(row_interval=60.0)))
    assert figure.axes[-1].get_xlabel() == "row"
    onset = (answer_row := (START.astype(np.int64) / 6e7)) + BEFORE + 1
    assert figure.axes[-1].get_xlim()[0] == answer_row + 1
    assert any(line.get_xdata()[0] == onset for line in figure.axes[-1].lines)  # type: ignore[index]


@pytest.mark.parametrize("windows", [slice(0, 0), slice(BEFORE, BEFORE + 1), slice(BEFORE, BEFORE + 2)])
def test_hardly_any_window_is_drawn_all_the_same(windows: slice) -> None:
    answer = answer_of(("step",))
    (incident,) = answer.incidents
    columns = ("starts", "read", "expected", "low", "high")
    courses = [replace(each, **{name: getattr(each, name)[windows] for name in columns}) for each in incident.courses]
    shown: dict[str, Any] = {"starts": incident.starts[windows], "evidence_course": incident.evidence_course[windows]}
    figure = draw(replace(answer, incidents=(replace(incident, courses=tuple(courses), **shown),)))
    figure.draw_without_rendering()
    assert figure.axes[-1].get_title(loc="right") == "nats above the threshold of an alarm"
