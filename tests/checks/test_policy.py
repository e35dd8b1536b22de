"""A user's own policy passes; broken ones fail with the property that does not hold."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from eccaht import Problem, families, make_policy
from eccaht.base.arrays import Array, Index
from eccaht.base.randomness import rng_for
from eccaht.checks import CheckFailure, check_policy
from eccaht.checks.policy import CHECKS
from eccaht.streams.covariance import Covariance
from eccaht.streams.designs import PairDesign
from eccaht.streams.measurements.base import Constraint, Design
from eccaht.streams.policies import Policy
from eccaht.streams.policies.choosers import Pair, champion_challenger
from eccaht.streams.policies.parts import Choice, Chooser, Parts, View
from eccaht.streams.posterior import PseudoLikelihood
from eccaht.streams.shifts import ShiftPrior
from eccaht.streams.stopping import Never
from tests.checks.capabilities import all_but, check_fully


class Loudest(Chooser):
    """Measures the stream of the largest score, or any."""

    def __init__(self, problem: Problem, draw: Callable[[View], float]) -> None:
        self._problem, self._draw = problem, draw

    def choose(self, view: View) -> Choice:
        c = np.zeros(self._problem.size)
        k = int(self._draw(view) * c.size) if view.n_readings % 2 else view.ranking.challenger
        c[k] = self._problem.budget
        return Choice(c)


def composed(problem: Problem, seed: int, kind: type[Policy] = Policy) -> Policy:
    """A policy as a user puts it together."""
    chooser = Loudest(problem, lambda view: view.rng.random())
    return kind(problem, Parts(PseudoLikelihood(problem), chooser), Never(), rng_for(seed, "own"))


def test_a_policy_of_a_user_passes() -> None:
    assert set(check_policy(composed)) == {"saving"}  # of its code, no file can know


def test_names_and_problems_of_a_user() -> None:
    problem = Problem(np.diag(np.linspace(1.0, 4.0, 10)), shift=np.linspace(-5, -3, 10), n_anomalies=2, budget=1.0)
    assert check_policy("ecc-aht", problem=problem) == {}
    unknown = problem.replace(shift=ShiftPrior(np.zeros(10), np.linspace(3.0, 4.0, 10)), n_anomalies=(1, 2))
    assert set(check_policy("joint", problem=unknown, skip={"strong_anomalies": "long"})) == {
        "relabelling",  # the prior of the shifts differs from stream to stream
        "strong_anomalies",
    }


def test_checks_can_be_left_out_and_called_alone() -> None:
    skip = dict.fromkeys(CHECKS, "long")
    assert check_policy("hds", skip=skip) == skip
    with pytest.raises(ValueError, match="colour"):
        check_policy("hds", skip={"colour": "none"})
    small = Problem(families.identity(8), shift=3.0, n_anomalies=1, budget=0.1)
    assert check_fully(composed, problem=small, skip=all_but("sound")) == all_but("sound")


def refusing(problem: Problem, seed: int) -> Policy:  # noqa: ARG001
    raise ValueError("no")


@pytest.mark.parametrize(("build", "word"), [(lambda *_: 5, "no policy"), (refusing, "refuses")])
def test_what_builds_no_policy_is_one_line(build: Any, word: str) -> None:
    with pytest.raises(CheckFailure, match=f"^.*{word}.*$"):
        check_policy(build)


# -- under a constraint of a user's own ------------------------------------------------------------------


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


def test_a_constraint_that_refuses_directions_is_no_fault_of_the_policy() -> None:
    problem = Problem(families.toeplitz(12, 0.5), shift=4.0, n_anomalies=2, measurements=Balanced())
    assert set(check_policy("ecc-aht", problem=problem)) == {"saving"}
    with pytest.raises(CheckFailure, match="not allow"):
        check_policy(
            lambda problem, seed: make_policy("ecc-aht", problem.replace(budget=9.0), seed=seed), problem=problem
        )


# -- broken policies -------------------------------------------------------------------------------------


class Picky(Policy):
    def tell(self, c: ArrayLike | Mapping[str, float], y: float) -> None:
        if np.count_nonzero(c) > 1:  # type: ignore[arg-type]
            raise ValueError("one stream at a time")
        super().tell(c, y)


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


class Stubborn(Policy):
    """Prefers the first streams, whatever is read."""

    @property
    def decision(self) -> Index:
        return np.arange(self.problem.known_number)

    @property
    def scores(self) -> Array:
        return np.zeros(self.problem.size)


class Unlisted(Policy):
    """Does not say what is pending."""

    @property
    def pending(self) -> Array:
        return np.zeros((0, self.problem.size))


class Everywhere(Policy):
    """Measures streams that are not available."""

    def ask(self, *, batch: int | None = None, available: Any = None) -> Array:  # noqa: ARG002
        return super().ask(batch=batch)


class Absent(PseudoLikelihood):
    """Takes readings of one moment for nothing."""

    def update_together(self, C: Array, y: Array) -> None:
        pass


class Overeager(Policy):
    """Takes a whole vector for nothing."""

    def observe(self, x: Any) -> None:  # noqa: ARG002
        self.n_readings += 1


def declaring(belief: type[PseudoLikelihood] = PseudoLikelihood, kind: type[Policy] = Policy, **declared: bool) -> Any:
    """A policy whose belief declares this of itself."""

    def build(problem: Problem, seed: int) -> Policy:
        believed = belief(problem)
        believed.can = replace(belief.can, **declared)
        chooser = Pair(champion_challenger, PairDesign(problem))
        return kind(problem, Parts(believed, chooser), Never(), rng_for(seed, "own"))

    return build


DRAWN = np.random.default_rng(0)  # not the policy's own


def forgetting_its_seed(problem: Problem, seed: int) -> Policy:
    chooser = Loudest(problem, lambda _: DRAWN.random())
    return Policy(problem, Parts(PseudoLikelihood(problem), chooser), Never(), rng_for(seed, "own"))


def taking_known_numbers_alone(problem: Problem, seed: int) -> Policy:
    if problem.sizes[0] != problem.sizes[1]:
        raise ValueError("no")
    return make_policy("joint", problem, seed=seed)


def taking_all(problem: Problem, seed: int) -> Policy:
    return make_policy("ecc-aht", problem.replace(n_anomalies=problem.sizes[1], shift=4.0), seed=seed)


def own(kind: type[Policy]) -> Any:
    return partial(composed, kind=kind)


BROKEN: list[tuple[str, str, Any]] = [  # the check, a word of its message, and what builds the policy
    ("same_seed", "same seed", forgetting_its_seed),
    ("reading", "asked again", own(Unsteady)),
    ("reading", "changes the search", own(Restless)),
    ("sound", r"\|c\|_1 = 6", own(Rescaled)),
    ("sound", "sorted", own(Unsorted)),
    ("sound", "2 streams", own(Short)),
    ("tell_any", "one stream at a time", own(Picky)),
    ("relabelling", "does not relabel", own(Stubborn)),
    ("strong_anomalies", "5 of 5", own(Stubborn)),
    ("batches", "pending", own(Unlisted)),
    ("late_readings", "pending", own(Unlisted)),
    ("unavailable", "not available", own(Everywhere)),
    ("unusual_readings", "shared_noise", declaring(Absent)),
    ("unusual_readings", "accepted", declaring(kind=Overeager)),
    ("other_problems", "open_number", taking_known_numbers_alone),
    ("other_problems", "accepted", taking_all),
    ("other_problems", "ask gave", lambda problem, seed: composed(problem.replace(budget=3.0), seed, Rescaled)),
    ("posterior", "confidence", declaring(posterior=True)),
    ("exact_lead", "lead", declaring(exact_lead=True)),
]


@pytest.mark.parametrize(("check", "word", "build"), BROKEN)
def test_a_broken_policy_fails_with_what_is_wrong(check: str, word: str, build: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(CheckFailure, match=f"^.*{word}.*$"):
            check_fully(build, skip=all_but(check))


def test_a_chooser_with_a_memory_that_is_not_saved_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eccaht.streams.policies.choosers.LeastMeasured.FIELDS", ())
    with pytest.raises(CheckFailure, match="saved and loaded"):
        check_policy("base-arm-combgape")
