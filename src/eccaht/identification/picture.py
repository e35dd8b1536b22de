"""The evidence over time, drawn from the entries of a search."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from eccaht.arrays import Array
from eccaht.data.clock import PLAIN, Clock
from eccaht.data.windows import Times
from eccaht.identification.finding import Finding, name_of
from eccaht.presentation.style import PALETTE, TEXT_WIDTH
from eccaht.problem import Problem

_NAMED = tuple(PALETTE[name] for name in ("blue", "vermillion", "green", "purple", "orange", "sky"))
_RUNNER_UP, _OTHER = "#4D4D4D", "#D0D0D0"
_RUNNERS_UP, _ROWS = 2, 9  # sensors drawn beside the named ones; sensors in the strip of sets
_LONGEST_TITLE = 90


def draw(
    problem: Problem, finding: Finding, seconds: float, *, scores: str = "log-odds", clock: Clock = PLAIN
) -> Figure:
    """Draw every score over time with the named sensors in colour, and below it who was in the set when.

    seconds: length of a window; a reading counts when its window is over. scores: what the policy's scores are called.
    clock: what the times mean.
    """
    entries = finding.entries
    times, zone = clock.axis(_times(finding, seconds))
    track = np.array([entries[0].scores - entries[0].moved, *(entry.scores for entry in entries)])
    colours, ever = _colours(finding), _ever_named(finding)
    figure = Figure(figsize=(TEXT_WIDTH, 2.9 + 0.17 * len(ever)))
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[2.5, 0.25 + 0.17 * len(ever)])
    _draw_scores(top, problem, times, track, colours)
    top.set_ylabel(f"evidence ({scores})")
    top.set_title(_title(finding))
    _draw_sets(bottom, problem, finding, times, ever, colours)
    for axes in (top, bottom):
        axes.axvline(times[-1], color="black", linewidth=0.8, linestyle=(0, (3, 2)), zorder=0.5)
    if zone is None:
        bottom.set_xlabel("row")
    else:
        _date_axis(bottom, zone)
    bottom.set_xlim(times[0], times[-1])
    return figure


def _times(finding: Finding, seconds: float) -> Times:
    """The beginning, then when each reading was there: readings of one window share its time."""
    windows = np.array([entry.window for entry in finding.entries])
    _, first, place, counts = np.unique(windows, return_index=True, return_inverse=True, return_counts=True)
    shares = (np.arange(len(windows)) - first[place] + 1) / counts[place]
    length = np.rint(shares * seconds * 1e6).astype("timedelta64[us]")
    starts = np.array([entry.time for entry in finding.entries]).astype("datetime64[us]")
    return np.concatenate([starts[:1], starts + length])


def _title(finding: Finding) -> str:
    ends = {"stopped": "stopped", "data_ended": "data end", "max_measurements": "measurements used up"}
    plural = "" if finding.n_measurements == 1 else "s"
    names = ", ".join(finding.names) or "no sensor named"
    if len(names) > _LONGEST_TITLE:
        names = f"{len(finding.names)} sensors named"
    return f"{names}: {ends[finding.reason]} after {finding.n_measurements} measurement{plural}"


def _colours(finding: Finding) -> dict[int, str]:
    """Named sensors in colour, runners-up dark grey; the strongest first."""
    order = np.argsort(-finding.scores, kind="stable")
    named = [int(k) for k in order if k in finding.anomalies]
    others = [int(k) for k in order if k not in finding.anomalies][:_RUNNERS_UP]
    return {k: _NAMED[rank % len(_NAMED)] for rank, k in enumerate(named)} | dict.fromkeys(others, _RUNNER_UP)


def _draw_scores(axes: Axes, problem: Problem, times: Times, track: Array, colours: dict[int, str]) -> None:
    plain = [k for k in range(problem.size) if k not in colours]
    step = max(1, len(plain) // 200)  # more lines than that are a grey block
    for k in plain[::step]:
        axes.plot(times, track[:, k], color=_OTHER, linewidth=0.5, zorder=1)
    for rank, (k, colour) in enumerate(colours.items()):
        style: dict[str, Any] = {"linestyle": (0, (4, 1.5)), "linewidth": 1.0} if colour == _RUNNER_UP else {}
        if not style and rank >= len(_NAMED):  # colours come round again
            style = {"linestyle": (0, (1, 0.8))}
        axes.plot(times, track[:, k], color=colour, zorder=4 - 0.01 * rank, **style)
    _label_ends(axes, problem, times, track[-1], colours)


def _label_ends(axes: Axes, problem: Problem, times: Times, last: Array, colours: dict[int, str]) -> None:
    """Names at the right end of the lines, pushed apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = 0.065 * (high - low)
    placed = _spread(np.array([last[k] for k in colours]), gap)
    for (k, colour), y in zip(colours.items(), placed, strict=True):
        axes.annotate(
            name_of(problem, k),
            (times[-1], y),
            xytext=(4, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=7,
            fontweight="normal" if colour == _RUNNER_UP else "bold",
            annotation_clip=False,
        )


def _spread(values: Array, gap: float) -> Array:
    """The values moved apart to at least `gap`, around where they were."""
    order = np.argsort(values)
    placed = values[order].astype(float)
    for _ in range(50 * len(placed)):
        close = np.flatnonzero(np.diff(placed) < gap - 1e-9)
        if close.size == 0:
            break
        for k in close:
            lack = 0.5 * (gap - (placed[k + 1] - placed[k]))
            placed[k], placed[k + 1] = placed[k] - lack, placed[k + 1] + lack
    result = np.empty_like(placed)
    result[order] = placed
    return result


def _ever_named(finding: Finding) -> list[int]:
    """Sensors that were in the set at some time: the named ones, then the others by time in it."""
    times_in: dict[int, int] = {}
    for entry in finding.entries:
        for k in entry.held.tolist():
            times_in[k] = times_in.get(k, 0) + 1
    named = [k for k in np.argsort(-finding.scores, kind="stable").tolist() if k in finding.anomalies]
    others = sorted((k for k in times_in if k not in named), key=lambda k: -times_in[k])
    return [*named, *others][: max(_ROWS, len(named))]


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
        if named and k not in finding.entries[-1].held:  # it came in with the last reading
            axes.plot(times[-1], row, marker="o", markersize=3, color=colours[k], clip_on=False)
    axes.set_yticks(range(len(ever)), [name_of(problem, k) for k in ever])
    axes.set_ylim(len(ever) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_title("in the set" if ever else "in the set: nobody at any time")


def _date_axis(axes: Axes, zone: tzinfo) -> None:
    locator = AutoDateLocator(tz=zone, minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))  # type: ignore[no-untyped-call]
