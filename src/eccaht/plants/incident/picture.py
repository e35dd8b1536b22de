"""The picture of an answer: what the named sensors read beside what the others predict, then the evidence.

That of a search has the evidence over time, who was in the set when, and what the named sensors read.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from scipy.linalg import cho_factor, cho_solve

from eccaht.base.arrays import Array, Index, runs
from eccaht.base.clock import PLAIN, Clock
from eccaht.base.presentation.style import PALETTE, TEXT_WIDTH, End, figure_style, label_ends, label_times
from eccaht.base.presentation.text import counted, deviations, in_digits, shortened, sized
from eccaht.plants.data.windows import Times
from eccaht.plants.incident.answer import Answer, Course, Incident, Suspect
from eccaht.plants.incident.search import Finding
from eccaht.plants.incident.words import SIGNED, headline, kind_of, outside, shown_briefly, unit_of
from eccaht.streams import LedgerEntry, Problem, with_ridge
from eccaht.streams.run.evidence import name_of

PHONE_WIDTH = 3.7  # inches: text stays legible when a telephone shows the picture
READ, OUTSIDE, BAND, PREDICTED, ONSET = "#1F4E79", PALETTE["vermillion"], "#D4D4D4", "#707070", "#333333"
_PANELS = 6  # named sensors that are drawn
_HEIGHT, _EVIDENCE = 1.05, 1.15  # inches of a panel
_DOTTED = 36  # windows an inch up to which each has a dot
_LINE = 0.16  # inches of a line of the headline
# of a search
_NAMED = tuple(PALETTE[name] for name in ("blue", "vermillion", "green", "purple", "orange", "sky"))
_RUNNER_UP, _OTHER = "#4D4D4D", "#D0D0D0"
_RUNNERS_UP, _ROWS = 2, 9  # sensors drawn beside the named ones; sensors in the strip of sets
_LONGEST_TITLE = 90
_SCORES, _READINGS = 2.4, 1.2  # heights of panels in inches
_NORMAL, _FAR, _LINEAR = 1.96, 25.0, 5.0  # deviations: of 95 % of normal windows; beyond which an axis is logarithmic
_MARKED = 120  # windows up to which each has a dot
_LEAST = 1e-12  # smallest share of a sensor's variance that others leave unexplained: less is rounding error


@figure_style()
def draw(answer: Answer, *, clock: Clock = PLAIN, width: float = TEXT_WIDTH, title: bool = True) -> Figure:
    """Draw the named sensors of the largest incident, the runner-up, which stays in its band, and the evidence.

    Of a search: as `draw_search` does, with a width of its own. width: in inches. title: whether the headline stands
    above the panels.
    """
    if (search := answer.search) is not None:
        return draw_search(search.problem, search.finding, search.seconds, scores=search.scores, clock=clock)
    answer, _ = shown_briefly(answer)
    incident = answer.largest
    named, others = _chosen(incident)
    heights = [*[_HEIGHT] * (len(named) + len(others)), _EVIDENCE]
    above = textwrap.wrap(headline(answer, clock), round(13.5 * width)) if title else []
    figure = Figure(figsize=(width, sum(heights) + 0.7 + _LINE * len(above)))
    panels = figure.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
    for axes, course in zip(panels, (*named, *others), strict=False):
        _draw_course(axes, incident, course, clock, width)
    _draw_evidence(panels[-1], incident, clock, width)
    for axes in panels if answer.incidents else ():
        _draw_dates(axes, incident, clock)
    times, zone = clock.axis(incident.starts)
    if len(times) > 1:
        panels[-1].set_xlim(times[0], times[-1])
    label_times(panels[-1], zone)
    _head(figure, answer, above, left_out=len(answer.named) - len(named), wide=width > PHONE_WIDTH)
    return figure


def _chosen(incident: Incident) -> tuple[list[Course], list[Course]]:
    """The courses of the first named sensors, and of the runner-up."""
    courses = {course.sensor: course for course in incident.courses}
    named = [courses[sensor] for sensor in incident.named if sensor in courses]
    return named[:_PANELS], [courses[incident.runner_up]] if incident.runner_up in courses else []


def _draw_course(axes: Axes, incident: Incident, course: Course, clock: Clock, width: float) -> None:
    starts, (read, expected, low, high) = _with_gaps(
        course.starts, [course.read, course.expected, course.low, course.high]
    )
    times, _ = clock.axis(starts)
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
    _write_silence(axes, incident, course, clock)


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


def _write_silence(axes: Axes, incident: Incident, course: Course, clock: Clock) -> None:
    """Where a named sensor delivers nothing, words stand in for its readings."""
    silent = np.isnan(course.read) & (course.starts >= incident.began)
    if incident.ended is not None:
        silent &= course.starts < incident.ended
    gone = np.flatnonzero(silent)
    if course.sensor not in incident.named or len(gone) < 3:
        return
    times, _ = clock.axis(course.starts)
    middle = times[gone[len(gone) // 2]]
    axes.text(middle, 0.03, "no reading", transform=axes.get_xaxis_transform(), ha="center", va="bottom", zorder=5)


def _draw_evidence(axes: Axes, incident: Incident, clock: Clock, width: float) -> None:
    starts, (course,) = _with_gaps(incident.starts, [incident.evidence_course])
    times, _ = clock.axis(starts)
    axes.plot(times, course, color=READ, marker="." if len(times) <= _DOTTED * width else "", markersize=2.5, zorder=3)
    top = max(float(np.nanmax(course, initial=0.0)), 1.0)
    axes.set_ylim(min(float(np.nanmin(course, initial=0.0)), 0.0) - 0.05 * top, 1.15 * top)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.set_title("evidence", fontweight="bold")
    axes.set_title("summed since the onset", loc="right")


def _draw_dates(axes: Axes, incident: Incident, clock: Clock) -> None:
    dates = [incident.began, *([] if incident.ended is None or incident.changed else [incident.ended])]
    within = [date for date in dates if len(incident.starts) and date <= incident.starts[-1]]
    for place in clock.axis(np.array(within, dtype="datetime64[us]"))[0]:
        axes.axvline(place, color=ONSET, linewidth=0.9, linestyle=(0, (1, 1.2)), zorder=2.5)
    if incident.began_interval[0] < incident.began_interval[1]:
        low, high = clock.axis(np.array(incident.began_interval))[0]
        axes.axvspan(low, high, facecolor="none", edgecolor=ONSET, hatch="//////", alpha=0.3, linewidth=0, zorder=0.5)


def _head(figure: Figure, answer: Answer, above: Sequence[str], *, left_out: int, wide: bool) -> None:
    """The headline and what the marks mean."""
    marks: list[Any] = [
        Line2D([], [], color=READ, linewidth=0.9, marker=".", markersize=3, label="read"),
        Patch(color=BAND, linewidth=0, label="what the others predict (95 %)" if wide else "predicted (95 %)"),
        Line2D([], [], **_beyond(4.0), label="outside"),
    ]
    if answer.incidents:
        ends = answer.end is not None and not answer.largest.changed
        label = "onset, end" if ends else "onset"
        marks.append(Line2D([], [], color=ONSET, linewidth=0.9, linestyle=(0, (1, 1.2)), label=label))
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


# -- a search by weighted sums ---------------------------------------------------------------------


@figure_style()
def draw_search(
    problem: Problem, finding: Finding, seconds: float, *, scores: str = "log-odds", clock: Clock = PLAIN
) -> Figure:
    """Draw the scores over time, which sensors were in the set when, and what the named sensors read.

    seconds: length of a window; a reading counts when its window is over. scores: what the policy's scores are called.
    clock: what the times mean.
    """
    entries = finding.entries
    times, zone = clock.axis(_times(finding, seconds))
    track = np.array([entries[0].scores - entries[0].moved, *(entry.scores for entry in entries)])
    colours, ever = _colours(finding), _ever_named(finding)
    shown = {k: colour for k, colour in colours.items() if k in finding.anomalies} or colours
    heights = [_SCORES, 0.25 + 0.17 * len(ever), *[max(_READINGS, 0.14 * len(shown))] * 2]
    figure = Figure(figsize=(TEXT_WIDTH, sum(heights) + 1.0))
    panels = figure.subplots(4, 1, sharex=True, height_ratios=heights)
    panels[-1].set_xlim(times[0], times[-1])
    top, sets, plain, alone = panels
    _draw_scores(top, problem, times, track, colours)
    top.set(ylabel=f"evidence ({scores})", title=_search_title(finding))
    _draw_sets(sets, problem, finding, times, ever, colours)
    readings = read(problem, finding.entries, np.array(list(shown)))
    whose = "the named sensors" if finding.names else "the sensors nearest to being named"
    for axes, values in ((plain, readings.plain), (alone, readings.alone)):
        _draw_readings(axes, problem, times[1:][readings.last], values, shown, heights[-1])
    plain.set_title(f"what {whose} read, in standard deviations; grey: 95 % of normal windows")
    alone.set_title("the same without the noise that other sensors share and explain")
    for axes in panels:
        axes.axvline(times[-1], color="black", linewidth=0.8, linestyle=(0, (3, 2)), zorder=0.5)
    label_times(alone, zone)
    return figure


def _times(finding: Finding, seconds: float) -> Times:
    """The start of the search, then the time of each reading; several readings of one window divide its length."""
    windows = np.array([entry.window for entry in finding.entries])
    _, first, place, counts = np.unique(windows, return_index=True, return_inverse=True, return_counts=True)
    shares = (np.arange(len(windows)) - first[place] + 1) / counts[place]
    length = np.rint(shares * seconds * 1e6).astype("timedelta64[us]")
    starts = np.array([entry.time for entry in finding.entries]).astype("datetime64[us]")
    return np.concatenate([starts[:1], starts + length])


def _search_title(finding: Finding) -> str:
    ends = {"stopped": "stopped", "data_ended": "data end", "max_measurements": "measurements used up"}
    ends |= {"unfinished": "so far"}
    names = ", ".join(finding.names) or "no sensor named"
    if len(names) > _LONGEST_TITLE:
        names = f"{len(finding.names)} sensors named"
    return f"{names}: {ends[finding.reason]} after {counted(finding.n_measurements, 'measurement')}"


def _colours(finding: Finding) -> dict[int, str]:
    """Named sensors in colour, runners-up dark grey; the strongest first."""
    order, n = finding.ranked, len(finding.anomalies)
    named = {k: _NAMED[rank % len(_NAMED)] for rank, k in enumerate(order[:n])}
    return named | dict.fromkeys(order[n : n + _RUNNERS_UP], _RUNNER_UP)


def _draw_scores(axes: Axes, problem: Problem, times: Times, track: Array, colours: dict[int, str]) -> None:
    plain = [k for k in range(problem.size) if k not in colours]
    step = max(1, len(plain) // 200)  # more lines would merge into a grey block
    for k in plain[::step]:
        axes.plot(times, track[:, k], color=_OTHER, linewidth=0.5, zorder=1)
    for rank, (k, colour) in enumerate(colours.items()):
        axes.plot(times, track[:, k], color=colour, zorder=4 - 0.01 * rank, **_line(colour, rank))
    axes.set_ylim(axes.get_ylim())
    label_ends(axes, times[-1], _ends(problem, colours, track[-1, list(colours)]), _SCORES)


def _draw_readings(
    axes: Axes, problem: Problem, times: Times, values: Array, colours: dict[int, str], height: float
) -> None:
    """Deviations of some sensors, (windows, sensors), over the band of normal ones."""
    axes.axhspan(-_NORMAL, _NORMAL, color=_OTHER, alpha=0.5, linewidth=0, zorder=0)
    marker = "o" if len(times) <= _MARKED else ""
    for rank, (colour, column) in enumerate(zip(colours.values(), values.T, strict=True)):
        line = _line(colour, rank) | {"marker": marker, "markersize": 2, "zorder": 4 - 0.01 * rank, "clip_on": False}
        axes.plot(times, column, color=colour, **line)
    edge = 1.2 * _NORMAL
    axes.set_ylim(np.nanmin(1.1 * values, initial=-edge), np.nanmax(1.1 * values, initial=edge))
    _compress(axes)
    last = np.array([np.append(0.0, column[~np.isnan(column)])[-1] for column in values.T])
    label_ends(axes, axes.get_xlim()[1], _ends(problem, colours, last), height)
    axes.set_ylabel("deviation")


def _compress(axes: Axes) -> None:
    """Make the axis logarithmic beyond the normal band where a reading is far outside it; few ticks, so they fit."""
    most = max(map(abs, axes.get_ylim()))
    if most > _FAR:
        decades = np.arange(1, int(np.log10(most)) + 1)
        beyond = 10.0 ** decades[:: 1 + len(decades) // 4]
        ticks = [*-beyond[::-1], 0.0, *beyond]
        limits = axes.get_ylim()
        axes.set_yscale("symlog", linthresh=_LINEAR)
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_yticks([], minor=True)
        axes.set_ylim(limits)


def _ends(problem: Problem, colours: dict[int, str], last: Array) -> list[End]:
    return [
        End(float(y), name_of(problem, k), colour, colour != _RUNNER_UP)
        for (k, colour), y in zip(colours.items(), last, strict=True)
    ]


def _line(colour: str, rank: int) -> dict[str, Any]:
    """Line style: dashes for runners-up, dots where colours repeat."""
    if colour == _RUNNER_UP:
        return {"linestyle": (0, (4, 1.5)), "linewidth": 1.0}
    return {"linestyle": (0, (1, 0.8))} if rank >= len(_NAMED) else {}


def _ever_named(finding: Finding) -> list[int]:
    """Sensors that were in the set at some time: the named ones, then the others by time in it."""
    named = finding.ranked[: len(finding.anomalies)]
    often = Counter(k for entry in finding.entries for k in entry.held.tolist()).most_common()
    return [*named, *(k for k, _ in often if k not in named)][: max(_ROWS, len(named))]


def _draw_sets(
    axes: Axes, problem: Problem, finding: Finding, times: Times, ever: list[int], colours: dict[int, str]
) -> None:
    for row, k in enumerate(ever):
        held = runs(np.array([k in entry.held for entry in finding.entries]))
        spans = [(times[start], times[stop] - times[start]) for start, stop in held]
        named = k in finding.anomalies
        axes.broken_barh(spans, (row - 0.32, 0.64), color=colours[k] if named else "#8C8C8C", linewidth=0)
        axes.axhline(row, color=_OTHER, linewidth=0.4, zorder=0.5)
        if named and k not in finding.entries[-1].held:  # it joined the set with the last reading
            axes.plot(times[-1], row, marker="o", markersize=3, color=colours[k], clip_on=False)
    axes.set_yticks(range(len(ever)), [name_of(problem, k) for k in ever])
    axes.set_ylim(len(ever) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_title("in the set" if ever else "in the set: no sensor at any time")


class _PicturedReadings(NamedTuple):
    """By window and sensor: the deviation from normal, and what is left of it that other sensors do not explain.

    Both have standard deviation 1 in normal operation; NaN where a sensor delivered nothing.
    """

    last: Index  # for each window the last entry that read it
    plain: Array
    alone: Array


def read(problem: Problem, entries: Sequence[LedgerEntry], sensors: Index) -> _PicturedReadings:
    """Return the readings of some sensors; they do not explain each other, all others do."""
    last = np.array(list({entry.window: place for place, entry in enumerate(entries)}.values()))
    noise = with_ridge(problem.covariance, problem.readout_noise**2)
    away = np.array([entries[place].values - problem.mean for place in last])
    others = np.setdiff1d(np.arange(problem.size), sensors)
    columns = np.stack([noise.column(int(k)) for k in sensors], axis=1)
    variance = columns[sensors, np.arange(sensors.size)]
    plain = away[:, sensors] / np.sqrt(variance)
    alone = np.empty_like(plain)
    present = ~np.isnan(away[:, others])
    dense = noise.dense()
    for pattern in np.unique(present, axis=0):
        rows, there = (present == pattern).all(axis=1), others[pattern]
        weights = cho_solve(cho_factor(dense[np.ix_(there, there)]), columns[there]) if there.size else columns[there]
        left = np.maximum(variance - (columns[there] * weights).sum(axis=0), _LEAST * variance)
        explained = away[np.ix_(rows, there)] @ weights
        alone[rows] = (away[np.ix_(rows, sensors)] - explained) / np.sqrt(left)
    return _PicturedReadings(last, plain, alone)
