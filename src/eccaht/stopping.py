"""When to stop, and what each rule promises.

A rule looks at the evidence that separates the announced set from its rivals and at the number of readings. Rules that
need the evidence against every other set (SPEC section 5: `posterior`, `glr`) belong here too, with a belief
that can give it; the pseudo-likelihood cannot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from eccaht.arrays import as_count, as_number
from eccaht.problem import Problem

StoppingOption = str | int | None


class StoppingRule(Protocol):
    """Decides from the smallest lead of a member over an outsider and the number of readings told."""

    def met(self, lead: float, n_told: int) -> bool:
        """Is it time to stop?"""


@dataclass(frozen=True)
class Gap:
    """Stop when min over members l(i) - max over others l(j) >= beta (paper, appendix on stopping).

    beta(t, alpha) = log(N / alpha) with N = n (K - n), one term of the union bound for each single swap; for
    simple Gaussian hypotheses Ville's inequality covers all t at once, so beta does not grow with t.

    Promise: if l(i) - l(j) were the log-likelihood ratio of the swap, a given single-swap rival of the true set would
    ever pass the threshold with probability at most alpha / N. The pseudo-likelihood is that ratio only where no
    other anomalous stream carries weight in the measurements. So the error of the announced set is NOT bounded by
    alpha: docs/stopping.md gives the errors counted, which are far larger on strongly correlated noise.
    """

    alpha: float
    rivals: int

    @property
    def beta(self) -> float:
        """The threshold."""
        return math.log(self.rivals / self.alpha)

    def met(self, lead: float, n_told: int) -> bool:  # noqa: ARG002
        """Has the lead passed the threshold?"""
        return lead >= self.beta


@dataclass(frozen=True)
class Horizon:
    """Stop after a fixed number of readings. Promises nothing about the error."""

    n_measurements: int

    def met(self, lead: float, n_told: int) -> bool:  # noqa: ARG002
        """Are all readings in?"""
        return n_told >= self.n_measurements


@dataclass(frozen=True)
class Never:
    """The caller decides."""

    def met(self, lead: float, n_told: int) -> bool:  # noqa: ARG002
        """Never."""
        return False


def check_alpha(alpha: float) -> float:
    """Return the error level, which lies strictly between 0 and 1."""
    level = as_number(alpha, "alpha")
    if not 0 < level < 1:
        raise ValueError(f"alpha is an error probability and must lie strictly between 0 and 1, not {alpha!r}")
    return level


def stopping_rule(
    option: StoppingOption, alpha: float, problem: Problem, *, own: StoppingRule | None = None, evidence: bool = True
) -> StoppingRule:
    """Return the rule that `stopping=...` names: "gap", "own", a number of measurements, or None for never.

    own: the rule of the algorithm's own source; evidence: whether its scores are log-likelihood ratios.

    >>> problem = Problem([[1.0, 0.0], [0.0, 1.0]], shift=1.0, n_anomalies=1, budget=1.0)
    >>> round(stopping_rule("gap", 0.05, problem).beta, 3)
    2.996
    """
    known = [*(["'gap'"] if evidence else []), *(["'own'"] if own else []), "a number of measurements", "None"]
    choices = f"use {', '.join(known[:-1])} or None"
    if option is None:
        return Never()
    if option == "gap" and evidence:
        return Gap(alpha, rivals=problem.n_anomalies * (problem.size - problem.n_anomalies))
    if option == "gap":
        raise ValueError(f"stopping='gap' needs scores that are log-likelihood ratios, not means: {choices}")
    if option == "own" and own:
        return own
    if option == "own":
        raise ValueError(f"this policy has no stopping rule of its own: {choices}")
    if option in ("posterior", "glr"):
        raise ValueError(f"stopping={option!r} needs the exact likelihood of whole sets: {choices}")
    if isinstance(option, str):
        raise ValueError(f"unknown stopping rule {option!r}: {choices}")
    return Horizon(as_count(option, "stopping", least=1))
