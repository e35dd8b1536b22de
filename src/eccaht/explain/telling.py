"""A finding in words, as a table and as a document."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eccaht.arrays import Array
from eccaht.data.clock import PLAIN, Clock
from eccaht.explain.finding import Finding
from eccaht.explain.plain import culprit_caution, misfit_caution, short_windows
from eccaht.explain.reasons import Argument, strongest_argument
from eccaht.model.standstill import Culprit
from eccaht.problem import Problem
from eccaht.run.record import EMPTY, Change, name_of
from eccaht.run.replay import ALIKE

if TYPE_CHECKING:
    from eccaht.model.model import Model

_OTHERS = 4  # sensors shown below the named ones
_PARTS = 3  # weights that a line names
_WIDTH = 110
_ADVICE = {
    "stopped": "measure on (another --stopping)",
    "data_ended": "give more data, or take more from each window (--per-window, --vectors)",
    "max_measurements": "allow more measurements",
}
_HOW = {
    "exact": "exact: every possible set was weighed",
    "estimated": "estimated from a population of sets",
    "unsettled": "not known: independent samples of sets, or searches, disagree",
}


@dataclass(frozen=True)
class Account:
    """A finding with what is needed to tell it: `scores` is what the policy's scores are called, `clock` times."""

    model: Model
    problem: Problem
    finding: Finding
    scores: str
    alpha: float
    apart: tuple[Culprit, ...] = ()  # left out of the search because they need none
    clock: Clock = PLAIN

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Sensors that need no search, known before it or found on the way."""
        return (*self.apart, *self.finding.culprits)

    @property
    def cautions(self) -> list[str]:
        """What to keep in mind beside the numbers."""
        apart = [culprit_caution(culprit, self.clock) for culprit in self.apart]
        misfit = [] if self.finding.fits else [misfit_caution(self.finding.fit)]
        return [*apart, *self.finding.cautions, *misfit]

    @property
    def threshold(self) -> float:
        """The log-odds against each single swap that the error level asks for if no probability is known."""
        n = len(self.finding.anomalies)
        return math.log(n * (self.problem.size - n) / self.alpha)

    @property
    def settled(self) -> bool:
        """Is the set as sure as the error level asks for, by a model that neither history nor readings refute?"""
        return self.reached and self.finding.fits and not self.finding.refuted

    @property
    def reached(self) -> bool:
        """Do the readings reach the error level, if the model holds? Without a probability, as far as swaps go."""
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
        for rank, k in enumerate(self.ranked()[: len(finding.anomalies) + _OTHERS], 1):
            named = bool(np.isin(k, finding.anomalies))
            cells = [name_of(self.problem, k), f"{finding.beliefs[k]:.3f}", f"{finding.scores[k]:+.2f}"]
            cells += [_assumed(self.problem, k), *(_interval(values) for values in self.size_of(k))]
            rows.append([f"{rank} {'named' if named else '-'}", *cells])
        return rows

    def lines(self) -> list[str]:
        """The verdict, how sure it is, the runner-up, and the measurement that speaks most for each sensor."""
        texts = [self._verdict(), *(f"CAUTION: {text}" for text in self.cautions), self._short(), self._sureness()]
        texts += [self._runner_up(), self._doubted()]
        texts += [self._why(argument) for argument in self.arguments()]
        return [line for text in texts for line in _wrapped(text)]

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        from eccaht.explain.document import document

        return document(self)

    def _name(self, k: int) -> str | None:
        return None if k == EMPTY else name_of(self.problem, k)

    def arguments(self) -> list[Argument]:
        """The strongest for each named sensor, in the order of the table."""
        rivals = {change.out: change for change in self.finding.rivals}
        named = [k for k in self.ranked() if k in rivals]
        return [strongest_argument(self.problem, self.finding, rivals[k]) for k in named]

    def ranked(self) -> list[int]:
        """The named sensors by score, then the others."""
        order = np.argsort(-self.finding.scores, kind="stable")
        inside = np.isin(order, self.finding.anomalies)
        return [*order[inside].tolist(), *order[~inside].tolist()]

    def size_of(self, k: int) -> tuple[Array, Array]:
        """Estimated shift with its interval (value, low, high), and the same in raw units."""
        place = np.flatnonzero(self.finding.anomalies == k)
        if not place.size:
            return np.full(3, np.nan), np.full(3, np.nan)
        values = np.array([column[place[0]] for column in self.finding.shifts[:3]])
        return values, values * self.model.scale[self.model.names.index(name_of(self.problem, k))]

    def _verdict(self) -> str:
        finding = self.finding
        if finding.entries[0].vector is not None:
            spent = f"{_count(finding.n_measurements, 'window')} read whole"
        else:
            spent = f"{_count(finding.n_measurements, 'measurement')} in {_count(finding.n_windows, 'window')}"
        until = self.clock.show(self.decided)
        ends = {
            "stopped": f"stopped at {until} after {spent}",
            "data_ended": f"the data ended at {until} after {spent}, with no reason to stop before",
            "max_measurements": f"all measurements were used by {until}, {spent}",
        }
        skipped = finding.n_skipped
        passed = f"; {_count(skipped, 'window')} without the sensors asked for" if skipped else ""
        since = f"unchanged since measurement {finding.settled} ({self.clock.show(finding.settled_time)})"
        nothing = "Nothing is wrong" if self.settled else "No sensor is named"
        names = [*(f"{culprit.sensor} ({culprit.kind})" for culprit in self.culprits), *finding.names]
        what = f"Named {', '.join(dict.fromkeys(names))}" if names else nothing
        return f"{what}: {ends[finding.reason]}{passed}. This is {since}."

    def _sureness(self) -> str:
        """The probability of the set, or where the policy knows none, the exact log-odds against single swaps."""
        finding, rival = self.finding, self.finding.rival
        behind = f"best rival {self._changed(rival)}, {rival.log_odds:.2f} behind in log-odds"
        advice = f"To settle it, {_ADVICE[finding.reason]}."
        if finding.confidence is not None:
            told = f"{_percent(finding.confidence.probability)} ({_HOW[finding.confidence.how]})"
            if finding.confidence.how == "unsettled":
                return f"CAUTION: the confidence is {_HOW['unsettled']}; {behind}. {advice}"
            if self.finding.refuted:
                return f"Confidence: {told} only if the model held, which its own history refutes; {behind}."
            if not finding.fits:
                return f"Confidence: {told} only if the model held, which the readings refute; {behind}."
            if self.reached:
                return f"Confidence: {told}; {behind}."
            asked = f"error level {self.alpha:g} asks for {_percent(1.0 - self.alpha)}"
            return f"CAUTION: the confidence is only {told}; {asked}; {behind}. {advice}"
        if rival.log_odds <= 0:
            return (
                f"CAUTION: by their exact likelihood the readings rather fit the set {self._changed(rival)}. {advice}"
            )
        if not self.reached:
            return f"CAUTION: {behind}; error level {self.alpha:g} asks for {self.threshold:.2f}. {advice}"
        return f"This policy knows no probability of the set; {behind} ({self.threshold:.2f} needed)."

    def _changed(self, change: Change) -> str:
        if change.out == EMPTY:
            return f"with {self._name(change.into)} added"
        if change.into == EMPTY:
            return f"without {self._name(change.out)}"
        return f"with {self._name(change.into)} in place of {self._name(change.out)}"

    def _short(self) -> str:
        told = short_windows(self.finding.entries, self.finding.n_short, ALIKE)
        return f"Note: {told}." if told else ""

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
        """Named sensors that are more likely normal, where their number was given and not found."""
        least, most = self.problem.sizes
        doubted = [k for k in self.finding.anomalies if self.finding.beliefs[k] < 0.5]
        if not doubted or least != most:
            return ""
        names = ", ".join(f"{name_of(self.problem, k)} ({self.finding.beliefs[k]:.3f})" for k in doubted)
        perhaps = "no sensor is wrong" if most == 1 else f"fewer than {most} sensors are wrong"
        return f"CAUTION: low belief in {names}: perhaps {perhaps} (--anomalies 0-{most})."

    def _why(self, argument: Argument) -> str:
        change, name = argument.change, self._name(argument.change.out)
        instead = "without it" if change.into == EMPTY else f"with {self._name(change.into)} instead"
        return (
            f"Why {name}: at {self.clock.show(argument.entry.time)} {_weights(self.problem, argument.weights)} read "
            f"{argument.reading:+.2f} (noise {argument.noise:.2f}); expected {argument.expected:+.2f} with {name} in "
            f"the set, {argument.expected_otherwise:+.2f} {instead}. Evidence {argument.evidence:+.2f}."
        )


def opening(problem: Problem, seconds: float, policy: str, first: np.datetime64, clock: Clock = PLAIN) -> str:
    """What is asked, in one line."""
    least, most = problem.sizes
    which = f"{least} to {most}" if least != most else "one" if most == 1 else f"{most}"
    kinds = sorted({_assumed(problem, k) for k in range(problem.size)}, key=lambda text: (len(text), text))
    low, high = float(problem.shift.min()), float(problem.shift.max())
    if len(kinds) == 1:
        size = f"{kinds[0]} robust units"
    elif problem.unknown_shift:
        size = "known or unknown sizes" if not problem.shift_spread.all() else "unknown sizes"
    else:
        size = f"{low:+g} to {high:+g} robust units"
    return (
        f"Which {which} of {problem.size} sensors {'is' if most == 1 else 'are'} shifted by {size}? "
        f"{policy}, windows of {clock.length(seconds)} from {clock.show(first)}{clock.said}"
    )


def _assumed(problem: Problem, k: int) -> str:
    """The shift as it was given: known, or unknown and about so large."""
    mean, spread = problem.shift[k], problem.shift_spread[k]
    if not spread:
        return f"{mean:+g}"
    return f"about {mean:+g}" if mean else f"about +/-{spread:g}"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _interval(values: Array) -> str:
    """A value with its interval, or nothing.

    >>> _interval(np.array([1.0, 0.5, 1.5]))
    '+1 (+0.5 to +1.5)'
    """
    value, low, high = values
    return f"{value:+.3g} ({low:+.3g} to {high:+.3g})" if np.isfinite(values).all() else ""


def _percent(probability: float) -> str:
    """Never rounded to certainty.

    >>> _percent(0.9731), _percent(0.99999), _percent(0.95)
    ('97.3 %', 'above 99.9 %', '95 %')
    """
    if probability > 0.9990001:
        return "above 99.9 %"
    return "below 0.1 %" if probability < 0.001 else f"{math.floor(1000.0 * probability + 1e-9) / 10.0:g} %"


def _weights(problem: Problem, c: Array) -> str:
    """The largest weights in words.

    >>> _weights(Problem([[1.0, 0.0], [0.0, 1.0]], shift=1.0, n_anomalies=1, budget=1.0), np.array([0.5, -0.25]))
    '0.50 x 0 - 0.25 x 1'
    """
    order = np.argsort(-np.abs(c), kind="stable")
    order = order[c[order] != 0.0]
    text = " ".join(f"{'-' if c[k] < 0 else '+'} {abs(c[k]):.2f} x {name_of(problem, int(k))}" for k in order[:_PARTS])
    more = len(order) - _PARTS
    text = text.removeprefix("+ ")
    return f"{text} and {_count(more, 'smaller weight')}" if more > 0 else text


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
