"""Figure 1: one search seen from inside, how it weighs streams and what it comes to believe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index
from eccaht.base.statistics import first_reached, reached_for_good
from eccaht.research.experiments.tables import Table
from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.research.paper.spec import Experiment
from eccaht.streams.policies import Policy, make_policy
from eccaht.streams.problem import Problem
from eccaht.streams.run.loop import Step, steps
from eccaht.streams.run.simulator import Simulator
from eccaht.streams.stopping import Gap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENTRY = EXPERIMENTS["fig1"]
(_SETTING,), (POLICY,), HORIZON = ENTRY.settings, ENTRY.policies, ENTRY.horizon
STREAMS, RHO = _SETTING.arguments["K"], _SETTING.arguments["rho"]
N_ANOMALIES, SHIFT, BUDGET = _SETTING.n_anomalies, _SETTING.shift, _SETTING.budget
ALPHA = ENTRY.policy_options[POLICY]["alpha"]
CLOSE_UP = 5  # panel (f)


def problem() -> Problem:
    """The problem of the figure: 15 streams in a line, correlated with their neighbours, 3 of them anomalous."""
    return _SETTING.problem()


# -- the run -------------------------------------------------------------------------------------------


class Moment(NamedTuple):
    """What is believed after `step` readings, and the measurement behind the last one.

    Before the first measurement (step 0) champion and challenger are -1, the reading is NaN and the weights are 0.
    """

    step: int
    champion: int
    challenger: int
    reading: float
    weights: Array
    correlation: Array  # of each stream with the champion, S[i*, :]
    beliefs: Array
    scores: Array
    decision: Index
    lead: float
    threshold: float
    anomalies: Index  # the truth, which the policy never sees


def watch(seed: int, entry: Experiment = ENTRY) -> Iterator[Moment]:
    """Run the search for all measurements of the entry, ignoring its stopping rule, and yield each moment."""
    setting, (name,) = entry.settings[0].problem(), entry.policies
    policy = make_policy(name, setting, seed=seed, **entry.policy_options[name])
    world = Simulator(setting, seed=seed)
    yield _moment(policy, world, Step(0, np.zeros(setting.size), np.nan))
    for step in steps(policy, world, entry.horizon, obey_stopping=False):
        yield _moment(policy, world, step)


def _moment(policy: Policy, world: Simulator, step: Step) -> Moment:
    assert isinstance(policy.stopping, Gap)
    column = policy.problem.covariance.column
    return Moment(
        step=step.number,
        champion=step.champion,
        challenger=step.challenger,
        reading=step.reading,
        weights=step.weights,
        correlation=column(step.champion) if step.number else np.zeros(step.weights.size),
        beliefs=policy.beliefs.copy(),
        scores=policy.scores.copy(),
        decision=policy.decision,
        lead=policy.lead,
        threshold=policy.stopping.beta,
        anomalies=world.anomalies,
    )


def trace(seed: int, entry: Experiment = ENTRY) -> Table:
    """Run the search and return it as a flat table, one row a (step, stream)."""
    return tabulate(watch(seed, entry))


def tabulate(moments: Iterable[Moment]) -> Table:
    """Return moments as a flat table; what belongs to the whole step is repeated for each stream."""
    kept = list(moments)
    streams = np.arange(kept[0].beliefs.size)

    def each(name: str) -> NDArray[Any]:
        return np.concatenate([np.broadcast_to(getattr(moment, name), streams.size) for moment in kept])

    def among(name: str) -> NDArray[Any]:
        return np.concatenate([np.isin(streams, getattr(moment, name)) for moment in kept])

    return {
        "step": each("step"),
        "stream": np.tile(streams, len(kept)),
        "belief": each("beliefs"),
        "score": each("scores"),
        "weight": each("weights"),
        "correlation": each("correlation"),
        "champion": each("champion"),
        "challenger": each("challenger"),
        "reading": each("reading"),
        "lead": each("lead"),
        "threshold": each("threshold"),
        "decided": among("decision"),
        "anomalous": among("anomalies"),
    }


class Fig1Outcome(NamedTuple):
    """How a search ended, and where the gap rule would have ended it."""

    decision: list[int]
    truth: list[int]
    right_from: int | None  # the measurement since which the decision is right for good
    stopped_at: int | None  # the measurement at which the gap rule first holds
    stopped_decision: list[int] | None

    @property
    def right(self) -> bool:
        """Is the final decision the true set?"""
        return self.decision == self.truth

    @property
    def stopped_right(self) -> bool | None:
        """Would the gap rule have stopped with the true set? None if it would not have stopped."""
        return None if self.stopped_decision is None else self.stopped_decision == self.truth


def outcome(table: Table) -> Fig1Outcome:
    """Read the end of the search off its table."""
    decided, anomalous = _by_step(table, "decided"), _by_step(table, "anomalous")
    lead, threshold = _by_step(table, "lead")[:, 0], _by_step(table, "threshold")[:, 0]
    hits = (decided & anomalous).sum(axis=1)
    # row 0 is the state before the first measurement, which neither curve counts
    stopped_at = first_reached((lead >= threshold)[1:], level=1.0)
    return Fig1Outcome(
        decision=np.flatnonzero(decided[-1]).tolist(),
        truth=np.flatnonzero(anomalous[-1]).tolist(),
        right_from=reached_for_good(hits[1:] == anomalous.sum(axis=1)[1:], level=1.0),
        stopped_at=stopped_at,
        stopped_decision=None if stopped_at is None else np.flatnonzero(decided[stopped_at]).tolist(),
    )


def _by_step(table: Table, name: str) -> NDArray[Any]:
    return table[name].reshape(-1, int(table["stream"].max()) + 1)


# -- the figure ----------------------------------------------------------------------------------------

_RED, _BLUE = "#B2182B", "#2166AC"  # the ends of the heat map, so that a sign has one colour everywhere


def draw(table: Table) -> Figure:
    """Draw the six panels: beliefs at four times, all measurements, and one of them over the correlation it uses."""
    from matplotlib.figure import Figure

    from eccaht.base.presentation.style import TEXT_WIDTH, figure_style

    with figure_style():
        figure = Figure(figsize=(TEXT_WIDTH, 4.2))
        rows = figure.add_gridspec(2, 1, height_ratios=[2, 3])
        snapshots = (0, 1, CLOSE_UP, int(table["step"].max()))  # panels (a) to (d)
        top, bottom = rows[0].subgridspec(1, len(snapshots)), rows[1].subgridspec(1, 2)
        for place, letter, step in zip(range(len(snapshots)), "abcd", snapshots, strict=True):
            _draw_beliefs(figure.add_subplot(top[place]), table, letter, step)
        _draw_actions(figure, figure.add_subplot(bottom[0]), table)
        _draw_close_up(figure.add_subplot(bottom[1]), table, CLOSE_UP)
        _draw_legend(figure)
    return figure


def _draw_beliefs(ax: Axes, table: Table, letter: str, step: int) -> None:
    from eccaht.base.presentation.style import NEUTRAL, PALETTE

    belief, anomalous = _by_step(table, "belief")[step], _by_step(table, "anomalous")[step]
    named = int((_by_step(table, "decided")[step] & anomalous).sum())
    ax.bar(range(belief.size), belief, color=np.where(anomalous, PALETTE["green"], NEUTRAL), width=0.8)
    found = "the prior" if step == 0 else f"{named} of {anomalous.sum()} found"
    ax.set_title(f"({letter}) $t={step}$: {found}")
    ax.set_ylim(0, 1.02)
    if letter == "a":  # the four panels share their axis
        ax.set_ylabel("belief $p_t(k)$")
    else:
        ax.tick_params(labelleft=False)
    _number_streams(ax, belief.size)


def _draw_actions(figure: Figure, ax: Axes, table: Table) -> None:
    from eccaht.base.presentation.style import PALETTE

    weight, anomalous = _by_step(table, "weight")[1:], _by_step(table, "anomalous")[0]
    limit = float(np.abs(weight).max())
    steps, streams = weight.shape
    edges = np.arange(steps + 1) + 0.5, np.arange(streams + 1) - 0.5
    mesh = ax.pcolormesh(*edges, weight.T, cmap="RdBu_r", vmin=-limit, vmax=limit)
    mesh.set(edgecolor="face", linewidth=0.2)  # without edges PDF viewers show white seams between the cells
    truth = np.flatnonzero(anomalous)
    right = np.full(truth.size, edges[0][-1] + 0.7)
    ax.plot(right, truth, marker=4, color=PALETTE["green"], linestyle="", markersize=4, clip_on=False)
    ax.set_xlim(edges[0][0], edges[0][-1])
    ax.set_ylim(-0.5, streams - 0.5)
    ax.set_title("(e) the measurements $c_t[k]$")
    ax.set_xticks([1, *range(5, steps + 1, 5)])
    ax.set_xlabel("measurement $t$")
    ax.set_yticks(range(0, streams, 2))
    ax.set_ylabel("stream $k$")
    bar = figure.colorbar(mesh, ax=ax, label="weight $c_t[k]$", pad=0.04)
    bar.outline.set_visible(False)


def _draw_close_up(ax: Axes, table: Table, step: int) -> None:
    from eccaht.base.presentation.style import PALETTE

    weight, correlation = _by_step(table, "weight")[step], _by_step(table, "correlation")[step]
    champion, challenger = (int(_by_step(table, name)[step, 0]) for name in ("champion", "challenger"))
    streams = range(weight.size)
    ax.bar(streams, correlation, width=1.0, color=PALETTE["yellow"], alpha=0.5, label="correlation")
    ax.bar(streams, weight, width=0.55, color=np.where(weight > 0, _RED, _BLUE), label="weight")
    ax.axhline(0, color="black", linewidth=0.6)
    _label(ax, champion, max(weight[champion], correlation[champion]), "champion", "bottom", streams[-1])
    _label(ax, challenger, weight[challenger], "challenger", "top", streams[-1])
    ax.margins(y=0.16)
    ax.set_title(f"(f) $t={step}$: stream {champion} against stream {challenger}")
    ax.set_ylabel(f"weight $c_{step}[k]$, correlation")
    _number_streams(ax, weight.size)


def _label(ax: Axes, stream: int, height: float, text: str, side: str, last: int) -> None:
    """Name a bar beyond its end, growing inwards from the edges of the panel."""
    align = "left" if stream == 0 else "right" if stream == last else "center"
    x = stream + {"left": -0.4, "center": 0.0, "right": 0.4}[align]
    offset = (0, 1.5 if side == "bottom" else -1.5)
    ax.annotate(text, (x, height), xytext=offset, textcoords="offset points", ha=align, va=side, fontsize=6.5)


def _number_streams(ax: Axes, streams: int) -> None:
    ax.set_xlim(-0.7, streams - 0.3)
    ax.set_xticks(range(0, streams, 2))
    ax.set_xlabel("stream $k$")


def _draw_legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    from eccaht.base.presentation.style import NEUTRAL, PALETTE

    handles = [
        Patch(color=PALETTE["green"], label="anomalous stream"),
        Patch(color=NEUTRAL, label="nominal stream"),
        Patch(color=_RED, label="weight > 0"),
        Patch(color=_BLUE, label="weight < 0"),
        Patch(color=PALETTE["yellow"], alpha=0.5, label="correlation with the champion"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, handlelength=1.0, columnspacing=1.5)
