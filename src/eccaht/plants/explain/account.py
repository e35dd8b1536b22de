"""A finding in words and as a table."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eccaht.base.arrays import Array
from eccaht.base.clock import PLAIN, Clock
from eccaht.base.presentation.text import confident, counted
from eccaht.plants.explain.arguments import Argument, strongest_argument
from eccaht.plants.explain.cautions import failed_caution, misfit_caution, short_windows
from eccaht.plants.explain.finding import Finding
from eccaht.plants.model.standstill import Culprit
from eccaht.streams.problem import Problem
from eccaht.streams.run.evidence import EMPTY, Change, name_of

if TYPE_CHECKING:
    from eccaht.plants.model.model import Model

_OTHERS = 4  # sensors shown below the named ones
_PARTS = 3  # weights that a line names
_WIDTH = 110
_ADVICE = {
    "stopped": "measure on (another --stopping)",
    "data_ended": "give more data, or take more from each window (--per-window, --vectors)",
    "max_measurements": "allow more measurements",
    "unfinished": "let the search go on",
}
_HOW = {
    "exact": "exact: every possible set was weighed",
    "estimated": "estimated from a population of sets",
    "unsettled": "not known: independent samples of sets, or searches, disagree",
}


@dataclass(frozen=True)
class Account:
    """A finding with what is needed to explain it.

    scores: what the policy's scores are called. alpha: the error level asked for. failed: sensors that were left out
    of the search because they stopped moving or fell silent. clock: how times are shown.
    """

    model: Model
    problem: Problem
    finding: Finding
    scores: str
    alpha: float
    failed: tuple[Culprit, ...] = ()
    clock: Clock = PLAIN

    @property
    def cautions(self) -> list[str]:
        """What to keep in mind beside the numbers."""
        failed = [failed_caution(sensor, self.clock) for sensor in self.failed]
        misfit = [] if self.finding.fits else [misfit_caution(self.finding.fit)]
        return [*failed, *self.finding.cautions, *misfit]

    @property
    def threshold(self) -> float:
        """The log-odds against each single swap that the error level asks for if no probability is known."""
        n = len(self.finding.anomalies)
        return math.log(n * (self.problem.size - n) / self.alpha)

    @property
    def sure(self) -> bool:
        """Does the set reach the error level, with a model that neither history nor readings contradict?"""
        return self.reached and self.finding.fits and not self.finding.refuted

    @property
    def reached(self) -> bool:
        """Do the readings reach the error level, if the model holds? Without a probability, single swaps decide."""
        confidence = self.finding.confidence
        if confidence is not None:
            return confidence.how != "unsettled" and confidence.probability >= 1.0 - self.alpha
        return self.finding.rival.log_odds >= self.threshold

    @property
    def decided(self) -> np.datetime64:
        """The end of the last window that was read."""
        return self.finding.last + np.timedelta64(round(self.model.seconds * 1e6), "us")

    def table(self) -> list[list[str]]:
        """Header and rows: the named sensors by evidence, then the next ones."""
        finding = self.finding
        rows = [["", "sensor", "belief", self.scores, "assumed", "estimated (95 %)", "in raw units (95 %)"]]
        for rank, k in enumerate(finding.ranked[: len(finding.anomalies) + _OTHERS], 1):
            cells = [name_of(self.problem, k), f"{finding.beliefs[k]:.3f}", f"{finding.scores[k]:+.2f}"]
            cells += [_assumed(self.problem, k), *(_interval(values) for values in self.size_of(k))]
            rows.append([f"{rank} {'named' if k in finding.anomalies else '-'}", *cells])
        return rows

    def lines(self) -> list[str]:
        """The verdict, how sure it is, the runner-up, and the measurement that speaks most for each sensor."""
        short = short_windows(self.finding)
        texts = [self._verdict(), *(f"CAUTION: {text}" for text in self.cautions), f"Note: {short}." if short else ""]
        texts += [self._sureness(), self._runner_up(), self._doubted(), *map(self._why, self.arguments())]
        options: dict[str, Any] = {"subsequent_indent": "    ", "break_on_hyphens": False}
        return [line for text in texts for line in textwrap.wrap(text, _WIDTH, **options)]

    def arguments(self) -> list[Argument]:
        """The strongest for each named sensor, in the order of the table."""
        rivals = {change.out: change for change in self.finding.rivals}
        return [strongest_argument(self.problem, self.finding, rivals[k]) for k in self.finding.ranked if k in rivals]

    def size_of(self, k: int) -> tuple[Array, Array]:
        """Estimated shift with its interval (value, low, high), and the same in raw units."""
        place = np.flatnonzero(self.finding.anomalies == k)
        if not place.size:
            return np.full(3, np.nan), np.full(3, np.nan)
        values = np.array([column[place[0]] for column in self.finding.shifts[:3]])
        return values, values * self.model.scale[self.model.names.index(name_of(self.problem, k))]

    def _verdict(self) -> str:
        finding, until = self.finding, self.clock.show(self.decided)
        if finding.entries[0].vector is not None:
            spent = f"{counted(finding.n_measurements, 'window')} read whole"
        else:
            spent = f"{counted(finding.n_measurements, 'measurement')} in {counted(finding.n_windows, 'window')}"
        end = {
            "stopped": f"stopped at {until} after {spent}",
            "data_ended": f"the data ended at {until} after {spent}, with no reason to stop before",
            "max_measurements": f"all measurements were used by {until}, {spent}",
            "unfinished": f"so far, at {until} after {spent}",
        }[finding.reason]
        skipped = finding.n_skipped
        passed = f"; {counted(skipped, 'window')} without the sensors asked for" if skipped else ""
        since = f"unchanged since measurement {finding.settled} ({self.clock.show(finding.settled_time)})"
        failed = (f"{name} ({kind})" for name, kind, _ in (*self.failed, *finding.culprits))
        names = ", ".join(dict.fromkeys([*failed, *finding.names]))
        what = f"Named {names}" if names else "Nothing is wrong" if self.sure else "No sensor is named"
        return f"{what}: {end}{passed}. This is {since}."

    def _sureness(self) -> str:
        """The probability of the set, or where the policy knows none, the exact log-odds against single swaps."""
        finding, rival, confidence = self.finding, self.finding.rival, self.finding.confidence
        other = self._changed(rival)
        behind = f"best rival {other}, {rival.log_odds:.2f} behind in log-odds"
        advice = f"To settle it, {_ADVICE[finding.reason]}."
        if confidence is None:
            if rival.log_odds <= 0:
                return f"CAUTION: by their exact likelihood the readings rather fit the set {other}. {advice}"
            if not self.reached:
                return f"CAUTION: {behind}; error level {self.alpha:g} asks for {self.threshold:.2f}. {advice}"
            return f"This policy knows no probability of the set; {behind} ({self.threshold:.2f} needed)."
        if confidence.how == "unsettled":
            return f"CAUTION: the confidence is {_HOW['unsettled']}; {behind}. {advice}"
        stated = f"{confident(confidence.probability)} ({_HOW[confidence.how]})"
        if finding.refuted or not finding.fits:
            by = "its own history refutes" if finding.refuted else "the readings refute"
            return f"Confidence: {stated} only if the model held, which {by}; {behind}."
        if self.reached:
            return f"Confidence: {stated}; {behind}."
        asked = f"error level {self.alpha:g} asks for {confident(1.0 - self.alpha)}"
        return f"CAUTION: the confidence is only {stated}; {asked}; {behind}. {advice}"

    def _changed(self, change: Change) -> str:
        out, into = name_of(self.problem, change.out), name_of(self.problem, change.into)
        if change.out == EMPTY:
            return f"with {into} added"
        return f"without {out}" if change.into == EMPTY else f"with {into} in place of {out}"

    def _runner_up(self) -> str:
        finding, problem = self.finding, self.problem
        name = name_of(problem, finding.runner_up)
        if not finding.names:
            return f"Closest to being named: {name}, with a belief of {finding.beliefs[finding.runner_up]:.3f}."
        weakest = finding.anomalies[finding.scores[finding.anomalies].argmin()]
        return (
            f"Runner-up: {name}, whose {self.scores} is {finding.margin:.2f} below that of "
            f"{name_of(problem, int(weakest))}, the weakest named sensor."
        )

    def _doubted(self) -> str:
        """Named sensors that are more likely normal: possible where the number of anomalies was given."""
        least, most = self.problem.sizes
        doubted = [k for k in self.finding.anomalies if self.finding.beliefs[k] < 0.5]
        if not doubted or least != most:
            return ""
        names = ", ".join(f"{name_of(self.problem, k)} ({self.finding.beliefs[k]:.3f})" for k in doubted)
        perhaps = "no sensor is wrong" if most == 1 else f"fewer than {most} sensors are wrong"
        return f"CAUTION: low belief in {names}: perhaps {perhaps} (--anomalies 0-{most})."

    def _why(self, argument: Argument) -> str:
        change, name = argument.change, name_of(self.problem, argument.change.out)
        instead = "without it" if change.into == EMPTY else f"with {name_of(self.problem, change.into)} instead"
        return (
            f"Why {name}: at {self.clock.show(argument.entry.time)} {_weights(self.problem, argument.weights)} read "
            f"{argument.reading:+.2f} (noise {argument.noise:.2f}); expected {argument.expected:+.2f} with {name} in "
            f"the set, {argument.expected_otherwise:+.2f} {instead}. Evidence {argument.evidence:+.2f}."
        )


def opening(problem: Problem, seconds: float, policy: str, first: np.datetime64, clock: Clock = PLAIN) -> str:
    least, most = problem.sizes
    which = f"{least} to {most}" if least != most else "one" if most == 1 else f"{most}"
    kinds = {_assumed(problem, k) for k in range(problem.size)}
    if len(kinds) == 1:
        size = f"{kinds.pop()} robust units"
    elif problem.unknown_shift:
        size = "unknown sizes" if problem.shift_spread.all() else "known or unknown sizes"
    else:
        size = f"{problem.shift.min():+g} to {problem.shift.max():+g} robust units"
    return (
        f"Which {which} of {problem.size} sensors {'is' if most == 1 else 'are'} shifted by {size}? "
        f"{policy}, windows of {clock.length(seconds)} from {clock.show(first)}{clock.said}"
    )


def _assumed(problem: Problem, k: int) -> str:
    """The shift as it was given, in words: known, or unknown with its likely size."""
    mean, spread = problem.shift[k], problem.shift_spread[k]
    if not spread:
        return f"{mean:+g}"
    return f"about {mean:+g}" if mean else f"about +/-{spread:g}"


def _interval(values: Array) -> str:
    """A value with its interval, or nothing.

    >>> _interval(np.array([1.0, 0.5, 1.5]))
    '+1 (+0.5 to +1.5)'
    """
    value, low, high = values
    return f"{value:+.3g} ({low:+.3g} to {high:+.3g})" if np.isfinite(values).all() else ""


def _weights(problem: Problem, c: Array) -> str:
    """The largest weights in words.

    >>> _weights(Problem([[1.0, 0.0], [0.0, 1.0]], shift=1.0, n_anomalies=1, budget=1.0), np.array([0.5, -0.25]))
    '0.50 x 0 - 0.25 x 1'
    """
    order = np.argsort(-np.abs(c), kind="stable")
    order = order[c[order] != 0.0]
    text = " ".join(f"{'-' if c[k] < 0 else '+'} {abs(c[k]):.2f} x {name_of(problem, int(k))}" for k in order[:_PARTS])
    more = len(order) - _PARTS
    return text.removeprefix("+ ") + (f" and {counted(more, 'smaller weight')}" if more > 0 else "")
