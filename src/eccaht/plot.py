"""Pictures of one's own search, comparison and design, for notebooks and files: `pip install 'eccaht[figures]'`.

>>> from eccaht import Problem, families, plot
>>> problem = Problem(families.toeplitz(12, rho=0.8), shift=3.0, n_anomalies=2, budget=4.0)
>>> plot.design(problem, (3, 4)).axes[0].get_xlabel()
'stream'

Each is a function of what is there already and runs nothing. It returns a figure of matplotlib, which a notebook shows;
`path` saves it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index
from eccaht.base.presentation.style import NEUTRAL, PALETTE, TEXT_WIDTH, End, figure_style, for_notebooks, label_ends
from eccaht.research.experiments.comparison import Records
from eccaht.research.experiments.figures import draw_comparison
from eccaht.streams import Ledger, Policy, Problem, pair_design
from eccaht.streams.run.evidence import name_of

Path = str | PathLike[str] | None
_NAMED, _TRUE = PALETTE["blue"], PALETTE["vermillion"]
_ONE, _OTHER = PALETTE["blue"], PALETTE["orange"]
_LABELS = 24  # names of streams that fit below an axis
_LABELLED = 8  # paths that have their name beside them


def search(source: Ledger | Policy, *, anomalies: ArrayLike | None = None, path: Path = None) -> Figure:
    """Draw a search: of a `Ledger` every score over the measurements, of a policy its beliefs as they are now.

    anomalies: the truly anomalous streams, where they are known; they are marked.

    A `Ledger` is a recorder of the search: `steps(policy, world, recorders=[ledger])`.
    """
    if isinstance(source, Policy):
        return for_notebooks(_beliefs(source, _truth(anomalies, source.problem)), path)
    if not isinstance(source, Ledger):
        kind = type(source).__name__
        raise ValueError(f"{kind} holds no search to draw: give the policy, or a Ledger that recorded it")
    if not source.entries:
        raise ValueError("the ledger is empty: record a search with steps(policy, world, recorders=[ledger]) first")
    return for_notebooks(_paths(source, _truth(anomalies, source.problem)), path)


def comparison(records: Records, *, path: Path = None) -> Figure:
    """Draw the records of `compare`: mean F1 over the measurements, with 95 % intervals."""
    if not isinstance(records, Records):
        raise ValueError(f"a comparison is drawn from the Records of compare, not from a {type(records).__name__}")
    return for_notebooks(draw_comparison(records), path)


def design(problem: Problem, weights: ArrayLike | tuple[int | str, int | str], *, path: Path = None) -> Figure:
    """Draw the weights of a measurement, or of the best one that tells a pair of streams apart.

    weights: K numbers, or a pair of streams by number or by name.
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"a design belongs to a Problem, not to a {type(problem).__name__}")
    pair = _pair(problem, weights)
    if pair is None:
        c = problem.checked_measurement(weights)
        said = f"noise of a reading {np.sqrt(problem.noise_variance(c)):.3g}"
    else:
        best = pair_design(problem, *pair)
        c = best.weights
        share = 100.0 * best.information / best.unlimited
        said = f"{best.information:.3g} nats a reading, {share:.0f} % of what unlimited weights would give"
    with figure_style():
        figure = Figure(figsize=(TEXT_WIDTH, 2.6))
        ax = figure.add_subplot()
        _bars(ax, c, [] if pair is None else pair)
        label = f"streams {problem.label(pair[0])} and {problem.label(pair[1])}: " if pair else ""
        ax.set_title(label + said, loc="left")
        ax.set_ylabel("weight")
        _name_streams(ax, problem)
    return for_notebooks(figure, path)


def _pair(problem: Problem, given: object) -> tuple[int, int] | None:
    """Two streams, if that is what was given."""
    if not isinstance(given, tuple) or len(given) != 2 or problem.size == 2:
        return None
    found = []
    for each in given:
        if isinstance(each, str):
            names = problem.names or ()
            if each not in names:
                raise ValueError(f"there is no stream {each!r}: give the number of a stream, or one of its names")
            found.append(names.index(each))
        else:
            found.append(int(each))
    return found[0], found[1]


def _bars(ax: Axes, c: Array, pair: Sequence[int]) -> None:
    colours = np.full(c.size, NEUTRAL, dtype=object)
    for k, colour in zip(pair, (_ONE, _OTHER), strict=False):
        colours[k] = colour
    ax.bar(np.arange(c.size), c, color=list(colours), width=0.7, linewidth=0)
    ax.axhline(0.0, color="black", linewidth=0.6)


def _beliefs(policy: Policy, truth: Index) -> Figure:
    problem, beliefs = policy.problem, policy.beliefs
    with figure_style():
        figure = Figure(figsize=(TEXT_WIDTH, 2.6))
        ax = figure.add_subplot()
        named = np.isin(np.arange(problem.size), policy.decision)
        ax.bar(np.flatnonzero(~named), beliefs[~named], color=NEUTRAL, width=0.7, label="not named")
        ax.bar(np.flatnonzero(named), beliefs[named], color=_NAMED, width=0.7, label="named")
        if truth.size:
            ax.plot(truth, np.full(truth.size, 1.05), "v", color=_TRUE, markersize=5, label="anomalous", clip_on=False)
        ax.set(ylim=(0.0, 1.1), ylabel="probability of being anomalous")
        readings = "1 reading" if policy.n_told == 1 else f"{policy.n_told} readings"
        sure = "" if policy.confidence is None else f", set right with probability {policy.confidence.probability:.3g}"
        ax.set_title(f"after {readings}{sure}", loc="left")
        _name_streams(ax, problem)
        figure.legend(loc="outside right upper")
    return figure


def _paths(ledger: Ledger, truth: Index) -> Figure:
    """Scores over measurements; streams that are named at the end, or truly anomalous, are coloured and labelled."""
    problem, last = ledger.problem, ledger.entries[-1]
    scores = np.array([ledger.entries[0].scores - ledger.entries[0].moved, *(e.scores for e in ledger.entries)])
    steps, named = np.arange(len(scores)), last.decision
    shown = [*named.tolist(), *(k for k in truth.tolist() if k not in named)]
    with figure_style():
        figure = Figure(figsize=(TEXT_WIDTH, 3.6))
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        others = np.setdiff1d(np.arange(problem.size), shown)
        upper.plot(steps, scores[:, others], color=NEUTRAL, linewidth=0.5, alpha=0.7)
        ends = []
        for k in shown:
            right = not truth.size or k in truth
            colour, dash = (_NAMED, "-") if k in named and right else (_TRUE, "-" if k in truth else "--")
            upper.plot(steps, scores[:, k], color=colour, linestyle=dash)
            ends.append(End(float(scores[-1, k]), name_of(problem, k), colour))
        lower.set(xlabel="measurements", ylabel="lead", xlim=(0, max(len(steps) - 1, 1)))
        if len(ends) <= _LABELLED:
            label_ends(upper, steps[-1], ends, 3.6 * 0.6)
        lower.plot(steps[1:], [entry.lead for entry in ledger.entries], color="black", linewidth=0.9)
        lower.axhline(0.0, color=NEUTRAL, linewidth=0.5)
        upper.set_ylabel("score")
        lower.xaxis.set_major_locator(MaxNLocator(integer=True))
        upper.set_title(_how(truth), loc="left")
    return figure


def _how(truth: Index) -> str:
    grey = "grey: the other streams"
    if not truth.size:
        return f"blue: the streams named; {grey}"
    return f"blue: named and anomalous; red: missed, dashed: named wrongly; {grey}"


def _name_streams(ax: Axes, problem: Problem) -> None:
    ax.set_xlim(-0.8, problem.size - 0.2)
    ax.set_xlabel("stream")
    if problem.names is not None and problem.size <= _LABELS:
        ax.set_xticks(np.arange(problem.size), problem.names, rotation=45, ha="right", rotation_mode="anchor")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _truth(anomalies: ArrayLike | None, problem: Problem) -> Index:
    streams = np.asarray([] if anomalies is None else anomalies, dtype=np.intp)
    if streams.ndim != 1 or ((streams < 0) | (streams >= problem.size)).any():
        raise ValueError(f"anomalies must be streams from 0 to {problem.size - 1}, not {anomalies!r}")
    return streams
