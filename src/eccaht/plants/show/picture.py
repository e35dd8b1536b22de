"""The picture of an answer: what the named sensors read beside what the others predict, then the evidence."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from eccaht.base.arrays import Array
from eccaht.base.presentation.style import PALETTE, TEXT_WIDTH, figure_style, label_times
from eccaht.base.presentation.text import deviations, in_digits, shortened, sized
from eccaht.plants.answer import Answer, Course, Incident, Suspect
from eccaht.plants.data.windows import Times
from eccaht.plants.show.words import SIGNED, headline, kind_of, outside, unit_of

PHONE_WIDTH = 3.7  # inches: text stays legible when a telephone shows the picture
READ, OUTSIDE, BAND, PREDICTED, ONSET = "#1F4E79", PALETTE["vermillion"], "#D4D4D4", "#707070", "#333333"
_PANELS = 6  # named sensors that are drawn
_HEIGHT, _EVIDENCE = 1.05, 1.15  # inches of a panel
_DOTTED = 36  # windows an inch up to which each has a dot
_LINE = 0.16  # inches of a line of the headline


def draw(answer: Answer, *, width: float = TEXT_WIDTH, title: bool = True) -> Figure:
    """Draw the largest incident, or the whole stretch where there is none; title: whether the headline is above."""
    words = headline(answer) if title else ""
    return draw_incident(answer.largest, words, width=width, dated=bool(answer.incidents))


@figure_style()
def draw_incident(incident: Incident, words: str, *, width: float = TEXT_WIDTH, dated: bool = True) -> Figure:
    """Draw the named sensors of an incident, the runner-up, which stays in its band, and the evidence.

    words: above the panels. width: in inches. dated: whether its onset and end are marked.
    """
    named, others = _chosen(incident)
    heights = [*[_HEIGHT] * (len(named) + len(others)), _EVIDENCE]
    above = textwrap.wrap(words, round(13.5 * width))
    figure = Figure(figsize=(width, sum(heights) + 0.7 + _LINE * len(above)))
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    for axes, course in zip(panels, (*named, *others), strict=False):
        _draw_course(axes, incident, course, width)
    _draw_evidence(panels[-1], incident, width)
    for axes in panels if dated else ():
        _draw_dates(axes, incident)
    times, zone = incident.clock.axis(incident.starts)
    if len(times) > 1:
        panels[-1].set_xlim(times[0], times[-1])
    label_times(panels[-1], zone)
    marks = _marks(incident, dated=dated, wide=width > PHONE_WIDTH)
    _head(figure, marks, above, left_out=len(incident.named) - len(named) if dated else 0)
    return figure


def _chosen(incident: Incident) -> tuple[list[Course], list[Course]]:
    """The courses of the first named sensors, and of the runner-up."""
    courses = {course.sensor: course for course in incident.courses}
    named = [courses[sensor] for sensor in incident.named if sensor in courses]
    return named[:_PANELS], [courses[incident.runner_up]] if incident.runner_up in courses else []


def _draw_course(axes: Axes, incident: Incident, course: Course, width: float) -> None:
    starts, (read, expected, low, high) = _with_gaps(
        course.starts, [course.read, course.expected, course.low, course.high]
    )
    times, _ = incident.clock.axis(starts)
    axes.fill_between(times, low, high, color=BAND, linewidth=0, zorder=1)
    axes.plot(times, expected, color=PREDICTED, linewidth=0.7, linestyle=(0, (4, 1.5)), zorder=2)
    dotted = len(times) <= _DOTTED * width
    axes.plot(times, read, color=READ, linewidth=0.9, marker="." if dotted else "", markersize=2.5, zorder=3)
    with np.errstate(invalid="ignore"):
        beyond = (read < low) | (read > high)
    axes.plot(times[beyond], read[beyond], **_beyond(4.0 if dotted else 1.8), zorder=4)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.margins(y=0.08)
    _title(axes, incident, course, wide=width > PHONE_WIDTH)
    _write_silence(axes, incident, course)


def _title(axes: Axes, incident: Incident, course: Course, *, wide: bool) -> None:
    suspect = next(each for each in incident.sensors if each.sensor == course.sensor)
    name = _text(shortened(course.sensor, 40 if wide else 18))
    if not suspect.named:
        role = "runner-up" if incident.named else "closest to being named"
        axes.set_title(f"{name}  ({role})" if wide else name, fontweight="bold", color=PREDICTED)
        given = f"{deviations(suspect.reason.z_given)} deviations from what the others predict"
        axes.set_title(f"not named: {given}" if wide else role, loc="right", color=PREDICTED)
        return
    axes.set_title(name, fontweight="bold")
    axes.set_title(_what(incident, suspect, course, wide=wide), loc="right")


def _what(incident: Incident, suspect: Suspect, course: Course, *, wide: bool) -> str:
    """The fault of a named sensor: its size where it is a move, else how often it leaves the band."""
    kind, size = kind_of(suspect), sized(suspect.size_raw, *suspect.size_raw_interval)
    if suspect.kind in SIGNED and size:
        return f"{kind}: {size} from what the others predict" if wide else f"{kind}: {size.partition(' ')[0]}"
    if suspect.kind in ("stuck", "range"):
        return f"{kind} at {in_digits(suspect.reason.read, unit_of(suspect))}"
    count, windows = outside(incident, course)
    return f"{kind}: {count} of {windows} windows outside" if windows else kind


def _write_silence(axes: Axes, incident: Incident, course: Course) -> None:
    """Where a named sensor delivers nothing, words stand in for its readings."""
    silent = np.isnan(course.read) & (course.starts >= incident.began)
    if incident.ended is not None:
        silent &= course.starts < incident.ended
    gone = np.flatnonzero(silent)
    if course.sensor not in incident.named or len(gone) < 3:
        return
    times, _ = incident.clock.axis(course.starts)
    middle = times[gone[len(gone) // 2]]
    axes.text(middle, 0.03, "no reading", transform=axes.get_xaxis_transform(), ha="center", va="bottom", zorder=5)


def _draw_evidence(axes: Axes, incident: Incident, width: float) -> None:
    starts, (course,) = _with_gaps(incident.starts, [incident.evidence_course])
    times, _ = incident.clock.axis(starts)
    axes.plot(times, course, color=READ, marker="." if len(times) <= _DOTTED * width else "", markersize=2.5, zorder=3)
    axes.axhline(0.0, color=PREDICTED, linewidth=0.7, linestyle=(0, (4, 1.5)), zorder=2)
    axes.margins(y=0.12)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.set_title("evidence", fontweight="bold")
    axes.set_title("nats above the threshold of an alarm", loc="right")


def _draw_dates(axes: Axes, incident: Incident) -> None:
    dates = [incident.began, *([] if incident.ended is None or incident.changed else [incident.ended])]
    within = [date for date in dates if len(incident.starts) and date <= incident.starts[-1]]
    for place in incident.clock.axis(np.array(within, dtype="datetime64[us]"))[0]:
        axes.axvline(place, color=ONSET, linewidth=0.9, linestyle=(0, (1, 1.2)), zorder=2.5)
    if incident.began_interval[0] < incident.began_interval[1]:
        low, high = incident.clock.axis(np.array(incident.began_interval))[0]
        axes.axvspan(low, high, facecolor="none", edgecolor=ONSET, hatch="//////", alpha=0.3, linewidth=0, zorder=0.5)


def _marks(incident: Incident, *, dated: bool, wide: bool) -> list[Any]:
    """What the marks mean."""
    marks: list[Any] = [
        Line2D([], [], color=READ, linewidth=0.9, marker=".", markersize=3, label="read"),
        Patch(color=BAND, linewidth=0, label="what the others predict (95 %)" if wide else "predicted (95 %)"),
        Line2D([], [], **_beyond(4.0), label="outside"),
    ]
    if dated:
        label = "onset" if incident.ended is None or incident.changed else "onset, end"
        marks.append(Line2D([], [], color=ONSET, linewidth=0.9, linestyle=(0, (1, 1.2)), label=label))
    return marks


def _head(figure: Figure, marks: list[Any], above: Sequence[str], *, left_out: int) -> None:
    heading = (
        {"title": _text("\n".join(above)), "title_fontproperties": {"size": 8.5, "weight": "bold"}} if above else {}
    )
    look = {"ncols": len(marks), "columnspacing": 1.2, "handlelength": 1.6, "alignment": "left", "borderpad": 0.2}
    figure.legend(handles=marks, loc="outside upper left", **heading, **look)
    if left_out > 0:
        figure.supxlabel(f"and {left_out} more named, not drawn", x=0.99, ha="right", fontsize=7)


def _beyond(size: float) -> dict[str, Any]:
    """The marks of readings outside the band: rings, which differ from dots without colour."""
    mark = {"linestyle": "none", "marker": "o", "markersize": size, "markerfacecolor": "none"}
    return mark | {"markeredgecolor": OUTSIDE, "markeredgewidth": 0.8}


def _with_gaps(starts: Times, columns: Sequence[Array]) -> tuple[Times, list[Array]]:
    """The columns with NaN where windows are missing, so that no line leads over them."""
    steps = np.diff(starts.astype("datetime64[us]"))
    if not len(steps):
        return starts, list(columns)
    usual = np.median(steps)
    after = np.flatnonzero(steps > 1.5 * usual) + 1
    filled = np.insert(starts.astype("datetime64[us]"), after, starts[after - 1].astype("datetime64[us]") + usual)
    return filled, [np.insert(column.astype(float), after, np.nan) for column in columns]


def _text(text: str) -> str:
    """Safe from being read as a formula."""
    return text.replace("$", r"\$")
