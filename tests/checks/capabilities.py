"""What a policy declares in `can` it does, and what it declares that it cannot do it refuses in one line."""

import warnings
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from eccaht.base.arrays import Array
from eccaht.checks.policy import CHECKS, Build, prepared, require_measurement, require_sound
from eccaht.checks.suite import (
    by_name,
    require,
    require_close,
    require_equal,
    require_near,
    require_refused,
    run_all,
)
from eccaht.streams import (
    AtMost,
    Budget,
    BudgetWarning,
    NonNegative,
    Policy,
    Problem,
    Readout,
    Simulator,
    UnknownShift,
)
from eccaht.streams.policies.catalogue import find_entry

_Give = Callable[[Policy], None]  # a reading
_ROUNDS, _BATCH = 4, 3
_MOST_SWAPS = 5000  # sets to compare the decision with


def batches(build: Build, problem: Problem) -> None:
    """A batch begins with what ask gives, is pending until it is read, and is the same if asked for one by one."""
    together, single, world = build(problem, 1), build(problem, 1), Simulator(problem, seed=1)
    if _takes_no_batches(together):
        return
    for number in range(_ROUNDS):
        first = together.ask().copy()
        C = together.ask(batch=_BATCH)
        require(C.shape == (_BATCH, problem.size), f"ask(batch={_BATCH}) gave shape {C.shape}")
        require(not C.flags.writeable, "what ask(batch=...) returns can be written to: return a read-only array")
        require_equal(C[0], first, "the first measurement of a batch is not the one that ask gives")
        for c in C:
            require_measurement(c, problem)
            require_equal(single.ask(batch=1)[0], c, "asked for one by one, a measurement of a batch is another")
        require_equal(together.pending, C, "pending does not hold the batch")
        require(together.n_readings == number * _BATCH, "asking for a batch counts as readings")
        for c in C:
            y = world.measure(c)
            together.tell(c, y)
            single.tell(c, y)
        require(len(together.pending) == 0, "a batch whose readings were given is still pending")
    require_equal(single.scores, together.scores, "asking one by one leads to other scores")


def late_readings(build: Build, problem: Problem) -> None:
    """Readings come in any order, which makes no difference, and some never: those are forgotten."""
    forth, back, world = build(problem, 2), build(problem, 2), Simulator(problem, seed=2)
    if _takes_no_batches(forth):
        return
    lost, *late = C = forth.ask(batch=_BATCH)
    back.ask(batch=_BATCH)
    readings = [(c, world.measure(c)) for c in late]
    for there, here in zip(readings, readings[::-1], strict=True):
        forth.tell(*there)
        back.tell(*here)
    require_near(_evidence(back), _evidence(forth), "the order of readings changes what they say")
    require_equal(back.pending, C[:1], "after readings out of order, other measurements are left pending")
    kept = back.ask().copy()
    require_equal(back.ask(), kept, "asked twice while readings are pending, it gives another measurement")
    require_refused(back.forget, 0.5 * lost, message="forget must refuse what is not pending with a ValueError")
    back.forget(lost)
    require(len(back.pending) == 0, "what was forgotten is still pending")


def unavailable(build: Build, problem: Problem) -> None:
    """Streams that are not available have no weight, also in batches; a policy that cannot do without them says so."""
    policy, world, K = build(problem, 5), Simulator(problem, seed=5), problem.size
    if _takes_no_batches(policy):
        return
    rng = np.random.default_rng(5)
    for _ in range(2 * _ROUNDS):
        mask = rng.random(K) < 0.6
        mask[rng.integers(K)] = True
        try:
            c, C = policy.ask(available=mask), policy.ask(batch=2, available=mask)
        except ValueError:  # as a chooser or a constraint of one's own may
            return
        require_equal(C[0], c, "asked twice with the same streams available, it gives another measurement")
        for row in C:
            require(not row[~mask].any(), "a stream that is not available has weight")
            require_measurement(row, problem)
            policy.tell(row, world.measure(row))
    for wrong in (np.zeros(K, dtype=bool), np.ones(K + 1, dtype=bool), np.ones(K)):
        require_refused(policy.ask, available=wrong, message="available must be truth values, one a stream, not all no")


def _takes_no_batches(policy: Policy) -> bool:
    """Does it declare that it takes no batches, and refuse them?"""
    if not policy.can.batches:
        require_refused(policy.ask, batch=2, message="ask(batch=2) must be refused, as is declared")
        mask = np.arange(policy.problem.size) > 0
        require_refused(policy.ask, available=mask, message="ask(available=...) must be refused, as is declared")
    return not policy.can.batches


def unusual_readings(build: Build, problem: Problem) -> None:
    """One reading of a moment says what an ordinary one does; all streams at once what single ones of a moment do."""
    c, x = build(problem, 6).ask().copy(), Simulator(problem, seed=6).sample(1)[0]
    y, each = problem.expected(c) + 0.7 * float(np.sqrt(problem.noise_variance(c))), np.eye(problem.size)

    kinds: list[tuple[str, _Give, _Give]] = [
        ("shared_noise", lambda it: it.tell_many([c], [y]), lambda it: it.tell(c, y)),
        ("whole_vectors", lambda it: it.observe(x), lambda it: it.tell_many(each, x)),
    ]
    for capability, unusual, usual in kinds:
        policy, other = build(problem, 6), build(problem, 6)
        before = policy.scores.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BudgetWarning)
            if getattr(policy.can, capability):
                unusual(policy)
                usual(other)
                message = f"it declares {capability}, but such readings do not say what the usual ones do"
                require_near(_evidence(policy), _evidence(other), message, 1e-6)
                require_sound(policy)
            else:
                message = f"such readings must be refused, as is declared by {capability}=False"
                require_refused(unusual, policy, message=message)
                require(policy.n_readings == 0, f"{message}, but they count")
                require_equal(policy.scores, before, f"{message}, but they change the scores")


def other_problems(build: Build, problem: Problem) -> None:
    """It searches where number or size of the shifts are not known and under other constraints, or refuses to."""
    policy = build(problem, 0)
    size = float(np.hypot(problem.shift, problem.shift_spread).mean())
    others: list[tuple[str, Problem, bool | None]] = [
        ("open_number", problem.replace(n_anomalies=(0, min(2, problem.sizes[1]))), policy.can.open_number),
        ("unknown_shift", problem.replace(shift=UnknownShift(size)), policy.can.unknown_shift),
    ]
    if type(problem.measurements) is Budget:
        known = None if policy.recipe is None else find_entry(policy.recipe.name).constraints
        limit = problem.budget
        for within in (NonNegative() & AtMost(3) & Budget(limit), Readout(limit, 0.5)):
            limited = problem.replace(measurements=within, readout_noise=within.noise, n_anomalies=1)
            others.append(("constraints", limited, known))
    for capability, other, declared in others:
        if declared is False:
            message = f"{other!r} must be refused, as is declared by {capability}=False"
            require_refused(build, other, 0, message=message)
            continue
        try:
            _searched(build(other, 0))
        except ValueError as error:
            require(not declared, f"it declares {capability}, but refuses {other!r}: {error}")


def posterior(build: Build, problem: Problem) -> None:
    """It knows the probability of its decision, and those of the streams add up to the number of anomalies."""
    policy = build(problem, 8)
    if policy.can.posterior:
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
    readings = _searched(policy)
    held = policy.decision
    outside = np.setdiff1d(np.arange(problem.size), held)
    swaps = [np.r_[np.delete(held, place), k] for place, k in product(range(held.size), outside)]
    best = max(_log_likelihood(problem, readings, swap) for swap in swaps)
    lead = _log_likelihood(problem, readings, held) - best
    message = "lead is not the exact log-likelihood ratio that it is declared to be"
    require_close(policy.lead, lead, message, scale=1e3)


def _log_likelihood(problem: Problem, readings: list[tuple[Array, float]], streams: Any) -> float:
    """Of the readings if these streams are anomalous, but for what all sets have in common."""
    gaps = [(y - problem.expected(c, streams)) / np.sqrt(problem.noise_variance(c)) for c, y in readings]
    return -0.5 * float(np.square(gaps).sum())


def _searched(policy: Policy) -> list[tuple[Array, float]]:
    """The readings of some steps of a search, sound in each."""
    world, readings = Simulator(policy.problem, seed=8), []
    for _ in range(_ROUNDS):
        c = policy.ask()
        readings.append((c, world.measure(c)))
        policy.tell(*readings[-1])
        require_sound(policy)
    return readings


def _evidence(policy: Policy) -> Array:
    """What readings say: by the likelihood of sets where there is one, for a random search may score otherwise."""
    if policy.likelihood is None:
        return policy.scores
    most, size = policy.problem.sizes[1], policy.problem.size
    first = np.arange(most)[None] + np.arange(max(size - most, 1))[:, None]
    values = np.asarray(policy.likelihood.log_likelihood(first))
    return np.asarray(values - values[0])  # of neighbouring streams, beside that of the first ones


ALL_CHECKS = CHECKS | by_name(
    *(batches, late_readings, unavailable, unusual_readings, other_problems, posterior, exact_lead)
)


def check_fully(
    build: Build | str, *, problem: Problem | None = None, skip: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What `check_policy` checks, and what the policy declares in `can`."""
    return run_all(ALL_CHECKS, skip, *prepared(build, problem))


def all_but(check: str) -> dict[str, str]:
    """What to skip so that one check is left."""
    return {name: "another" for name in ALL_CHECKS if name != check}
