"""What a policy says at any moment must make sense: its next measurement, its decision and what it believes."""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array
from eccaht.checks.suite import require
from eccaht.streams import Policy, Problem


def require_measurement(c: Array, problem: Problem, when: str = "") -> None:
    require(c.shape == (problem.size,), f"ask gave shape {c.shape} {when}, but there are {problem.size} streams")
    require(np.isfinite(c).all(), f"ask gave a weight that is not finite {when}")
    norm = float(np.abs(c).sum())
    require(norm > 0.0, f"ask gave weights that are all zero {when}")
    within = problem.measurements
    require(within.allows(c), f"ask gave weights of |c|_1 = {norm:.6g} {when} that {within!r} does not allow")


def require_sound(policy: Policy) -> None:
    problem, decision = policy.problem, policy.decision
    require_measurement(policy.ask(), problem)
    least, most = problem.sizes
    number = str(least) if least == most else f"{least} to {most}"
    whole = decision.ndim == 1 and np.issubdtype(decision.dtype, np.integer)
    require(whole, f"decision must be a vector of whole numbers, not {decision!r}")
    require(least <= decision.size <= most, f"decision names {decision.size} streams, but {number} are anomalous")
    inside = decision.size == 0 or (decision[0] >= 0 and decision[-1] < problem.size)
    rising = inside and (np.diff(decision) > 0).all()
    require(rising, f"decision must be sorted, distinct and below {problem.size}: {decision}")
    require(policy.scores.shape == (problem.size,), f"scores have shape {policy.scores.shape}, not ({problem.size},)")
    require(not np.isnan(policy.scores).any() and not np.isnan(policy.lead), "scores or lead are NaN")
    beliefs, slack = policy.beliefs, 1e-6
    probable = beliefs.shape == (problem.size,) and (beliefs >= -slack).all() and (beliefs <= 1 + slack).all()
    require(probable, f"beliefs must be {problem.size} probabilities, not {beliefs}")
    require(isinstance(policy.should_stop(), bool | np.bool_), f"should_stop gave {policy.should_stop()!r}, not a bool")
    if (confidence := policy.confidence) is not None:
        p = confidence.probability
        require(-slack <= p <= 1 + slack, f"the confidence is {p}, which is no probability")
