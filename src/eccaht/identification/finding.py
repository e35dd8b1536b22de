"""What a search found, and how sure its readings make it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from eccaht.arrays import Array, Index
from eccaht.environments import Replay
from eccaht.identification.search import Entry, edge, search
from eccaht.policies import Policy
from eccaht.problem import Problem
from eccaht.stopping import check_alpha

Reason = Literal["stopped", "data_ended", "max_measurements"]
_SOLVABLE = 1e-10  # reciprocal condition number of the normal equations of the sizes


class Swap(NamedTuple):
    """A set that differs in one sensor, and by how much the readings favour the named set over it.

    The gain is the log-likelihood ratio of the two sets given all readings, exact whatever the policy's own scores are;
    if it is negative, the readings speak for the other set.
    """

    out: int
    into: int
    gain: float


@dataclass(frozen=True)
class Finding:
    """The named sensors with the evidence for them."""

    anomalies: Index  # sorted
    names: tuple[str, ...]
    scores: Array  # (K,), what the policy ranks by
    beliefs: Array  # (K,)
    runner_up: int
    margin: float  # score of the weakest named sensor minus that of the runner-up
    sizes: Array  # (n,) estimated from the readings, in the units of the shifts; NaN where they cannot tell
    size_errors: Array  # (n,) their standard errors
    swap: Swap  # the rival set that the readings like best
    swaps: Array  # (n, K) gain of each member against each other sensor; infinite where that is a member
    n_measurements: int
    n_windows: int
    n_skipped: int  # windows passed over because every sensor asked for was missing
    first: np.datetime64
    last: np.datetime64  # start of the window of the last reading
    settled: int  # the measurement since which the set has not changed
    reason: Reason
    entries: tuple[Entry, ...]

    @property
    def settled_time(self) -> np.datetime64:
        """The window in which the set became what it is."""
        return self.entries[self.settled - 1].time


def investigate(
    policy: Policy,
    replay: Replay,
    *,
    max_measurements: int | None = None,
    confirm: float | None = None,
    watch: Callable[[Entry], object] | None = None,
) -> Finding:
    """Run the policy over the windows and sum up; `watch` sees every entry as it comes.

    confirm: an error level. The search then goes on after the policy would stop until the exact likelihood of the
        readings also speaks for the set: against every set with one member swapped, by `confirmation` or more.

    >>> from eccaht import Problem, Simulator, make_policy
    >>> problem = Problem(np.eye(6), shift=4.0, n_anomalies=1, budget=2.0, names=list("abcdef"))
    >>> start, x = np.datetime64("2024-05-01T08:00"), Simulator(problem, anomalies=[4]).sample(60)
    >>> windows = [(start + k, row) for k, row in enumerate(x)]
    >>> finding = investigate(make_policy("ecc-aht", problem), Replay(windows, problem))
    >>> finding.names, finding.reason
    (('e',), 'stopped')
    """
    entries: list[Entry] = []

    def done() -> bool:
        if confirm is None or not policy.should_stop():
            return policy.should_stop()
        needed = confirmation(policy.problem, policy.decision, check_alpha(confirm))
        return bool(entries) and float(swap_gains(policy.problem, entries, policy.decision).min()) >= needed

    for entry in search(policy, replay, max_measurements, done):
        entries.append(entry)
        if watch is not None:
            watch(entry)
    if not entries:
        raise ValueError(_nothing_read(replay))
    if done():
        reason: Reason = "stopped"
    else:
        reason = "max_measurements" if len(entries) == max_measurements else "data_ended"
    return _conclude(policy, replay, entries, reason)


def confirmation(problem: Problem, decision: Index, alpha: float) -> float:
    """log(N / alpha), with N = n (K - n) rival sets in the union bound."""
    n = len(decision)
    return math.log(n * (problem.size - n) / alpha)


def _nothing_read(replay: Replay) -> str:
    if replay.n_windows == 0:
        return "there is no window to read: check the start and stop time and that the data have rows"
    return f"no measurement could be read: its sensors are missing in all {replay.n_windows} windows"


def _conclude(policy: Policy, replay: Replay, entries: Sequence[Entry], reason: Reason) -> Finding:
    problem, decision, scores = policy.problem, policy.decision, policy.scores.copy()
    weakest, runner_up = edge(problem, scores, decision)
    sizes, errors = estimate_sizes(problem, entries, decision)
    swaps = swap_gains(problem, entries, decision)
    row, into = np.unravel_index(np.argmin(swaps), swaps.shape)
    changes = [e.number for e in entries if not np.array_equal(e.held, e.decision)]
    return Finding(
        anomalies=decision,
        names=tuple(name_of(problem, k) for k in decision),
        scores=scores,
        beliefs=policy.beliefs.copy(),
        runner_up=runner_up,
        margin=float(scores[weakest] - scores[runner_up]),
        sizes=sizes,
        size_errors=errors,
        swap=Swap(int(decision[row]), int(into), float(swaps[row, into])),
        swaps=swaps,
        n_measurements=len(entries),
        n_windows=entries[-1].window + 1,
        n_skipped=replay.n_skipped,
        first=entries[0].time,
        last=entries[-1].time,
        settled=changes[-1] if changes else 1,
        reason=reason,
        entries=tuple(entries),
    )


def name_of(problem: Problem, k: int) -> str:
    """The name of sensor k, its number if it has none."""
    return str(k) if problem.names is None else problem.names[k]


def _readings(problem: Problem, entries: Sequence[Entry]) -> tuple[Array, Array, Array]:
    """Weights (M, K), readings less their nominal mean (M,), and precisions (M,)."""
    C = np.array([entry.weights for entry in entries])
    y = np.array([entry.reading for entry in entries])
    return C, y - C @ problem.mean, np.array([entry.noise for entry in entries]) ** -2.0


def swap_gains(problem: Problem, entries: Sequence[Entry], decision: Index) -> Array:
    """Log-likelihood ratio of the set against each set with one member swapped, given all readings, (n, K).

    With h = shift*c and e the residual under the set, swapping i for j adds h_i - h_j to every residual.
    """
    C, r, w = _readings(problem, entries)
    H = C * problem.shift
    e = r - H[:, decision].sum(axis=1)
    linear, square = H.T @ (w * e), (H**2).T @ w
    cross = (H[:, decision] * w[:, None]).T @ H
    gains = linear[decision][:, None] - linear + 0.5 * (square[decision][:, None] + square) - cross
    gains[:, decision] = np.inf
    return gains


def swap_evidence(problem: Problem, entries: Sequence[Entry], decision: Index, out: int, into: int) -> Array:
    """The share of each reading in that ratio, for one swap, (M,)."""
    C, r, w = _readings(problem, entries)
    H = C * problem.shift
    e, d = r - H[:, decision].sum(axis=1), H[:, out] - H[:, into]
    return w * d * (e + 0.5 * d)


def estimate_sizes(problem: Problem, entries: Sequence[Entry], decision: Index) -> tuple[Array, Array]:
    """Weighted least squares for the shifts of the named sensors, with standard errors; NaN if not determined."""
    C, r, w = _readings(problem, entries)
    A = C[:, decision] * np.sqrt(w)[:, None]
    normal = A.T @ A
    values = np.linalg.eigvalsh(normal)
    if values[0] <= _SOLVABLE * values[-1]:
        unknown = np.full(decision.size, np.nan)
        return unknown, unknown.copy()
    inverse = np.linalg.inv(normal)
    return inverse @ (A.T @ (r * np.sqrt(w))), np.sqrt(np.diag(inverse))
