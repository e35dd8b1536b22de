"""What every watch must do: ask within the constraint, visit every stream, and go on from a file bit for bit."""

import copy
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from eccaht.base.arrays import Array
from eccaht.checks.suite import by_name, require, require_equal, require_refused, run_all
from eccaht.streams import Problem, UnknownShift, Watch, families
from eccaht.streams.measurements import AtMost

Build = Callable[[Problem], Watch]
_STEPS = 30


def check_watch(
    build: Build, *, problem: Problem | None = None, skip: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Check a watch: build(problem) makes it.

    problem: the one to check it on; by default 12 correlated streams, of which single ones are read. skip: checks to
    leave out, by name, with the reason. Returns the checks that did not apply; the first property that does not hold
    raises CheckFailure.

    >>> check_watch(lambda problem: Watch(problem, readings=2))
    {}
    """
    usual = Problem(
        families.toeplitz(12, rho=0.6), shift=UnknownShift(3.0), n_anomalies=(1, 3), mean=1.5, measurements=AtMost(1)
    )
    given = usual if problem is None else problem
    fresh = build(given)
    _ = fresh.evidence  # works out the threshold, once
    return run_all(_CHECKS, skip, lambda _: copy.deepcopy(fresh), given)


def _vectors(problem: Problem, count: int, seed: int = 0) -> Array:
    """Steps in the second half of which one stream has moved."""
    rows = problem.mean + problem.covariance.sample(np.random.default_rng(seed), count)
    rows[count // 2 :, 1] += 2.0 * (problem.shift[1] + problem.shift_spread[1])
    return np.asarray(rows)


def _tell(watch: Watch, x: Array) -> Array:
    C = watch.ask()
    watch.tell(C, C @ x)
    return np.append(C @ x, [watch.evidence, watch.time])


def _asks(build: Build, problem: Problem) -> None:
    """ask obeys the constraint, gives the same until it is told, and no property changes it."""
    watch = build(problem)
    for x in _vectors(problem, 2 * _STEPS):
        C = watch.ask()
        for c in C:
            require(problem.measurements.allows(c), f"it asks for weights that {problem.measurements!r} does not allow")
        _ = watch.state, watch.evidence, watch.certain, watch.alarm
        require_equal(watch.ask(), C, "asked again before it is told, it gives other measurements")
        watch.tell(C, C @ x)


def _visits(build: Build, problem: Problem) -> None:
    """Every stream is read within `longest_unread` steps, also while one is suspected."""
    watch, age = build(problem), np.zeros(problem.size)
    for x in _vectors(problem, 3 * watch.longest_unread):
        C = watch.ask()
        age = np.where(np.abs(C).max(axis=0) > 0.0, 0.0, age + 1.0)
        require(age.max() <= watch.longest_unread, f"stream {age.argmax()} is not read for {age.max():g} steps")
        watch.tell(C, C @ x)


def _files(build: Build, problem: Problem) -> None:
    """Saved and loaded it goes on bit for bit, before and after an alarm."""
    watch = build(problem)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "watch"
        for t, x in enumerate(_vectors(problem, 2 * _STEPS)):
            if t % 7 == 0:
                watch.save(path)
                other = Watch.load(path)
                require_equal(other.ask(), watch.ask(), "loaded from a file it asks for other measurements")
                require_equal(_tell(other, x), _tell(watch, x), "loaded from a file it goes on otherwise")
                same = repr(other.alarm) == repr(watch.alarm) and other.certain == watch.certain
                require(same, "loaded from a file it says something else of the alarm")
            else:
                _tell(watch, x)


def _missing(build: Build, problem: Problem) -> None:
    """A reading that is NaN is as one that was not asked for; a step without readings is a step."""
    first, second = build(problem), build(problem)
    for x in _vectors(problem, _STEPS):
        C, y = np.eye(problem.size)[:3], x[:3].copy()
        y[1] = np.nan
        first.tell(C, y)
        second.tell(C[[0, 2]], y[[0, 2]])
        require_equal(first.evidence, second.evidence, "a reading that is NaN changes what the others say")
    first.update(np.full(problem.size, np.nan))
    require(first.time == _STEPS + 1, "a step without readings is not counted")


def _any_rows(build: Build, problem: Problem) -> None:
    """A vector is what its streams are, read one by one; readings that were not asked for are taken."""
    first, second = build(problem), build(problem)
    for x in _vectors(problem, _STEPS // 3):
        first.update(x)
        second.tell(np.eye(problem.size), x)
        require(abs(first.evidence - second.evidence) <= 1e-6, "a vector says something else than its streams")


def _refuses(build: Build, problem: Problem) -> None:
    """Bad input is refused in one line and changes nothing."""
    watch, K = build(problem), problem.size
    C = watch.ask()
    for bad in ((C, np.full(len(C), np.inf)), (C, np.zeros(len(C) + 1)), (np.zeros((1, K)), [0.0]), (C[:, 1:], [0.0])):
        require_refused(watch.tell, *bad, message="tell must refuse readings that cannot be")
    if not problem.readout_noise:
        twice = np.eye(K)[[0, 0]], [0.0, 0.0]
        require_refused(watch.tell, *twice, message="tell must refuse a reading that is there twice")
    require_refused(watch.update, np.zeros(K + 1), message="update must refuse a vector of another size")
    require(watch.time == 0, "what it refuses is counted as a step")
    require_equal(watch.ask(), C, "what it refuses changes what it asks for")


_CHECKS = by_name(_asks, _visits, _files, _missing, _any_rows, _refuses)
