"""Which measurement speaks most for a set against another."""

from __future__ import annotations

from typing import NamedTuple

from eccaht.base.arrays import Array, inner
from eccaht.plants.explain.finding import Finding
from eccaht.streams.problem import Problem
from eccaht.streams.run.evidence import Change, WholeWindows
from eccaht.streams.run.recorders import LedgerEntry


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
