"""A finding in words, as a table and as a document."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eccaht.arrays import Array
from eccaht.data.durations import show_duration, show_time
from eccaht.identification.finding import Finding, confirmation, name_of, swap_evidence
from eccaht.identification.search import Entry
from eccaht.problem import Problem

if TYPE_CHECKING:
    from eccaht.data import Model

_OTHERS = 4  # sensors shown below the named ones
_PARTS = 3  # weights that a line names
_WIDTH = 110
_ADVICE = {
    "stopped": "measure on (--stopping confirmed)",
    "data_ended": "give more data, or take more from each window (--per-window)",
    "max_measurements": "allow more measurements",
}


@dataclass(frozen=True)
class Account:
    """A finding with what is needed to tell it: `scores` is what the policy's scores are called."""

    model: Model
    problem: Problem
    finding: Finding
    scores: str
    alpha: float

    @property
    def threshold(self) -> float:
        """The evidence against each rival set that the error level asks for."""
        return confirmation(self.problem, self.finding.anomalies, self.alpha)

    def table(self) -> list[list[str]]:
        """Header and rows: the named sensors by evidence, then the next ones."""
        finding = self.finding
        rows = [["", "sensor", "belief", self.scores, "assumed", "estimated", "in raw units"]]
        for rank, k in enumerate(self._ranked()[: len(finding.anomalies) + _OTHERS], 1):
            size, error, raw = self._size(k)
            named = bool(np.isin(k, finding.anomalies))
            estimated = f"{size:+.2f} +/- {error:.2f}" if math.isfinite(size) else ""
            cells = [name_of(self.problem, k), f"{finding.beliefs[k]:.3f}", f"{finding.scores[k]:+.2f}"]
            cells += [f"{self.problem.shift[k]:+g}", estimated, f"{raw:+.4g}" if math.isfinite(raw) else ""]
            rows.append([f"{rank} {'named' if named else '-'}", *cells])
        return rows

    def lines(self) -> list[str]:
        """The verdict, the runner-up, how settled it is, and the measurement that speaks most for each sensor."""
        named = [k for k in self._ranked() if k in self.finding.anomalies]
        texts = [self._verdict(), self._runner_up(), self._settled(), self._doubted(), *(self._why(k) for k in named)]
        return [line for text in texts for line in textwrap.wrap(text, _WIDTH, subsequent_indent="    ")]

    def document(self) -> dict[str, Any]:
        """The same for programs."""
        finding = self.finding
        swap, decided = finding.swap, finding.last + _length(self.model)
        return {
            "named": [self._sensor(k) for k in self._ranked() if k in finding.anomalies],
            "runner_up": self._sensor(finding.runner_up) | {"margin": finding.margin},
            "best_rival": {
                "without": name_of(self.problem, swap.out),
                "with": name_of(self.problem, swap.into),
                "log_likelihood_ratio": swap.gain,
                "threshold": self.threshold,
                "settled": swap.gain >= self.threshold,
            },
            "reason": finding.reason,
            "measurements": finding.n_measurements,
            "windows": finding.n_windows,
            "windows_skipped": finding.n_skipped,
            "start": show_time(finding.first),
            "decided": show_time(decided),
            "same_set_since": {"measurement": finding.settled, "window": show_time(finding.settled_time)},
            "why": [self._why_entry(k) for k in finding.anomalies],
            "sensors": [self._sensor(k) for k in self._ranked()],
        }

    def _ranked(self) -> list[int]:
        """The named sensors by score, then the others."""
        order = np.argsort(-self.finding.scores, kind="stable")
        inside = np.isin(order, self.finding.anomalies)
        return [*order[inside].tolist(), *order[~inside].tolist()]

    def _size(self, k: int) -> tuple[float, float, float]:
        """Estimated size with its error, and in raw units."""
        place = np.flatnonzero(self.finding.anomalies == k)
        if not place.size:
            return math.nan, math.nan, math.nan
        size, error = float(self.finding.sizes[place[0]]), float(self.finding.size_errors[place[0]])
        scale = float(self.model.scale[self.model.names.index(name_of(self.problem, k))])
        return size, error, size * scale

    def _sensor(self, k: int) -> dict[str, Any]:
        size, error, raw = self._size(k)
        finding = self.finding
        told = {"sensor": name_of(self.problem, k), "named": bool(np.isin(k, finding.anomalies))}
        told |= {"belief": finding.beliefs[k], "score": finding.scores[k], "shift": self.problem.shift[k]}
        told |= {"size": size, "size_error": error, "size_raw": raw}
        return {key: _plain(value) for key, value in told.items()}

    def _verdict(self) -> str:
        finding = self.finding
        spent = f"{_count(finding.n_measurements, 'measurement')} in {_count(finding.n_windows, 'window')}"
        until = show_time(finding.last + _length(self.model))
        ends = {
            "stopped": f"stopped at {until} after {spent}",
            "data_ended": f"the data ended at {until} after {spent}, with no reason to stop before",
            "max_measurements": f"all measurements were used by {until}, {spent}",
        }
        skipped = finding.n_skipped
        passed = f"; {_count(skipped, 'window')} without the sensors asked for" if skipped else ""
        since = f"unchanged since measurement {finding.settled} ({show_time(finding.settled_time)})"
        return f"Named {', '.join(finding.names)}: {ends[finding.reason]}{passed}. The set is {since}."

    def _runner_up(self) -> str:
        finding = self.finding
        weakest = finding.anomalies[finding.scores[finding.anomalies].argmin()]
        return (
            f"Runner-up: {name_of(self.problem, finding.runner_up)}, whose {self.scores} is {finding.margin:.2f} below "
            f"that of {name_of(self.problem, int(weakest))}, the weakest named sensor."
        )

    def _settled(self) -> str:
        out, into = name_of(self.problem, self.finding.swap.out), name_of(self.problem, self.finding.swap.into)
        gain, needed = self.finding.swap.gain, self.threshold
        if gain <= 0:
            return (
                f"CAUTION: by the exact likelihood the readings fit {into} better than {out}, by {-gain:.2f}. "
                f"The set is not settled: {_ADVICE[self.finding.reason]}, or try another --policy."
            )
        against = f"{gain:.2f} against the best rival set, with {into} in place of {out}"
        if gain < needed:
            return (
                f"CAUTION: the exact likelihood of the readings speaks for the set by only {against}; error level "
                f"{self.alpha:g} asks for {needed:.2f}. To settle it, {_ADVICE[self.finding.reason]}."
            )
        return f"The exact likelihood of the readings speaks for the set by {against} ({needed:.2f} needed)."

    def _doubted(self) -> str:
        """Named sensors that are more likely normal: the number of anomalies was given, not found."""
        doubted = [k for k in self.finding.anomalies if self.finding.beliefs[k] < 0.5]
        if not doubted:
            return ""
        names = ", ".join(f"{name_of(self.problem, k)} ({self.finding.beliefs[k]:.3f})" for k in doubted)
        n = len(self.finding.anomalies)
        perhaps = "no sensor is wrong" if n == 1 else f"fewer than {n} sensors are wrong"
        return f"CAUTION: low belief in {names}: perhaps {perhaps}."

    def _telling(self, k: int) -> tuple[int, Entry, float]:
        """The sensor that would replace k, the measurement that speaks most against it, and how much."""
        finding = self.finding
        into = int(finding.swaps[np.flatnonzero(finding.anomalies == k)[0]].argmin())
        evidence = swap_evidence(self.problem, finding.entries, finding.anomalies, k, into)
        best = int(evidence.argmax())
        return into, finding.entries[best], float(evidence[best])

    def _expected(self, k: int, into: int, c: Array) -> tuple[float, float]:
        members = self.finding.anomalies
        return self.problem.expected(c, members), self.problem.expected(c, [into, *members[members != k].tolist()])

    def _why(self, k: int) -> str:
        into, entry, evidence = self._telling(k)
        name, other = name_of(self.problem, k), name_of(self.problem, into)
        expected, swapped = self._expected(k, into, entry.weights)
        return (
            f"Why {name}: at {show_time(entry.time)} {_weights(self.problem, entry.weights)} read {entry.reading:+.2f} "
            f"(noise {entry.noise:.2f}); expected {expected:+.2f} with {name} in the set, {swapped:+.2f} with {other} "
            f"instead. Evidence {evidence:+.2f}."
        )

    def _why_entry(self, k: int) -> dict[str, Any]:
        into, entry, evidence = self._telling(k)
        expected, swapped = self._expected(k, into, entry.weights)
        c = entry.weights
        return {
            "sensor": name_of(self.problem, k),
            "instead": name_of(self.problem, into),
            "measurement": entry.number,
            "window": show_time(entry.time),
            "weights": {name_of(self.problem, i): float(c[i]) for i in np.flatnonzero(c).tolist()},
            "reading": entry.reading,
            "noise": entry.noise,
            "expected": expected,
            "expected_if_swapped": swapped,
            "evidence": evidence,
        }


def opening(problem: Problem, seconds: float, policy: str, first: np.datetime64) -> str:
    """What is asked, in one line."""
    low, high = float(problem.shift.min()), float(problem.shift.max())
    size = f"{low:+g}" if low == high else f"{low:+g} to {high:+g}"
    which = "one" if problem.known_number == 1 else f"{problem.known_number}"
    verb = "is" if problem.known_number == 1 else "are"
    return (
        f"Which {which} of {problem.size} sensors {verb} shifted by {size} robust units? "
        f"{policy}, windows of {show_duration(seconds)} from {show_time(first)}"
    )


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned plain lines."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


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


def _length(model: Model) -> np.timedelta64:
    return np.timedelta64(round(model.seconds * 1e6), "us")


def _plain(value: Any) -> Any:
    """For JSON: no NaN, no numpy."""
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
