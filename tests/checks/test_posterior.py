"""The conformance suite of posteriors: ours pass, and each kind of wrong one fails with a line that says why."""

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
)
from eccaht.streams.sets import Hypotheses


@pytest.mark.parametrize("build", [Enumeration, Population])
def test_ours_pass(build: type[Enumeration]) -> None:
    assert check_posterior(build) == {}


def test_what_is_declared_impossible_is_left_out() -> None:
    assert {"probabilities", "hypotheses", "unknown shifts"} <= set(check_posterior(LocalSearch))


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

    FIELDS = Population.FIELDS[:0]  # type: ignore[assignment]


class Meddling(Enumeration):
    """Counts every reading twice."""

    def update(self) -> None:
        self._likelihood.evidence.linear *= 2.0
        super().update()


class Ahead(Enumeration):
    def advantage(self, around: Neighbourhood, needed: float = -np.inf) -> float:
        return super().advantage(around, needed) + 9.0


def answering(**answers: Any) -> type[Enumeration]:
    """Enumeration, with some answers replaced."""
    methods = {name: lambda _, *__, answer=answer, **___: answer for name, answer in answers.items()}
    return type("Own", (Enumeration,), methods)


WRONG: list[tuple[str, Any]] = [  # a word of the message, and what builds the posterior
    ("exact marginals", Flat),
    ("estimated confidence", Overconfident),
    ("exact", Boastful),
    ("MAP set", Blind),
    ("add up to 2", Unscaled),
    ("nothing to separate", Decided),
    ("same seed", Unseeded),
    ("goes on differently", Forgetful),
    ("off by|not among", Meddling),
    ("advantage", Ahead),
    ("candidates", answering(candidates=None)),
    ("candidates", answering(candidates=np.zeros((0, 2), int))),
    ("candidates", answering(candidates=np.ones((1, 2)))),
    ("marginals", answering(marginals=np.ones(5))),
    ("marginals", answering(marginals=np.full(12, np.nan))),
    ("Confidence", answering(confidence=None)),
    ("Confidence", answering(confidence=Confidence(0.5, "sure"))),  # type: ignore[arg-type]
    ("no probability", answering(confidence=Confidence(1.5, "exact"))),
    ("build", "joint"),
]


@pytest.mark.parametrize(("word", "build"), WRONG)
def test_wrong_ones_fail_with_one_clear_line(word: str, build: Any) -> None:
    with pytest.raises(CheckFailure, match=f"^.*({word}).*$"):
        check_posterior(build)


def test_a_posterior_may_declare_that_it_takes_no_whole_vectors() -> None:
    class Sums(Enumeration):
        can = Capabilities(open_number=True, unknown_shift=True, posterior=True, exact_lead=True)

    assert set(check_posterior(Sums)) == {"whole vectors"}
