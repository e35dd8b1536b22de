"""The conformance suite of posteriors: ours pass, and each kind of wrong one fails with a line that says why."""

from __future__ import annotations

import numpy as np
import pytest

from eccaht.arrays import Array, Index
from eccaht.checks import check_posterior
from eccaht.posterior import Capabilities, Confidence, Enumeration, LocalSearch, Neighbourhood, Population, Posterior
from eccaht.sets import Hypotheses


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
