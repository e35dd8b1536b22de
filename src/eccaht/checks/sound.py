"""What a policy says at any moment must make sense: its next measurement, its decision and what it believes."""

from __future__ import annotations

import numpy as np

from eccaht.base.arrays import Array
from eccaht.checks.suite import require
from eccaht.streams import Policy, Problem

_SLACK = 1e-6  # of probabilities


def require_measurement(c: Array, problem: Problem) -> None:
    good = c.shape == (problem.size,) and np.isfinite(c).all() and c.any()
    require(good, f"ask must give {problem.size} finite weights, not all 0, not {c}")
    norm, within = float(np.abs(c).sum()), problem.measurements
    require(within.allows(np.array(c)), f"ask gave weights of |c|_1 = {norm:.6g} that {within!r} does not allow")


def require_sound(policy: Policy) -> None:
    K, (least, most), decision = policy.problem.size, policy.problem.sizes, policy.decision
    require_measurement(policy.ask(), policy.problem)
    whole = decision.ndim == 1 and np.issubdtype(decision.dtype, np.integer)
    require(whole, f"decision must be a vector of whole numbers, not {decision!r}")
    right = least <= decision.size <= most
    require(right, f"decision names {decision.size} streams, but {least} to {most} are anomalous")
    rising = np.array_equal(decision, np.unique(decision)) and np.isin(decision, np.arange(K)).all()
    require(rising, f"decision must be sorted, distinct and below {K}: {decision}")
    scored = policy.scores.shape == (K,) and not np.isnan(policy.scores).any() and not np.isnan(policy.lead)
    require(scored, f"scores must be {K} numbers and lead one, none of them NaN")
    beliefs = policy.beliefs
    probable = beliefs.shape == (K,) and (beliefs >= -_SLACK).all() and (beliefs <= 1 + _SLACK).all()
    require(probable, f"beliefs must be {K} probabilities, not {beliefs}")
    require(isinstance(policy.should_stop(), bool | np.bool_), f"should_stop gave {policy.should_stop()!r}, not a bool")
    if (confidence := policy.confidence) is not None:
        p = confidence.probability
        require(-_SLACK <= p <= 1 + _SLACK, f"the confidence is {p}, which is no probability")
