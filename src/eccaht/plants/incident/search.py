"""A search by weighted sums of readings, step by step, and what it has found: `identify --sums`.

`Investigation` runs a policy on a world, `Finding` is what its readings say about sets, and `Search` is that part of an
`Answer` which only a search has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index, as_count, inner
from eccaht.plants.incident.search_cautions import data_cautions
from eccaht.plants.model.gaps import Culprit
from eccaht.plants.replay import Replay
from eccaht.streams import (
    Confidence,
    Ledger,
    LedgerEntry,
    Policy,
    Problem,
    Recorder,
    Step,
    World,
    estimated_shifts,
    steps,
)
from eccaht.streams.posterior.likelihood import LEAST_FIT
from eccaht.streams.run.evidence import Change, Evidence, WholeWindows, name_of
from eccaht.streams.run.loop import ShiftEstimates
from eccaht.streams.run.world import as_world

if TYPE_CHECKING:
    from eccaht.plants.diagnose import Diagnosis


__all__ = ["Finding", "Investigation", "Search", "investigate"]
Ending = Literal["stopped", "data_ended", "max_measurements", "unfinished"]
LEVEL = 0.95  # of the intervals for the shifts


@dataclass(frozen=True)
class Finding:
    """The named sensors, perhaps none, with the evidence for them."""

    anomalies: Index  # sorted
    names: tuple[str, ...]
    scores: Array  # (K,), what the policy ranks by
    beliefs: Array  # (K,)
    runner_up: int
    margin: float  # score of the weakest named sensor minus that of the runner-up; NaN if none is named
    confidence: Confidence | None  # the probability of the set; None where the policy has no posterior
    shifts: ShiftEstimates  # of the named sensors; NaN where the readings do not determine them
    fit: float  # the probability of readings as bad as these if the set is right
    rival: Change  # the most likely set one change away
    rivals: tuple[Change, ...]  # for each named sensor the most likely set without it
    n_measurements: int
    n_windows: int
    n_skipped: int  # windows passed over because every sensor asked for was missing
    first: np.datetime64
    last: np.datetime64  # start of the window of the last reading
    settled: int  # the measurement since which the set has not changed
    reason: Ending
    entries: tuple[LedgerEntry, ...]
    evidence: Evidence
    cautions: tuple[str, ...] = ()  # what the data show without a search, and what the model's diagnosis says
    culprits: tuple[Culprit, ...] = ()  # sensors that stopped moving or fell silent: named without a search
    n_short: int = 0  # windows passed over because the policy cannot weigh how few rows they have
    diagnosis: Diagnosis | None = None  # of the model that prepared the windows, if it is known

    @property
    def refuted(self) -> bool:
        """Does the diagnosis of the model say that no confidence can be relied on?"""
        return self.diagnosis is not None and self.diagnosis.verdict == "not fit"

    @property
    def fits(self) -> bool:
        """Could the readings come from this set at all?"""
        return self.fit > LEAST_FIT

    @property
    def holds(self) -> bool:
        """Do neither the readings nor its own history contradict the model?"""
        return self.fits and not self.refuted

    @property
    def ranked(self) -> list[int]:
        """All sensors: the named ones by score, then the others."""
        order = np.argsort(-self.scores, kind="stable")
        inside = np.isin(order, self.anomalies)
        return [*order[inside].tolist(), *order[~inside].tolist()]

    @property
    def settled_time(self) -> np.datetime64:
        """The window in which the set became what it is."""
        return self.entries[self.settled - 1].time


class _Windowless:
    """A world that is no replay: there are no windows, and no model behind them."""

    model, culprits = None, ()
    n_windows = n_skipped = n_short = 0

    def __init__(self, world: World) -> None:
        self.read, self.whole = world.read, world.whole


class Investigation:
    """A search, one step after the other, that can be asked for its finding at any moment.

    world: windows to replay, a simulator, or a function from weights to a reading.

    max_measurements: the search ends after this many. vectors: observe each window as a whole vector instead of one
    weighted sum (policies that can take whole vectors). ledger: give one to read its entries from outside.
    recorders: called at every step.

    >>> from eccaht import Problem, Simulator, make_policy
    >>> problem = Problem(np.eye(6), shift=4.0, n_anomalies=1, budget=2.0, names=list("abcdef"))
    >>> start, x = np.datetime64("2024-05-01T08:00"), Simulator(problem, anomalies=[4]).sample(60)
    >>> windows = [(start + k, row) for k, row in enumerate(x)]
    >>> search = Investigation(make_policy("joint", problem), Replay(windows, problem))
    >>> step = next(search)
    >>> search.finding().reason
    'unfinished'
    >>> for step in search:
    ...     pass
    >>> finding = search.finding()
    >>> finding.names, finding.reason, finding.confidence.how
    (('e',), 'stopped', 'exact')
    """

    def __init__(
        self,
        policy: Policy,
        world: World | Callable[[Array], float],
        *,
        max_measurements: int | None = None,
        vectors: bool = False,
        ledger: Ledger | None = None,
        recorders: Sequence[Recorder] = (),
    ) -> None:
        self._most = None if max_measurements is None else as_count(max_measurements, "max_measurements", least=1)
        replay = world if isinstance(world, Replay) else _Windowless(as_world(world))
        self._policy, self._replay, self._ledger = policy, replay, Ledger(policy) if ledger is None else ledger
        self._steps = steps(policy, replay, self._most, whole=vectors, recorders=[self._ledger, *recorders])
        self._ended = False

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        step = next(self._steps, None)
        if step is None:
            self._ended = True
            raise StopIteration
        return step

    def finding(self) -> Finding:
        """What the search has found so far, or at its end; asking changes nothing."""
        policy, replay, entries = self._policy, self._replay, tuple(self._ledger.entries)
        if not entries:
            raise ValueError(_nothing_read(replay) if self._ended else "nothing was measured yet: take a step first")
        problem, decision, scores = policy.problem, policy.decision, policy.scores.copy()
        # a copy: an unfinished search goes on, and its finding must not change
        evidence = self._ledger.evidence if self._ended else self._ledger.evidence.now()
        outside = np.setdiff1d(np.arange(problem.size), decision)
        runner_up = int(outside[scores[outside].argmax()])
        changes = [e.number for e in entries if not np.array_equal(e.held, e.decision)]
        diagnosis = self._diagnosis
        cautions: list[str] = []
        if isinstance(replay, Replay):
            cautions += data_cautions(problem, replay, decision)
        return Finding(
            anomalies=decision,
            names=tuple(name_of(problem, k) for k in decision),
            scores=scores,
            beliefs=policy.beliefs.copy(),
            runner_up=runner_up,
            margin=float(scores[decision].min() - scores[runner_up]) if decision.size else math.nan,
            confidence=policy.confidence,
            shifts=_shifts(policy, evidence),
            fit=evidence.fit(decision),
            rival=evidence.best_change(decision),
            rivals=tuple(evidence.best_changes(decision)),
            n_measurements=len(entries),
            n_windows=entries[-1].window + 1,
            n_skipped=replay.n_skipped,
            first=entries[0].time,
            last=entries[-1].time,
            settled=changes[-1] if changes else 1,
            reason=self._reason(),
            entries=entries,
            evidence=evidence,
            cautions=tuple([diagnosis.caution, *cautions] if diagnosis is not None and diagnosis.caution else cautions),
            culprits=replay.culprits,
            n_short=replay.n_short,
            diagnosis=diagnosis,
        )

    @cached_property
    def _diagnosis(self) -> Diagnosis | None:
        """What the checks say of the model behind the windows."""
        if self._replay.model is None:
            return None
        from eccaht.plants.diagnose import diagnose

        return diagnose(self._replay.model, advise=False)

    def _reason(self) -> Ending:
        if self._policy.should_stop():
            return "stopped"
        if len(self._ledger.entries) == self._most:
            return "max_measurements"
        return "data_ended" if self._ended else "unfinished"


def investigate(policy: Policy, world: World | Callable[[Array], float], **options: Any) -> Finding:
    """Run an `Investigation`, which has the same options, to its end and sum it up."""
    search = Investigation(policy, world, **options)
    for _ in search:
        pass
    return search.finding()


def _nothing_read(replay: Replay | _Windowless) -> str:
    if replay.n_windows == 0:
        return "there is no window to read: check the start and stop time and that the data have rows"
    return f"no measurement could be read: its sensors are missing in all {replay.n_windows} windows"


def _shifts(policy: Policy, evidence: Evidence) -> ShiftEstimates:
    """Estimated shifts: by their posterior if some are unknown, by least squares if all were assumed known."""
    decision, problem = policy.decision, policy.problem
    estimates = estimated_shifts(policy, LEVEL) if problem.unknown_shift else None
    if estimates is not None:
        known = problem.shift_spread[decision] == 0.0
        values, low, high = (np.where(known, np.nan, column) for column in estimates[:3])
        return ShiftEstimates(values, low, high, LEVEL)
    return ShiftEstimates.of(*evidence.sizes(decision), LEVEL)


class Argument(NamedTuple):
    """One measurement, with the mean reading under the named set and under the changed one.

    evidence: its log-likelihood ratio, with shifts as known or as all readings estimate them. A window observed as a
    whole vector is shown as the one weighted sum of it that has the same log-likelihood ratio.
    """

    change: Change
    entry: LedgerEntry
    weights: Array
    reading: float
    noise: float
    expected: float
    expected_otherwise: float
    evidence: float


def strongest_argument(problem: Problem, finding: Finding, change: Change) -> Argument:
    """Return the measurement that speaks most for the named set and against the changed one."""
    return max(arguments(problem, finding, change), key=lambda argument: argument.evidence)


def arguments(problem: Problem, finding: Finding, change: Change) -> list[Argument]:
    """What each measurement says about the two sets."""
    known, members, whole = finding.evidence, finding.anomalies, WholeWindows(problem)
    near, far = known.shifts(members), known.shifts(change.of(members))
    found = []
    for entry in finding.entries:
        c, y, noise = entry.weights, entry.reading, entry.noise
        if entry.vector is not None:
            c, y, noise = whole.contrast(entry.vector, near - far, entry.excess)
        expected, otherwise = inner(c, problem.mean + near), inner(c, problem.mean + far)
        evidence = 0.0
        if noise > 0.0:
            evidence = known.log_density((y - expected) / noise) - known.log_density((y - otherwise) / noise)
        found.append(Argument(change, entry, c, y, noise, expected, otherwise, evidence))
    return found


@dataclass(frozen=True, eq=False)
class Search:
    """What only the answer of a search has: the finding, and what was asked.

    policy: its name; scores: what its scores are called. seconds: length of a window. alpha: 1 less the confidence
    asked for. failed: sensors that were left out of the search because they stopped moving or fell silent.
    """

    finding: Finding
    problem: Problem
    policy: str
    scores: str
    seconds: float
    alpha: float
    failed: tuple[Culprit, ...] = ()

    @property
    def threshold(self) -> float:
        """The log-odds against each single swap that the error level asks for if no probability is known."""
        n = len(self.finding.anomalies)
        return math.log(n * (self.problem.size - n) / self.alpha)

    @property
    def reached(self) -> bool:
        """Do the readings reach the error level, if the model holds? Without a probability, single swaps decide."""
        confidence = self.finding.confidence
        if confidence is not None:
            return confidence.how != "unsettled" and confidence.probability >= 1.0 - self.alpha
        return self.finding.rival.log_odds >= self.threshold

    @property
    def sure(self) -> bool:
        """Does the set reach the error level, with a model that neither history nor readings contradict?"""
        return self.reached and self.finding.holds

    @property
    def confidence(self) -> float | None:
        """The probability of the set, None where it is not known or where the model is contradicted."""
        stated = self.finding.confidence
        return stated.probability if stated is not None and stated.how != "unsettled" and self.finding.holds else None

    @property
    def decided(self) -> np.datetime64:
        """The end of the last window that was read."""
        return self.finding.last + np.timedelta64(round(self.seconds * 1e6), "us")

    def arguments(self) -> list[Argument]:
        """The strongest for each named sensor, the one with the most evidence first."""
        rivals = {change.out: change for change in self.finding.rivals}
        return [strongest_argument(self.problem, self.finding, rivals[k]) for k in self.finding.ranked if k in rivals]
