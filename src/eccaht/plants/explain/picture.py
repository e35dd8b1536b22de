"""The evidence over time, and what the named sensors read, drawn from the entries of a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.linalg import cho_factor, cho_solve

from eccaht.base.arrays import Array, Index
from eccaht.base.clock import PLAIN, Clock
from eccaht.base.presentation.dates import label_times
from eccaht.base.presentation.labels import End, label_ends
from eccaht.base.presentation.style import PALETTE, TEXT_WIDTH, figure_style
from eccaht.base.presentation.text import counted
from eccaht.plants.data.windows import Times
from eccaht.plants.explain.finding import Finding
from eccaht.streams.covariance.ridge import with_ridge
from eccaht.streams.problem import Problem
from eccaht.streams.run.evidence import name_of
from eccaht.streams.run.recorders import LedgerEntry

_NAMED = tuple(PALETTE[name] for name in ("blue", "vermillion", "green", "purple", "orange", "sky"))
_RUNNER_UP, _OTHER = "#4D4D4D", "#D0D0D0"
_RUNNERS_UP, _ROWS = 2, 9  # sensors drawn beside the named ones; sensors in the strip of sets
_LONGEST_TITLE = 90
_SCORES, _READINGS = 2.4, 1.2  # heights of panels in inches
_NORMAL, _FAR, _LINEAR = 1.96, 25.0, 5.0  # deviations: of 95 % of normal windows; beyond which an axis is logarithmic
_MARKED = 120  # windows up to which each has a dot
_LEAST = 1e-12  # smallest share of a sensor's variance that others leave unexplained: less is rounding error


@figure_style()
def draw(
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
    top.set(ylabel=f"evidence ({scores})", title=_title(finding))
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


def _title(finding: Finding) -> str:
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
        held = [k in entry.held for entry in finding.entries]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], held, [False]]).astype(int)))
        spans = [(times[a], times[b] - times[a]) for a, b in zip(edges[::2], edges[1::2], strict=True)]
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


class PicturedReadings(NamedTuple):
    """By window and sensor: the deviation from normal, and what is left of it that other sensors do not explain.

    Both have standard deviation 1 in normal operation; NaN where a sensor delivered nothing.
    """

    last: Index  # for each window the last entry that read it
    plain: Array
    alone: Array


def read(problem: Problem, entries: Sequence[LedgerEntry], sensors: Index) -> PicturedReadings:
    """Return the readings of some sensors; they do not explain each other, all others do."""
    last = np.array(list({entry.window: place for place, entry in enumerate(entries)}.values()))
    noise = with_ridge(problem.covariance, problem.readout_noise**2)
    deviations = np.array([entries[place].values - problem.mean for place in last])
    others = np.setdiff1d(np.arange(problem.size), sensors)
    columns = np.stack([noise.column(int(k)) for k in sensors], axis=1)
    variance = columns[sensors, np.arange(sensors.size)]
    plain = deviations[:, sensors] / np.sqrt(variance)
    alone = np.empty_like(plain)
    present = ~np.isnan(deviations[:, others])
    dense = noise.dense()
    for pattern in np.unique(present, axis=0):
        rows, there = (present == pattern).all(axis=1), others[pattern]
        weights = cho_solve(cho_factor(dense[np.ix_(there, there)]), columns[there]) if there.size else columns[there]
        left = np.maximum(variance - (columns[there] * weights).sum(axis=0), _LEAST * variance)
        explained = deviations[np.ix_(rows, there)] @ weights
        alone[rows] = (deviations[np.ix_(rows, sensors)] - explained) / np.sqrt(left)
    return PicturedReadings(last, plain, alone)
