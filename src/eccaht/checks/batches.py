"""What every policy must do with measurements asked for together, and with readings that come late or never."""

from __future__ import annotations

import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import SkipTest

import numpy as np

from eccaht.base.arrays import Array
from eccaht.checks.suite import CheckFailure, require, require_equal, require_near, require_refused
from eccaht.streams import BudgetWarning, Policy, Problem, Simulator, load_policy

if TYPE_CHECKING:
    from eccaht.checks.policy import Build

_ROUNDS, _BATCH = 4, 3


def batches(build: Build, problem: Problem) -> None:
    """A batch is allowed and begins with what ask gives; asking for all at once or one by one is the same."""
    together, single = build(problem, 1), build(problem, 1)
    if _refuses(together):
        return
    one, other = Simulator(problem, seed=1), Simulator(problem, seed=1)
    for round_ in range(1, _ROUNDS + 1):
        next_one = together.ask().copy()
        C = together.ask(batch=_BATCH)
        require(C.shape == (_BATCH, problem.size), f"ask(batch={_BATCH}) gave shape {C.shape}")
        require(not C.flags.writeable, "what ask(batch=...) returns can be written to: return a read-only array")
        for c in C:
            allowed = np.isfinite(c).all() and c.any() and problem.measurements.allows(np.array(c))
            require(allowed, f"{problem.measurements!r} does not allow a measurement of batch {round_}")
        require_equal(C[0], next_one, "the first measurement of a batch is not the one that ask gives")
        for k in range(_BATCH):
            row = single.ask(batch=1)[0]
            require_equal(row, C[k], f"asked for one by one, measurement {k} of a batch is another")
        require_equal(together.pending, C, "pending does not hold the batch")
        require(together.n_told == (round_ - 1) * _BATCH, "asking for a batch changed n_told")
        for c in C:
            together.tell(c, one.measure(c))
            single.tell(c, other.measure(c))
        require(len(together.pending) == 0, "a batch whose readings were given is still pending")
    require_equal(single.scores, together.scores, "asking one by one leads to other scores")


def late_readings(build: Build, problem: Problem) -> None:
    """Readings come in any order, some never; what is pending stays so until it is read or forgotten."""
    policy, world = build(problem, 2), Simulator(problem, seed=2)
    if _refuses(policy):
        return
    first, late = policy.ask(batch=_BATCH), policy.ask(batch=_BATCH)
    require_equal(policy.pending, np.vstack([first, late]), "a second batch is not pending beside the first")
    for c in late[::-1]:
        policy.tell(np.array(c), world.measure(c))
    require_equal(policy.pending, first, "after readings out of order, other measurements are left pending")
    policy.forget(first[1])
    require_equal(policy.pending, first[[0, 2]], "forget does not give up that measurement, and that alone")
    require(policy.n_told == _BATCH, f"n_told is {policy.n_told} after {_BATCH} readings")
    require_refused(partial(policy.forget, 0.5 * first[0]), "forget must refuse what is not pending with a ValueError")
    kept = policy.ask().copy()
    require_equal(policy.ask(), kept, "asked twice while readings are pending, it gives another measurement")
    for c in first[[2, 0]]:
        policy.tell(c, world.measure(c))
    require(len(policy.pending) == 0, "all readings came, but some are still pending")
    _same_in_any_order(build, problem)


def _same_in_any_order(build: Build, problem: Problem) -> None:
    """The order of the readings of a batch makes no difference to what is known, but for rounding and random search."""
    forth, back = build(problem, 3), build(problem, 3)
    world = Simulator(problem, seed=3)
    C = forth.ask(batch=_BATCH)
    readings = [world.measure(c) for c in C]
    back.ask(batch=_BATCH)
    for k in range(_BATCH):
        forth.tell(C[k], readings[k])
        back.tell(C[_BATCH - 1 - k], readings[_BATCH - 1 - k])
    scores = [policy.scores for policy in (forth, back)]
    if forth.likelihood is not None and back.likelihood is not None:
        sets = np.array([np.r_[forth.decision, np.full(problem.sizes[1] - forth.decision.size, problem.size)]])
        scores = [np.asarray(policy.likelihood.log_likelihood(sets)) for policy in (forth, back) if policy.likelihood]
    require_near(scores[1], scores[0], "the order of readings changes what they say")


def require_saved_while_pending(build: Build, problem: Problem) -> None:
    """Fail unless it goes on identically when it is saved and loaded with measurements pending."""
    policy, world, twin = build(problem, 4), Simulator(problem, seed=4), Simulator(problem, seed=4)
    if _refuses(policy):
        return
    for _ in range(2):
        for c in policy.ask(batch=_BATCH)[1:]:
            policy.tell(c, world.measure(c))
            twin.measure(c)  # draws the same noise
    loaded = saved_and_loaded(policy)
    require_equal(loaded.pending, policy.pending, "saved and loaded, other measurements are pending")
    for round_ in range(1, _ROUNDS + 1):
        runs = [_late_round(policy, world), _late_round(loaded, twin)]
        require_equal(runs[1], runs[0], f"saved and loaded with measurements pending, batch {round_} is another")
    require_equal(loaded.pending, policy.pending, "saved and loaded, other measurements are left pending")
    require_equal(loaded.scores, policy.scores, "saved and loaded with measurements pending, it comes to other scores")
    require_equal(loaded.decision, policy.decision, "saved and loaded with measurements pending, it decides otherwise")


def _late_round(policy: Policy, world: Simulator) -> Array:
    """Ask for a batch; the oldest pending one is lost; the next two readings are given, the younger first."""
    C = policy.ask(batch=_BATCH)
    lost, late, later = policy.pending[:3]
    policy.forget(lost)
    for c in (later, late):
        policy.tell(c, world.measure(c))
    return C


def unavailable(build: Build, problem: Problem) -> None:
    """Streams that are not available have no weight, also in batches; a policy that cannot do without them says so."""
    policy, world = build(problem, 5), Simulator(problem, seed=5)
    if _refuses(policy):
        return
    rng = np.random.default_rng(5)
    for _ in range(2 * _ROUNDS):
        mask = rng.random(problem.size) < 0.6
        mask[rng.integers(problem.size)] = True
        try:
            c = policy.ask(available=mask)
            again, C = policy.ask(available=mask), policy.ask(batch=2, available=mask)
        except ValueError:  # as a chooser or a constraint of one's own may
            return
        require(c.any() and not c[~mask].any(), "a stream that is not available has weight")
        require_equal(again, c, "asked twice with the same streams available, it gives another measurement")
        require(not C[:, ~mask].any(), "a stream that is not available has weight in a batch")
        for row in C:
            require(problem.measurements.allows(np.array(row)), "what is asked for of some streams is not allowed")
            policy.tell(row, world.measure(row))
    for wrong in (np.zeros(problem.size, dtype=bool), np.ones(problem.size + 1, dtype=bool), np.ones(problem.size)):
        message = "available must be truth values, one a stream, not all no"
        require_refused(partial(policy.ask, available=wrong), message)


def one_moment(build: Build, problem: Problem) -> None:
    """Readings of one moment: one of them is an ordinary reading, and their order makes no difference."""
    policy, single, turned = (build(problem, 6) for _ in range(3))
    if not policy.can.shared_noise:
        C = policy.ask()[None]
        require_refused(partial(policy.tell_many, C, [0.0]), "tell_many must be refused, as is declared")
        return
    c, world = policy.ask(), Simulator(problem, seed=6)
    y = world.measure(c)
    try:
        policy.tell_many(c[None], [y])
    except ValueError as error:
        undeclared = "declare Capabilities(shared_noise=False), or define update_together"
        raise CheckFailure(f"tell_many is refused, but shared_noise is declared: {undeclared} ({error})") from error
    single.tell(c, y)
    turned.tell(c, y)
    require_near(policy.scores, single.scores, "tell_many of one reading is not tell")
    drawn = np.random.default_rng(6).standard_normal((2, problem.size))
    rows = np.vstack([policy.ask(), drawn * (np.abs(policy.ask()).sum() / np.abs(drawn).sum())])
    readings = np.array([world.measure(row) for row in rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        policy.tell_many(rows, readings)
        turned.tell_many(rows[::-1], readings[::-1])
    require(policy.n_told == 1 + len(rows), f"n_told is {policy.n_told} after {1 + len(rows)} readings")
    before = policy.scores.copy()
    require_near(turned.scores, before, "the order of a moment's readings matters", 1e-6)
    for what, C, readings_ in (
        ("the same measurement twice", rows[[0, 0]], readings[[0, 0]]),
        ("another number of readings", rows, readings[:2]),
        ("a reading of NaN", rows, np.full(len(rows), np.nan)),
    ):
        if what.startswith("the same") and problem.readout_noise:
            continue
        require_refused(partial(policy.tell_many, C, readings_), f"tell_many must refuse {what} with a ValueError")
        require_equal(policy.scores, before, f"{what} was refused, but changed the scores")


def _refuses(policy: Policy) -> bool:
    """Does it declare that it takes no batches, and refuse them?"""
    if policy.can.batches:
        return False
    require_refused(partial(policy.ask, batch=2), "ask(batch=2) must be refused, as is declared")
    mask = np.arange(policy.problem.size) > 0
    require_refused(partial(policy.ask, available=mask), "ask(available=...) must be refused, as is declared")
    return True


def saved_and_loaded(policy: Policy) -> Policy:
    """The policy of the file that this one is saved in; a policy that cannot be saved skips the check."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.eccaht"
        try:
            policy.save(path)
        except ValueError as error:
            raise SkipTest(str(error)) from None
        return load_policy(path)
