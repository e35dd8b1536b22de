"""A user's own policy passes; broken ones fail with the property that does not hold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from numpy.typing import ArrayLike

import eccaht
from eccaht import Problem, families, make_policy
from eccaht.base.arrays import Array, Index
from eccaht.base.randomness import rng_for
from eccaht.checks import CheckFailure, check_policy, policy_checks
from eccaht.streams.covariance import Covariance
from eccaht.streams.designs import PairDesign
from eccaht.streams.measurements.base import Constraint, Design
from eccaht.streams.policies import Policy
from eccaht.streams.policies.choosers import Pair, champion_challenger
from eccaht.streams.policies.parts import Choice, Chooser, Parts, View
from eccaht.streams.posterior import PseudoLikelihood
from eccaht.streams.shifts import ShiftPrior
from eccaht.streams.stopping import Never


class Loudest(Chooser):
    """Measures the stream of the largest score, or any."""

    def __init__(self, problem: Problem, draw: Callable[[View], float]) -> None:
        self._problem, self._draw = problem, draw

    def choose(self, view: View) -> Choice:
        c = np.zeros(self._problem.size)
        k = int(self._draw(view) * c.size) if view.n_told % 2 else view.ranking.challenger
        c[k] = self._problem.budget
        return Choice(c)


def composed(problem: Problem, seed: int, kind: type[Policy] = Policy) -> Policy:
    """A policy as a user puts it together."""
    chooser = Loudest(problem, lambda view: view.rng.random())
    return kind(problem, Parts(PseudoLikelihood(problem), chooser), Never(), rng_for(seed, "own"))


UNSAVED = "only policies built by make_policy can be saved: a file names the recipe, not the code"


def test_a_policy_of_a_user_passes() -> None:
    assert check_policy(composed) == {"saving": UNSAVED}


def test_it_is_there_by_name() -> None:
    assert eccaht.checks.check_policy is check_policy
    with pytest.raises(AttributeError, match="no attribute 'check_nothing'"):
        eccaht.checks.check_nothing  # type: ignore[attr-defined]  # noqa: B018


def test_names_and_problems_of_a_user() -> None:
    problem = Problem(np.diag(np.linspace(1.0, 4.0, 10)), shift=np.linspace(-5, -3, 10), n_anomalies=2, budget=1.0)
    assert check_policy("ecc-aht", problem=problem) == {}
    unknown = problem.replace(shift=ShiftPrior(np.zeros(10), np.linspace(3.0, 4.0, 10)), n_anomalies=(1, 2))
    assert check_policy("joint", problem=unknown, skip={"strong_anomalies": "long"}) == {
        "relabelling": "the prior of the shifts differs from stream to stream",
        "strong_anomalies": "long",
    }


class Euclidean(Constraint):
    """|c|_2 <= 1."""

    def allows(self, c: Array) -> bool:
        return bool(np.linalg.norm(c) <= 1.0 + 1e-9)

    def scaled(self, direction: Array) -> Array:
        return direction / float(np.linalg.norm(direction))

    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        weights = self.scaled(covariance.solve_sparse(indices, values))
        return Design(covariance, indices, values, weights)


def test_a_constraint_of_a_user_is_what_is_checked() -> None:
    problem = Problem(families.toeplitz(12, 0.5), shift=4.0, n_anomalies=2, measurements=Euclidean())
    unsaved = check_policy("ecc-aht", problem=problem)
    assert set(unsaved) <= {"saving"}
    beyond = r"^ask gave weights of \|c\|_1 = \S+ at step 1 that .*Euclidean.* does not allow$"
    with pytest.raises(CheckFailure, match=beyond):
        check_policy(
            lambda problem, seed: make_policy("ecc-aht", problem.replace(budget=9.0), seed=seed), problem=problem
        )


def test_what_does_not_apply_is_named() -> None:
    assert check_policy("hds") == {"relabelling": "it declares that the order of the streams matters"}
    skip = {"relabelling": "long", "saving": "long"}
    assert check_policy("hds", skip=skip) == skip
    with pytest.raises(ValueError, match="there is no check 'colour': known are same_seed, "):
        check_policy("hds", skip={"colour": "none"})
    with pytest.raises(CheckFailure, match=r"^the policy refuses the problems .* \(no\): hand in one that it takes$"):
        check_policy(refusing)


def refusing(problem: Problem, seed: int) -> Policy:  # noqa: ARG001
    raise ValueError("no")


def test_each_check_has_a_name_and_can_be_called_alone() -> None:
    checks = dict(policy_checks())
    assert {"same_seed", "constraint", "inputs", "relabelling", "saving", "strong_anomalies"} <= set(checks)
    checks["constraint"](composed, Problem(families.identity(8), shift=3.0, n_anomalies=1, budget=0.1))


# -- broken policies -----------------------------------------------------------------------------------


class Mutating(Policy):
    def tell(self, c: ArrayLike | Mapping[str, float], y: float, *, inflation: float = 1.0) -> None:
        super().tell(c, y, inflation=inflation)
        if isinstance(c, np.ndarray) and c.flags.writeable:
            c /= 2.0


class Rescaled(Policy):
    """Its budget is another."""

    def ask(self, **more: Any) -> Array:
        return 2.0 * super().ask(**more)


class Unsteady(Policy):
    def ask(self, **more: Any) -> Array:
        self._choice = None
        return super().ask(**more)


class Restless(Policy):
    def should_stop(self) -> bool:
        self._rng.random()
        return super().should_stop()


class Unsorted(Policy):
    @property
    def decision(self) -> Index:
        return super().decision[::-1]


class Short(Policy):
    @property
    def decision(self) -> Index:
        return super().decision[:-1]


class Gullible(Policy):
    def tell(self, c: ArrayLike | Mapping[str, float], y: float, *, inflation: float = 1.0) -> None:
        super().tell(c, float(np.nan_to_num(y)), inflation=inflation)


class Picky(Policy):
    def tell(self, c: ArrayLike | Mapping[str, float], y: float, *, inflation: float = 1.0) -> None:
        if np.count_nonzero(c) > 1:  # type: ignore[arg-type]
            raise ValueError("one stream at a time")
        super().tell(c, y, inflation=inflation)


class Stubborn(Policy):
    """Prefers the first streams, whatever is read."""

    @property
    def decision(self) -> Index:
        return np.arange(self.problem.known_number)

    @property
    def scores(self) -> Array:
        return np.zeros(self.problem.size)


BROKEN: dict[type[Policy], tuple[str, str]] = {
    Mutating: ("inputs", r"tell changed the measurement that it was handed: 1\.5 instead of 3\.0 at 0"),
    Rescaled: ("constraint", r"ask gave weights of \|c\|_1 = 6 at step 1 that Budget\(.*3.*\) does not allow"),
    Unsteady: ("ask_twice", r"asked twice at step \d+, it gives another measurement: .* instead of .* at \d+"),
    Restless: ("reading", r"reading decision, scores and should_stop changes the measurement of step \d+: .*"),
    Unsorted: ("decision", r"decision must be sorted, distinct and below 32: \[.*\]"),
    Short: ("decision", "decision names 2 streams, but 3 are anomalous"),
    Gullible: ("bad_readings", "tell must refuse a reading of NaN with a ValueError, but it is accepted"),
    Picky: ("tell_any", "tell refuses weights that were not asked for: one stream at a time"),
    Stubborn: ("relabelling", r"relabelling the streams does not relabel the decision: \d+ instead of \d+ at \d"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_policy_fails_with_what_is_wrong(kind: type[Policy]) -> None:
    name, message = BROKEN[kind]

    def build(problem: Problem, seed: int) -> Policy:
        return composed(problem, seed, kind)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CheckFailure, match=f"^{message}$"):
            dict(policy_checks())[name](build)
        with pytest.raises(AssertionError):
            check_policy(build)


# -- what is declared and not done ---------------------------------------------------------------------


def declaring(belief: type[PseudoLikelihood] = PseudoLikelihood, kind: type[Policy] = Policy, **declared: bool) -> Any:
    """A policy whose belief declares this of itself."""

    def build(problem: Problem, seed: int) -> Policy:
        believed = belief(problem)
        believed.can = replace(belief.can, **declared)
        chooser = Pair(champion_challenger, PairDesign(problem))
        return kind(problem, Parts(believed, chooser), Never(), rng_for(seed, "own"))

    return build


class Absent(PseudoLikelihood):
    """Takes every reading for one of the usual noise."""

    def update(self, c: Array, y: float, inflation: float = 1.0) -> None:  # noqa: ARG002
        super().update(c, y)


class Overeager(Policy):
    """Takes a whole vector for nothing."""

    def observe(self, x: Any, *, excess: Any = None) -> None:  # noqa: ARG002
        self.n_told += 1


class Verbose(Policy):
    def observe(self, x: Any, *, excess: Any = None) -> None:  # noqa: ARG002
        raise ValueError("no\nwhole vectors")


UNDONE = {
    "whole_vectors": [
        (declaring(whole_vectors=True), "the check of 'whole_vectors' ended with ValueError: .*"),
        (declaring(kind=Overeager), "observe must be refused, as is declared by whole_vectors=False, .* accepted"),
        (declaring(kind=Verbose), r"observe must be refused, .*, in one line, but it says 'no.*whole vectors'"),
    ],
    "inflation": [(declaring(Absent), "two readings of inflation 2 do not say what one of inflation 1 does: .*")],
    "posterior": [(declaring(posterior=True), "confidence must be there, as is declared by posterior")],
    "exact_lead": [(declaring(exact_lead=True), "lead is not the exact log-likelihood ratio .*: .* instead of .*")],
    "one_moment": [(declaring(shared_noise=True), "")],
    "constraints": [(lambda problem, seed: composed(problem.replace(budget=3.0), seed, Rescaled), "ask gave .*")],
}


@pytest.mark.parametrize("check", UNDONE)
def test_what_is_declared_is_tried(check: str) -> None:
    """Done as declared, or refused in one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for build, message in UNDONE[check]:
            if message:
                with pytest.raises(CheckFailure, match=f"^{message}$"):
                    dict(policy_checks())[check](build)
            else:
                dict(policy_checks())[check](build)
        dict(policy_checks())[check](declaring())
        dict(policy_checks())[check](declaring(inflation=False, shared_noise=False, batches=False))


def test_a_problem_that_is_declared_to_be_taken_is_not_refused() -> None:
    def refuses(problem: Problem, seed: int) -> Policy:
        if problem.unknown_shift or problem.sizes[0] != problem.sizes[1]:
            raise ValueError("neither")
        return make_policy("joint", problem, seed=seed)

    for check in ("open_number", "unknown_shift"):
        with pytest.raises(CheckFailure, match=rf"^it declares {check}, but refuses such a problem: neither$"):
            dict(policy_checks())[check](refuses)

    def takes_all(problem: Problem, seed: int) -> Policy:
        known = problem.replace(n_anomalies=problem.sizes[1], shift=4.0)
        return make_policy("ecc-aht", known, seed=seed)

    for check in ("open_number", "unknown_shift"):
        with pytest.raises(
            CheckFailure, match=r"^a problem of .* must be refused, as is declared, but it is accepted$"
        ):
            dict(policy_checks())[check](takes_all)


def test_a_policy_that_finds_nothing_fails() -> None:
    with pytest.raises(CheckFailure, match=r"^strong anomalies were not found in 5 of 5 searches: \[0 1 2\] instead"):
        dict(policy_checks())["strong_anomalies"](lambda problem, seed: composed(problem, seed, Stubborn))


def test_a_policy_that_forgets_its_seed_fails() -> None:
    drawn = np.random.default_rng(0)  # not the policy's own

    def build(problem: Problem, seed: int) -> Policy:
        chooser = Loudest(problem, lambda _: drawn.random())
        return Policy(problem, Parts(PseudoLikelihood(problem), chooser), Never(), rng_for(seed, "own"))

    with pytest.raises(CheckFailure, match=r"^the same seed gives another measurement at step \d+: "):
        check_policy(build)


def test_a_chooser_with_a_memory_that_is_not_saved_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue's way to keep a state, left out."""
    monkeypatch.setattr("eccaht.streams.policies.choosers.LeastMeasured.state", lambda _: {})
    monkeypatch.setattr("eccaht.streams.policies.choosers.LeastMeasured.restore", lambda *_: None)
    with pytest.raises(CheckFailure, match=r"^saved and loaded, it asks for another measurement \d+ steps later: "):
        check_policy("base-arm-combgape")


def test_a_policy_that_keeps_the_arrays_of_its_caller_fails() -> None:
    class Keeping(Policy):
        _last: Any = 0.0

        def tell(self, c: ArrayLike | Mapping[str, float], y: float, *, inflation: float = 1.0) -> None:
            super().tell(c, y, inflation=inflation)
            self._last = c

        @property
        def scores(self) -> Array:
            return super().scores + self._last

    def build(problem: Problem, seed: int) -> Policy:
        chooser = Pair(champion_challenger, PairDesign(problem))
        return Keeping(problem, Parts(PseudoLikelihood(problem), chooser), Never(), rng_for(seed, "own"))

    with pytest.raises(CheckFailure, match=r"^tell keeps the caller's array: changing it later changes the "):
        dict(policy_checks())["inputs"](build)


class Balanced(Constraint):
    """|c|_2 <= 1, and the weights add up to 0: of other directions no multiple is allowed."""

    def allows(self, c: Array) -> bool:
        return bool(abs(c.sum()) < 1e-8 and np.linalg.norm(c) <= 1.0 + 1e-9)

    def scaled(self, direction: Array) -> Array:
        if abs(direction.sum()) > 1e-8 * np.abs(direction).sum():
            raise ValueError("the weights must add up to 0")
        return direction / float(np.linalg.norm(direction))

    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        free, common = covariance.solve_sparse(indices, values), covariance.solve(np.ones(covariance.size))
        weights = free - common * (free.sum() / common.sum())
        return Design(covariance, indices, values, self.scaled(weights - weights.mean()))


class Closed(Balanced):
    """Says of no direction how far it goes."""

    def scaled(self, direction: Array) -> Array:  # noqa: ARG002
        raise ValueError("no")

    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        if set(indices.tolist()) != {4, 5}:
            raise ValueError("no")
        return super().contrast(covariance, indices, values)


def test_a_constraint_that_refuses_directions_is_no_fault_of_the_policy() -> None:
    problem = Problem(families.toeplitz(12, 0.5), shift=4.0, n_anomalies=2, measurements=Balanced())
    assert set(check_policy("ecc-aht", problem=problem)) == {"saving"}
    with pytest.raises(SkipTest, match=r"^Closed\(\) allows none of the measurements whose readings would be given$"):
        dict(policy_checks())["tell_any"]("ecc-aht", problem.replace(measurements=Closed()))


@pytest.mark.parametrize("problem", [None, Problem(families.identity(8), shift=3.0, n_anomalies=1, budget=1.0)])
@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda _: None,
            r"build\(problem, seed\) ended with TypeError: .* takes 1 positional argument but 2 were given",
        ),
        (lambda *_: 5, r"build\(problem, seed\) returned no policy: 'int' has no ask"),
        (lambda *_: None, r"build\(problem, seed\) returned no policy: 'NoneType' has no ask"),
        (5, r"build must be a function of \(problem, seed\) or the name of a policy, not 5"),
        ("ecc", "there is no policy 'ecc': known are ecc-aht, .*"),
        (refusing, r"the policy refuses the problems? it is checked on \(no\): hand in one that it takes"),
    ],
)
def test_what_builds_no_policy_is_one_line(build: Any, words: str, problem: Problem | None) -> None:
    with pytest.raises(CheckFailure, match=f"^{words}$"):
        check_policy(build, problem=problem)


def test_what_is_no_problem_is_one_line() -> None:
    with pytest.raises(CheckFailure, match=r"^problem must be a Problem, not 'int'$"):
        check_policy("ecc-aht", problem=5)  # type: ignore[arg-type]


def test_errors_of_several_lines_become_one() -> None:
    def build(problem: Problem, seed: int) -> Policy:  # noqa: ARG001
        raise TypeError("one\n  two")

    with pytest.raises(CheckFailure, match=r"^build\(problem, seed\) ended with TypeError: one two$"):
        check_policy(build)
