"""What every policy must do, whatever it is made of."""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np

from eccaht.base.arrays import Array
from eccaht.checks.suite import (
    CheckFailure,
    by_name,
    require,
    require_equal,
    require_near,
    run_all,
)
from eccaht.streams import Dense, Diagonal, Policy, Problem, Simulator, families, load_policy, make_policy, pair_design

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


Build = Callable[[Problem, int], Policy]

_STEPS = 24
_RUNS, _WRONG = 5, 1  # searches for strong anomalies, and how many of them may end wrong


def check_policy(
    build: Build | str, *, problem: Problem | None = None, skip: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Check a policy: build(problem, seed) makes it; a name of the catalogue will do.

    problem: the one to check it on; by default 32 correlated streams, or independent ones if the policy refuses those.
    skip: checks to leave out, by name, with the reason.

    >>> check_policy("round-robin")
    {}
    """
    return run_all(CHECKS, skip, *prepared(build, problem))


def prepared(build: Build | str, problem: Problem | None) -> tuple[Build, Problem]:
    """Return a function that builds the policy, and a problem that it takes."""
    make = partial(_made, build) if isinstance(build, str) else build
    covariances = families.toeplitz(32, rho=0.6), families.identity(32)
    usual = [Problem(S, shift=4.0, n_anomalies=3, budget=3.0, mean=1.5) for S in covariances]
    refusal = ""
    for each in usual if problem is None else [problem]:
        try:
            made = make(each, 0)
        except ValueError as error:
            refusal = str(error)
        else:
            require(hasattr(made, "ask"), f"build(problem, seed) returned no policy, but {made!r:.80}")
            return make, each
    raise CheckFailure(f"the policy refuses the problem it is checked on ({refusal}): hand in one that it takes")


def _made(name: str, problem: Problem, seed: int) -> Policy:
    return make_policy(name, problem, seed=seed)


def _run(policy: Policy, world: Simulator, steps: int = _STEPS) -> Array:
    """Measure so often, whatever the stopping rule says; return what was asked for and read, one row a step."""
    rows = []
    for _ in range(steps):
        c = policy.ask()
        y = world.measure(c)
        policy.tell(c, y)
        rows.append(np.append(c, y))
    return np.array(rows)


def _require_same(found: Policy, expected: Policy, message: str) -> None:
    require_equal(found.scores, expected.scores, f"{message}: its scores differ")
    require_equal(found.decision, expected.decision, f"{message}: its decision differs")
    require(found.should_stop() == expected.should_stop(), f"{message}: it stops at another time")


def _same_seed(build: Build, problem: Problem) -> None:
    """The same seed gives the same run, bit for bit."""
    first, second = build(problem, 5), build(problem, 5)
    runs = [_run(policy, Simulator(problem, seed=2)) for policy in (first, second)]
    require_equal(runs[1], runs[0], "the same seed gives another run")
    _require_same(second, first, "the same seed gives another run")


def _reading(build: Build, problem: Problem) -> None:
    """ask gives the same until a reading is given; should_stop, decision and the other properties only read."""
    quiet, read = build(problem, 1), build(problem, 1)
    one, other = Simulator(problem, seed=1), Simulator(problem, seed=1)
    for _ in range(_STEPS):
        c = read.ask()
        _ = read.should_stop(), read.decision, read.scores, read.beliefs, read.pair, read.lead, read.confidence
        require_equal(read.ask(), c, "asked again after reading its properties, it gives another measurement")
        expected = _run(quiet, one, 1)
        require_equal(_run(read, other, 1), expected, "reading its properties changes the search")
    _require_same(read, quiet, "reading its properties changes the search")


def _sound(build: Build, problem: Problem) -> None:
    """Every measurement is allowed by the problem; what it decides, scores and believes makes sense."""
    policy, world = build(problem, 3), Simulator(problem, seed=3)
    for _ in range(2 * _STEPS):
        require_measurement(policy.ask(), problem)
        require_sound(policy)
        _run(policy, world, 1)
    before = policy.scores.copy()
    if (handed := policy.scores).flags.writeable:
        handed[:] = 0.0
    require_equal(policy.scores, before, "writing into scores changes them: return a copy")


def _tell_any(build: Build, problem: Problem) -> None:
    """tell takes any measurement, asked for or not."""
    policy, unasked = build(problem, 1), _any_measurements(problem)
    if not unasked:
        raise SkipTest(f"{problem.measurements!r} allows none of the measurements whose readings would be given")
    for c in unasked:
        try:
            policy.tell(c, problem.expected(c) + 0.3)
        except ValueError as error:
            raise CheckFailure(f"tell refuses weights that were not asked for: {error}") from error
        require_sound(policy)


def _any_measurements(problem: Problem) -> list[Array]:
    """Single streams, sparse and full weights, as large as the problem allows; pairs where it allows none of those."""
    rng, K, within = np.random.default_rng(0), problem.size, problem.measurements
    drawn = [np.eye(K)[0], -np.eye(K)[-1], rng.standard_normal(K), rng.standard_normal(K) * (rng.random(K) < 0.2)]
    found = []
    for c in drawn:
        with suppress(ValueError):
            found.append(within.scaled(c))
    for k in () if found else (1, K - 1):
        with suppress(ValueError):
            found.append(pair_design(problem, 0, k).weights)
    return found


def _relabelling(build: Build, problem: Problem) -> None:
    """The same readings of relabelled streams lead to relabelled scores and decision."""
    if build(problem, 0).can.order_matters:
        raise SkipTest("it declares that the order of the streams matters")
    turn = np.random.default_rng(0).permutation(problem.size)
    changes: dict[str, Any] = {"covariance": Dense(problem.covariance.dense()[np.ix_(turn, turn)])}
    changes["mean"] = problem.mean[turn]
    if problem.names is not None:
        changes["names"] = [problem.names[k] for k in turn]
    if not problem.unknown_shift:
        changes["shift"] = problem.shift[turn]
    elif np.ptp(problem.shift) or np.ptp(problem.shift_spread):
        raise SkipTest("the prior of the shifts differs from stream to stream")
    rows = _run(build(problem, 9), Simulator(problem, seed=9), 2 * _STEPS)
    if not all(problem.measurements.allows(row[turn]) for row in rows):
        raise SkipTest(f"{problem.measurements!r} allows other weights to other streams")
    policy, other = build(problem, 0), build(problem.replace(**changes), 0)
    for row in rows:
        policy.tell(row[:-1], row[-1])
        other.tell(row[turn], row[-1])
    require_near(other.scores, policy.scores[turn], "relabelling the streams does not relabel the scores")
    named = np.sort(turn[other.decision])
    require_equal(named, policy.decision, "relabelling the streams does not relabel the decision")


def _saving(build: Build, problem: Problem) -> None:
    """Saved and loaded, with none, one or several measurements asked for, it goes on identically."""
    policy, world = build(problem, 3), Simulator(problem, seed=3)
    for asked in (0, 1, 3):
        _run(policy, world)
        if asked > 1 and policy.can.batches:
            policy.ask(batch=asked)
        elif asked:
            policy.ask()
        loaded, twin = _saved_and_loaded(policy), deepcopy(world)
        require(
            loaded.n_readings == policy.n_readings,
            f"loaded, n_readings is {loaded.n_readings} instead of {policy.n_readings}",
        )
        runs = []
        for each, measured in ((policy, world), (loaded, twin)):
            for c in each.pending[:0:-1]:  # the youngest first; the oldest stays pending
                each.tell(c, measured.measure(c))
            runs.append(_run(each, measured, _STEPS // 2))
        require_equal(runs[1], runs[0], "saved and loaded, it asks for other measurements")
        require_equal(loaded.pending, policy.pending, "saved and loaded, other measurements are pending")
        _require_same(loaded, policy, "saved and loaded, it goes on otherwise")


def _saved_and_loaded(policy: Policy) -> Policy:
    """The policy of the file that this one is saved in; a policy that cannot be saved skips the check."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.eccaht"
        try:
            policy.save(path)
        except ValueError as error:
            raise SkipTest(str(error)) from None
        return load_policy(path)


def _strong_anomalies(build: Build, problem: Problem) -> None:
    """Shifts of eight standard deviations of independent noise are found, whenever its stopping rule would stop."""
    size = 8.0 * np.sqrt(problem.covariance.diagonal())
    easy = problem.replace(covariance=Diagonal(problem.covariance.diagonal()))
    if not problem.unknown_shift:
        easy = easy.replace(shift=np.where(problem.shift < 0.0, -size, size))
    wrong = []
    for seed in range(_RUNS):
        world = Simulator(easy, seed=seed)
        if problem.unknown_shift:
            world = Simulator(easy, seed=seed, anomalies=world.anomalies, shifts=size[world.anomalies])
        policy = build(easy, seed)
        if not _finds(policy, world):
            wrong.append(f"{policy.decision} instead of {world.anomalies} with seed {seed}")
    message = f"strong anomalies were not found in {len(wrong)} of {_RUNS} searches: {'; '.join(wrong)}"
    require(len(wrong) <= _WRONG, message)


def _finds(policy: Policy, world: Simulator) -> bool:
    """Is the decision right throughout as many measurements as there are streams, or at the end?"""
    right, K = 0, policy.problem.size
    for _ in range(12 * K):
        _run(policy, world, 1)
        right = right + 1 if np.array_equal(policy.decision, world.anomalies) else 0
        if right >= K:
            break
    return right > 0


CHECKS = by_name(*(_same_seed, _reading, _sound, _tell_any, _relabelling, _saving, _strong_anomalies))
