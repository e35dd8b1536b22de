"""What every policy must do, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from unittest import SkipTest

import numpy as np

from eccaht.base.arrays import Array
from eccaht.checks.batches import (
    batches,
    late_readings,
    one_moment,
    require_saved_while_pending,
    saved_and_loaded,
    unavailable,
)
from eccaht.checks.capabilities import (
    constraints,
    exact_lead,
    inflation,
    open_number,
    posterior,
    unknown_shift,
    whole_vectors,
)
from eccaht.checks.sound import require_measurement as require_measurement
from eccaht.checks.sound import require_sound as require_sound
from eccaht.checks.suite import (
    Check,
    CheckFailure,
    by_name,
    require,
    require_equal,
    require_near,
    require_parts,
    require_refused,
    run_all,
    single,
)
from eccaht.streams import Dense, Diagonal, Policy, Problem, Simulator, families, make_policy, pair_design, policy_names

Build = Callable[[Problem, int], Policy]

_STEPS = 24
_PARTS = ("ask", "tell", "should_stop", "can", "n_told")  # by which a policy is recognised
_RUNS, _WRONG = 5, 1  # searches for strong anomalies, and how many of them may end wrong


def check_policy(
    build: Build | str, *, problem: Problem | None = None, skip: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Check a policy: build(problem, seed) makes it; a name of the catalogue will do.

    What it declares in `can` is tried, and what it declares that it cannot do must be refused in one line.

    problem: the one to check it on; by default 32 correlated streams, or independent ones if the policy refuses those.
    skip: checks to leave out, by name, with the reason. Returns the checks that did not apply, with the reason; the
    first property that does not hold raises CheckFailure.

    >>> check_policy("round-robin")
    {}
    """
    return run_all(_CHECKS, skip, _prepared, build, problem)


def policy_checks() -> Iterator[tuple[str, Check]]:
    """Pairs (name, check): check(build, problem=None) is one property, as in `pytest.mark.parametrize`."""
    return single(_CHECKS, _prepared)


def _prepared(build: Build | str, problem: Problem | None = None) -> tuple[Build, Problem]:
    """Return a function that builds the policy, and a problem that it takes."""
    if isinstance(build, str):
        require(build in policy_names(), f"there is no policy {build!r}: known are {', '.join(policy_names())}")
        build = partial(_made, build)
    require(callable(build), f"build must be a function of (problem, seed) or the name of a policy, not {build!r}")
    given = isinstance(problem, Problem)
    require(given or problem is None, f"problem must be a Problem, not {type(problem).__name__!r}")
    covariances = families.toeplitz(32, rho=0.6), families.identity(32)
    usual = [Problem(S, shift=4.0, n_anomalies=3, budget=3.0, mean=1.5) for S in covariances]
    refusal = ""
    for each in usual if problem is None else [problem]:
        try:
            policy = build(each, 0)
        except ValueError as error:
            refusal = str(error)
        except Exception as error:
            raise CheckFailure(f"build(problem, seed) ended with {type(error).__name__}: {error}") from error
        else:
            require_parts(policy, _PARTS, "build(problem, seed) returned no policy")
            return build, each
    which = "problem" if given else "problems"
    raise CheckFailure(f"the policy refuses the {which} it is checked on ({refusal}): hand in one that it takes")


def _made(name: str, problem: Problem, seed: int) -> Policy:
    return make_policy(name, problem, seed=seed)


def _run(policy: Policy, world: Simulator, steps: int = _STEPS) -> list[tuple[Array, float]]:
    """Measure so often, whatever the stopping rule says; return copies of the readings given."""
    readings = []
    for _ in range(steps):
        c = policy.ask()
        y = world.measure(c)
        policy.tell(c, y)
        readings.append((np.array(c), y))
    return readings


def _same_seed(build: Build, problem: Problem) -> None:
    """The same seed gives the same run, bit for bit."""
    first, second = (build(problem, 5) for _ in range(2))
    runs = (_run(policy, Simulator(problem, seed=2)) for policy in (first, second))
    for step, ((c, _), (d, _)) in enumerate(zip(*runs, strict=True), 1):
        require_equal(d, c, f"the same seed gives another measurement at step {step}")
    require_equal(second.scores, first.scores, "the same seed gives other scores")
    require_equal(second.decision, first.decision, "the same seed gives another decision")


def _constraint(build: Build, problem: Problem) -> None:
    """Every measurement is allowed by the problem."""
    for step, (c, _) in enumerate(_run(build(problem, 0), Simulator(problem), 2 * _STEPS), 1):
        require_measurement(c, problem, f"at step {step}")


def _ask_twice(build: Build, problem: Problem) -> None:
    """ask gives the same measurement until a reading is given, and it is read-only."""
    policy, world = build(problem, 1), Simulator(problem, seed=1)
    for step in range(1, _STEPS + 1):
        c = policy.ask()
        kept = c.copy()
        require_equal(policy.ask(), kept, f"asked twice at step {step}, it gives another measurement")
        if c.flags.writeable:
            c[:] = 0.0
            require_equal(policy.ask(), kept, "writing into what ask returned changes what it returns next")
        policy.tell(policy.ask(), world.measure(kept))


def _reading(build: Build, problem: Problem) -> None:
    """should_stop, decision and the other properties only read."""
    quiet, read = build(problem, 1), build(problem, 1)
    one, other = Simulator(problem, seed=1), Simulator(problem, seed=1)
    for step in range(1, _STEPS + 1):
        for _ in range(2):
            _ = read.should_stop(), read.decision, read.scores, read.beliefs, read.pair, read.lead, read.confidence
        ((c, _),), ((d, _),) = _run(quiet, one, 1), _run(read, other, 1)
        require_equal(d, c, f"reading decision, scores and should_stop changes the measurement of step {step}")
    require_equal(read.scores, quiet.scores, "reading decision, scores and should_stop changes the scores")


def _inputs(build: Build, problem: Problem) -> None:
    """tell changes nothing that it is handed, and remembers no array of the caller."""
    mean, shift, variances = problem.mean.copy(), problem.shift.copy(), problem.covariance.diagonal().copy()
    kept, changed = build(problem, 1), build(problem, 1)
    for c in _any_measurements(problem) or [kept.ask().copy()]:
        handed, y = c.copy(), problem.expected(c) + 0.3
        kept.tell(c.copy(), y)
        changed.tell(handed, y)
        require_equal(handed, c, "tell changed the measurement that it was handed")
        handed[:] = 1e3
    require_equal(changed.ask(), kept.ask(), "tell keeps the caller's array: changing it later changes the search")
    require_equal(changed.scores, kept.scores, "tell keeps the caller's array: changing it later changes the scores")
    if kept.scores.flags.writeable:
        before = kept.scores.copy()
        kept.scores[:] = 0.0
        require_equal(kept.scores, before, "writing into scores changes them: return a copy or a read-only array")
    for what, now, then in (
        ("mean", problem.mean, mean),
        ("shift", problem.shift, shift),
        ("covariance", problem.covariance.diagonal(), variances),
    ):
        require_equal(now, then, f"the {what} of the problem was changed")


def _any_measurements(problem: Problem) -> list[Array]:
    """Single streams, sparse and full weights, as large as the problem allows; pairs where it allows none of those."""
    rng, K, within = np.random.default_rng(0), problem.size, problem.measurements
    drawn = [np.eye(K)[0], -np.eye(K)[-1], rng.standard_normal(K), rng.standard_normal(K) * (rng.random(K) < 0.2)]
    scaled = [partial(within.scaled, c) for c in drawn if c.any()]
    return _allowed(scaled) or _allowed([partial(_pair, problem, k) for k in {1, K - 1}])


def _pair(problem: Problem, k: int) -> Array:
    return pair_design(problem, 0, k).weights


def _allowed(makers: Sequence[Callable[[], Array]]) -> list[Array]:
    """What those give that do not refuse."""
    found = []
    for make in makers:
        with suppress(ValueError):
            found.append(make())
    return found


def _tell_any(build: Build, problem: Problem) -> None:
    """tell accepts any measurement, asked for or not, and goes on."""
    policy, world = build(problem, 2), Simulator(problem, seed=2)
    unasked = _any_measurements(problem)
    if not unasked:
        raise SkipTest(f"{problem.measurements!r} allows none of the measurements whose readings would be given")
    for count, c in enumerate(unasked, 1):
        try:
            policy.tell(c, world.measure(c))
        except ValueError as error:
            raise CheckFailure(f"tell refuses weights that were not asked for: {error}") from error
        require(policy.n_told == count, f"n_told is {policy.n_told} after {count} readings")
        require_sound(policy)


def _decision(build: Build, problem: Problem) -> None:
    """decision is sorted, of the right size, and a copy; what else it says makes sense."""
    policy, world = build(problem, 3), Simulator(problem, seed=3)
    for _ in range(_STEPS):
        require_sound(policy)
        _run(policy, world, 1)
    before = policy.decision.copy()
    if policy.decision.size and policy.decision.flags.writeable:
        policy.decision[:] = 0
        require_equal(policy.decision, before, "writing into the decision changes it: return a copy")


def _relabelling(build: Build, problem: Problem) -> None:
    """The same readings of relabelled streams lead to relabelled scores and decision."""
    if build(problem, 0).can.order_matters:
        raise SkipTest("it declares that the order of the streams matters")
    turn = np.random.default_rng(0).permutation(problem.size)
    S = problem.covariance.dense()
    changes: dict[str, Any] = {"covariance": Dense(S[np.ix_(turn, turn)]), "mean": problem.mean[turn]}
    if problem.names is not None:
        changes["names"] = [problem.names[k] for k in turn]
    if not problem.unknown_shift:
        changes["shift"] = problem.shift[turn]
    elif np.ptp(problem.shift) or np.ptp(problem.shift_spread):
        raise SkipTest("the prior of the shifts differs from stream to stream")
    readings = _run(build(problem, 9), Simulator(problem, seed=9), 2 * _STEPS)
    if not all(problem.measurements.allows(c[turn]) for c, _ in readings):
        raise SkipTest(f"{problem.measurements!r} allows other weights to other streams")
    policy, other = build(problem, 0), build(problem.replace(**changes), 0)
    for c, y in readings:
        policy.tell(c, y)
        other.tell(c[turn], y)
    require_near(other.scores, policy.scores[turn], "relabelling the streams does not relabel the scores")
    named = np.sort(turn[other.decision])
    require_equal(named, policy.decision, "relabelling the streams does not relabel the decision")


def _saving(build: Build, problem: Problem) -> None:
    """Saved and loaded, with one measurement asked for, with none or with several pending, it goes on identically."""
    for asked in (False, True):
        policy, world, twin = build(problem, 3), Simulator(problem, seed=3), Simulator(problem, seed=3)
        for c, _ in _run(policy, world):
            twin.measure(c)  # draws the same noise
        if asked:
            policy.ask()
        loaded = saved_and_loaded(policy)
        require(loaded.n_told == policy.n_told, f"loaded, n_told is {loaded.n_told} instead of {policy.n_told}")
        runs = _run(policy, world), _run(loaded, twin)
        for step, ((c, _), (d, _)) in enumerate(zip(*runs, strict=True), 1):
            require_equal(d, c, f"saved and loaded, it asks for another measurement {step} steps later")
        require_equal(loaded.scores, policy.scores, "saved and loaded, it comes to other scores")
        require_equal(loaded.decision, policy.decision, "saved and loaded, it comes to another decision")
        stops = loaded.should_stop(), policy.should_stop()
        gave = "should_stop gave {} and {}".format(*stops)
        require(stops[0] == stops[1], f"saved and loaded, it stops at another time: {gave}")
    require_saved_while_pending(build, problem)


def _bad_readings(build: Build, problem: Problem) -> None:
    """What is no measurement or no reading is refused and leaves no trace."""
    policy, K = build(problem, 0), problem.size
    before, asked = policy.scores.copy(), policy.ask().copy()
    for what, c, y in (
        ("a reading of NaN", asked, float("nan")),
        ("a reading of infinity", asked, float("inf")),
        ("a reading that is a text", asked, "1"),
        ("a weight of NaN", np.where(asked != 0.0, np.nan, 0.0), 1.0),
        ("weights that are all zero", np.zeros(K), 1.0),
        (f"{K - 1} weights for {K} streams", np.ones(K - 1), 1.0),
        ("weights that are a text", "weights", 1.0),
    ):
        require_refused(partial(policy.tell, c, y), f"tell must refuse {what} with a ValueError")  # type: ignore[arg-type]
        require(policy.n_told == 0, f"{what} was refused, but counted: n_told is {policy.n_told}")
        require_equal(policy.scores, before, f"{what} was refused, but changed the scores")
        require_equal(policy.ask(), asked, f"{what} was refused, but changed the next measurement")


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


_CHECKS = by_name(
    *(_same_seed, _constraint, _ask_twice, _reading, _tell_any, _inputs, _decision, _relabelling, _saving),
    *(_bad_readings, _strong_anomalies),
    *(batches, late_readings, unavailable, one_moment),
    *(whole_vectors, open_number, unknown_shift, posterior, exact_lead, inflation, constraints),
)
