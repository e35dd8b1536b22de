"""The conformance suite of posteriors: ours pass, and each kind of wrong one fails with a line that says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eccaht.base.arrays import Array, Index
from eccaht.checks import CheckFailure, check_posterior
from eccaht.streams.posterior import (
    Capabilities,
    Confidence,
    Enumeration,
    LocalSearch,
    Neighbourhood,
    Population,
    Posterior,
)
from eccaht.streams.sets import Hypotheses


@pytest.mark.parametrize("build", [Enumeration, Population])
def test_ours_pass(build: type[Enumeration]) -> None:
    assert check_posterior(build) == {}


def test_what_is_declared_impossible_is_left_out() -> None:
    left_out = check_posterior(LocalSearch)
    assert left_out["probabilities"] == "it declares no posterior"
    assert left_out["unknown shifts"].startswith("it declares that it needs known shifts")


class Flat(Enumeration):
    """Ignores the readings."""

    def marginals(self) -> Array:
        return np.full(12, 2.0 / 12.0)


class Overconfident(Enumeration):
    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence:
        return Confidence(min(super().confidence(around, needed).probability + 0.2, 1.0), "estimated")


class Boastful(Population):
    """Calls exact what is an estimate."""

    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence:
        return super().confidence(around, needed)._replace(how="exact")


class Blind(Enumeration):
    """Finds the second best set."""

    def candidates(self) -> Index:
        return self.sets[np.argsort(-self.log_posterior)[1:2]]


class Unscaled(Enumeration):
    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        found = super().in_doubt(around)
        return found._replace(chance=2.0 * found.chance)


class Decided(Enumeration):
    """Leaves nothing in doubt."""

    def in_doubt(self, around: Neighbourhood) -> Hypotheses:
        (rest, shifts, row, stream, shift, _), best = super().in_doubt(around), [0]
        return Hypotheses(rest, shifts, row[best], stream[best], shift[best], np.ones(1))


class Unseeded(Population):
    def update(self) -> None:
        self._rng = np.random.default_rng()
        super().update()


class Forgetful(Population):
    """Starts anew where it should go on."""

    def state(self) -> dict[str, Array]:
        return {}

    def restore(self, state: dict[str, Array]) -> None:
        pass


class Silent(Enumeration):
    def confidence(self, around: Neighbourhood, needed: float = 0.0) -> Confidence:  # noqa: ARG002
        return None  # type: ignore[return-value]


class Meddling(Enumeration):
    """Counts every reading twice."""

    def update(self) -> None:
        self._likelihood.evidence.linear *= 2.0
        super().update()


class Ahead(Enumeration):
    def advantage(self, around: Neighbourhood, needed: float = -np.inf) -> float:
        return super().advantage(around, needed) + 9.0


WRONG: dict[type[Posterior], str] = {
    Flat: "exact marginals on the problem 'few readings' are off by",
    Overconfident: "the estimated confidence on the problem 'few readings' is",
    Boastful: "exact marginals .* are off by",
    Blind: "the MAP set, of probability .*, is not among the candidates",
    Unscaled: "add up to 2",
    Decided: "nothing to separate",
    Unseeded: "two posteriors of the same seed differ",
    Forgetful: "a restored posterior goes on differently",
    Silent: "the confidence is None, although it declares a posterior",
    Meddling: "off by|not among|changes the statistics",
    Ahead: "the advantage on the problem .* is",
}


@pytest.mark.parametrize("build", WRONG)
def test_wrong_ones_fail_with_one_clear_line(build: type[Enumeration]) -> None:
    with pytest.raises(AssertionError, match=WRONG[build]) as failure:
        check_posterior(build)
    assert "\n" not in str(failure.value)


def test_a_posterior_may_declare_that_it_takes_no_whole_vectors() -> None:
    class Sums(Enumeration):
        can = Capabilities(open_number=True, unknown_shift=True, posterior=True, exact_lead=True)

    assert check_posterior(Sums) == {"whole vectors": "it declares that it takes no whole vectors"}


def answering(**answers: Any) -> type[Enumeration]:
    """Enumeration, with some answers replaced."""
    methods = {name: lambda _, *__, answer=answer, **___: answer for name, answer in answers.items()}
    return type("Own", (Enumeration,), methods)


NO_ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "no candidates": ({"candidates": None}, "candidates.. .* must be an array, not 'NoneType'"),
    "no set": ({"candidates": np.zeros((0, 2), int)}, "candidates.. .* must hold a set at least"),
    "one set, flat": ({"candidates": np.arange(2)}, r"candidates.. .* must be of any x 2 numbers, not .* \(2,\)"),
    "sets of floats": ({"candidates": np.ones((1, 2))}, "candidates.. .* must hold whole numbers, not float64"),
    "few marginals": ({"marginals": np.ones(5)}, r"marginals.. .* must be of 12 numbers, not of the shape \(5,\)"),
    "marginals of NaN": ({"marginals": np.full(12, np.nan)}, "exact marginals .* are off by nan .*"),
    "a number": ({"confidence": 0.5}, "confidence.. .* must be a Confidence, not 0.5"),
    "another word": ({"confidence": Confidence(0.5, "sure")}, "confidence.. .* is 'sure': it must be one of exact, .*"),  # type: ignore[arg-type]
    "beyond 1": ({"confidence": Confidence(1.5, "exact")}, "confidence.. .* is 1.5"),
    "no advantage": ({"advantage": None}, "advantage.. .* must be a number, not None"),
    "no hypotheses": ({"in_doubt": [1.0]}, "in_doubt.. .* must be Hypotheses, not 'list'"),
    "no state": ({"state": None}, "state.. .* must be a dict of arrays, not 'NoneType'"),
    "a number as state": ({"state": {"n": 3}}, "the state 'n' .* must be an array, not 'int'"),
}


@pytest.mark.parametrize("name", NO_ANSWERS)
def test_answers_of_another_type_are_one_line(name: str) -> None:
    answers, words = NO_ANSWERS[name]
    with pytest.raises(CheckFailure, match=f"^{words}$"):
        check_posterior(answering(**answers))


class Failing(Enumeration):
    def update(self) -> None:
        raise KeyError("x")


class Undeclared(Enumeration):
    can = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda *_: 5, r"build\(likelihood, prior, rng\) returned no posterior: 'int' has no can"),
        ("joint", r"build must be a function of \(likelihood, prior, rng\), not 'joint'"),
        (lambda _: 5, "build on the problem 'few readings' ended with TypeError: .* takes 1 positional argument .*"),
        (Undeclared, "can must be Capabilities, not None"),
        (Failing, "the check of 'answers' ended with KeyError: 'x'"),
    ],
)
def test_what_is_no_posterior_is_one_line(build: Any, words: str) -> None:
    with pytest.raises(CheckFailure, match=f"^{words}$"):
        check_posterior(build)


def test_checks_can_be_left_out() -> None:
    skip = {"saving": "it is never saved"}
    assert check_posterior(Forgetful, skip=skip) == skip
    with pytest.raises(ValueError, match="there is no check 'colour': known are answers, candidates, probabilities, "):
        check_posterior(Enumeration, skip={"colour": "none"})
