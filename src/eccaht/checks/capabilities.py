"""What a policy declares in `can` it does, and what it declares that it cannot do it refuses in one line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from eccaht.base.arrays import Array
from eccaht.checks.sound import require_measurement, require_sound
from eccaht.checks.suite import CheckFailure, require, require_close, require_equal, require_near, require_refused
from eccaht.streams import (
    AtMost,
    Budget,
    BudgetWarning,
    Constraint,
    Design,
    NonNegative,
    Policy,
    Problem,
    Readout,
    Simulator,
    UnknownShift,
)
from eccaht.streams.policies.catalogue import find_entry

if TYPE_CHECKING:
    from eccaht.checks.policy import Build

_STEPS = 4
_MOST_SWAPS = 5000  # sets to compare the decision with


def whole_vectors(build: Build, problem: Problem) -> None:
    """A reading of all streams counts once, and for what the readings of single streams at one moment say."""
    policy = build(problem, 7)
    x = Simulator(problem, seed=7).sample(1)[0]
    if not policy.can.whole_vectors:
        _refused(policy, partial(policy.observe, x), "observe", "whole_vectors")
        return
    given = x.copy()
    policy.observe(x)
    require_equal(x, given, "observe changed the vector that it was handed")
    require(policy.n_told == 1, f"n_told is {policy.n_told} after one reading of all streams")
    require_sound(policy)
    if policy.can.shared_noise:
        single = build(problem, 7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)
            single.tell_many(np.eye(problem.size), x)
        message = "observe does not say what readings of all single streams at one moment do"
        require_near(_says(policy), _says(single), message, 1e-6)
    partly = x.copy()
    partly[0] = np.nan
    policy.observe(partly)  # a stream that was not read
    require_sound(policy)
    for what, wrong in (
        ("a vector without a number", np.full(problem.size, np.nan)),
        ("a vector of another length", x[1:]),
        ("an infinite reading", np.full(problem.size, np.inf)),
    ):
        require_refused(partial(policy.observe, wrong), f"observe must refuse {what} with a ValueError")
        require(policy.n_told == 2, f"{what} was refused, but counted")


def open_number(build: Build, problem: Problem) -> None:
    """It searches where the number of anomalies is only known as a range, or refuses such a problem."""
    few = min(2, problem.sizes[1])  # of few sets, for those that go through them all
    _other_problem(build, problem, problem.replace(n_anomalies=(0, few)), "open_number")


def unknown_shift(build: Build, problem: Problem) -> None:
    """It searches where the size of the shifts is not known and estimates it, or refuses such a problem."""
    sizes = np.hypot(problem.shift, problem.shift_spread)
    other = problem if problem.unknown_shift else problem.replace(shift=UnknownShift(float(sizes.mean())))
    policy = _other_problem(build, problem, other, "unknown_shift")
    if policy is not None and policy.shifts is not None:
        mean, deviation = policy.shifts
        whole = mean.shape == deviation.shape == policy.decision.shape
        require(whole and (deviation >= 0.0).all(), "shifts must be a mean and a deviation for each decided stream")


def posterior(build: Build, problem: Problem) -> None:
    """It knows the probability of its decision, and those of the streams add up to the number of anomalies."""
    policy = build(problem, 8)
    if not policy.can.posterior:
        return
    _searched(policy)
    require(policy.confidence is not None, "confidence must be there, as is declared by posterior")
    total, (least, most) = float(policy.beliefs.sum()), problem.sizes
    inside = least - 1e-6 <= total <= most + 1e-6
    require(inside, f"beliefs add up to {total:.6g}, but {least} to {most} streams are anomalous")


def exact_lead(build: Build, problem: Problem) -> None:
    """Its lead is the log-likelihood ratio of the decision to the best set that differs in one stream."""
    policy, (least, most) = build(problem, 9), problem.sizes
    plain = least == most and not problem.unknown_shift and most * (problem.size - most) <= _MOST_SWAPS
    ridge = policy.recipe is not None and policy.recipe.options.get("regularize")
    if not policy.can.exact_lead or not plain or ridge:  # the likelihoods of other sets are worked out plainly here
        return
    world, readings = Simulator(problem, seed=9), []
    for _ in range(_STEPS):
        c = policy.ask()
        readings.append((c, world.measure(c)))
        policy.tell(*readings[-1])
    held = policy.decision
    outside = np.setdiff1d(np.arange(problem.size), held)
    swaps = [np.r_[np.delete(held, place), k] for place, k in product(range(held.size), outside)]
    best = max(_log_likelihood(problem, readings, swap) for swap in swaps)
    lead = _log_likelihood(problem, readings, held) - best
    require_close(policy.lead, lead, "lead is not the exact log-likelihood ratio that it is declared to be", atol=1e-6)


def inflation(build: Build, problem: Problem) -> None:
    """Two readings of twice the noise variance say what one of the usual one does."""
    policy, twice = build(problem, 10), build(problem, 10)
    c = policy.ask().copy()
    y = problem.expected(c) + 0.7 * float(np.sqrt(problem.noise_variance(c)))
    if not policy.can.inflation:
        _refused(policy, partial(policy.tell, c, y, inflation=2.0), "tell(..., inflation=2)", "inflation")
        return
    policy.tell(c, y, inflation=1.0)
    for _ in range(2):
        twice.tell(c, y, inflation=2.0)
    message = "two readings of inflation 2 do not say what one of inflation 1 does"
    require_near(_says(twice), _says(policy), message, 1e-6)
    for wrong in (0.0, -1.0, np.nan, np.inf, "2"):
        act = partial(policy.tell, c, y, inflation=wrong)  # type: ignore[arg-type]
        require_refused(act, f"tell must refuse an inflation of {wrong!r} with a ValueError")
        require(policy.n_told == 1, f"a reading with an inflation of {wrong!r} was refused, but counted")


def constraints(build: Build, problem: Problem) -> None:
    """It keeps to other constraints than the L1 budget, or refuses them before the search."""
    policy, within = build(problem, 11), problem.measurements
    if type(within) is not Budget:
        return  # other checks look at the constraint that it has
    declared = None if policy.recipe is None else find_entry(policy.recipe.name).constraints
    limit = within.limit
    others: list[Constraint] = [_Plain(limit), NonNegative() & AtMost(3) & Budget(limit), Readout(limit, 0.5)]
    for other in others:
        limited = problem.replace(measurements=other, readout_noise=other.noise, n_anomalies=1)
        if declared is False:
            message = f"{other!r} must be refused, as is declared by constraints=False"
            require_refused(partial(build, limited, 11), message)
            continue
        try:
            _keep_to(build(limited, 11))
        except ValueError as error:
            require(not declared, f"{other!r} is refused, but constraints=True is declared: {error}")


def _keep_to(policy: Policy) -> None:
    world = Simulator(policy.problem, seed=11)
    for step in range(1, 4):
        c = policy.ask()
        require_measurement(c, policy.problem, f"at step {step}")
        policy.tell(c, world.measure(c))


class _Plain(Constraint):
    """A constraint of a user's own: |c|_2 <= limit."""

    def __init__(self, limit: float) -> None:
        self._limit = limit

    def allows(self, c: Array) -> bool:
        return bool(np.linalg.norm(c) <= self._limit * (1.0 + 1e-9))

    def scaled(self, direction: Array) -> Array:
        return direction * (self._limit / float(np.linalg.norm(direction)))

    def contrast(self, covariance: Any, indices: Any, values: Array) -> Design:
        return Design(covariance, indices, values, self.scaled(covariance.solve_sparse(indices, values)))

    def __repr__(self) -> str:
        return f"a constraint of a user's own, |c|_2 <= {self._limit:g},"


def _other_problem(build: Build, problem: Problem, other: Problem, capability: str) -> Policy | None:
    """Search another problem if it is declared that it is taken; else it must be refused."""
    if not getattr(build(problem, 0).can, capability):
        message = f"{other.n_anomalies} anomalies" if capability == "open_number" else "shifts of unknown size"
        require_refused(partial(build, other, 0), f"a problem of {message} must be refused, as is declared")
        return None
    try:
        policy = build(other, 0)
    except ValueError as error:
        raise CheckFailure(f"it declares {capability}, but refuses such a problem: {error}") from error
    return _searched(policy)


def _searched(policy: Policy) -> Policy:
    """Some steps of a search, sound in each."""
    world = Simulator(policy.problem, seed=8)
    for _ in range(_STEPS):
        c = policy.ask()
        policy.tell(c, world.measure(c))
        require_sound(policy)
    return policy


def _says(policy: Policy) -> Array:
    """What readings say: by the likelihood of sets where there is one, for a random search may score otherwise."""
    if policy.likelihood is None:
        return policy.scores
    most, size = policy.problem.sizes[1], policy.problem.size
    first = np.arange(most)[None] + np.arange(max(size - most, 1))[:, None]
    values = np.asarray(policy.likelihood.log_likelihood(first))
    return np.asarray(values - values[0])  # of neighbouring streams, beside that of the first ones


def _refused(policy: Policy, act: Callable[[], object], what: str, capability: str) -> None:
    before = policy.scores.copy()
    require_refused(act, f"{what} must be refused, as is declared by {capability}=False")
    require(policy.n_told == 0, f"{what} was refused, but counted: n_told is {policy.n_told}")
    require_equal(policy.scores, before, f"{what} was refused, but changed the scores")


def _log_likelihood(problem: Problem, readings: list[tuple[Array, float]], streams: Any) -> float:
    """Of the readings if these streams are anomalous, but for what all sets have in common."""
    gaps = [(y - problem.expected(c, streams)) / np.sqrt(problem.noise_variance(c)) for c, y in readings]
    return -0.5 * float(np.square(gaps).sum())
