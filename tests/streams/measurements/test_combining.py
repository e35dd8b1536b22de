"""Constraints combine by &; what conflicts is named in one line, before any search."""

import pickle
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, families, make_policy
from eccaht.base.arrays import Array
from eccaht.streams.measurements import (
    AtMost,
    Available,
    Box,
    Budget,
    Combined,
    Constraint,
    Levels,
    Noise,
    NonNegative,
    OneOf,
    OnePerGroup,
    Readout,
)
from tests.streams.measurements.test_constraints import HalfBudget, TwoBlocks

K = 6
ON = np.array([True, True, True, False, True, True])


def vector(*weights: float) -> Array:
    return np.array(weights + (0.0,) * (K - len(weights)))


ALLOWED: list[tuple[Constraint, Array, bool]] = [
    (Readout(1.0, 0.3), vector(0.5, -0.5), True),
    (Readout(1.0, 0.3), vector(0.5, -0.6), False),
    (NonNegative(), vector(3.0, 2.0), True),
    (NonNegative(), vector(3.0, -0.1), False),
    (Box(-1.0, 2.0), vector(2.0, -1.0), True),
    (Box(-1.0, 2.0), vector(-2.0, 1.0), False),
    (AtMost(2), vector(1.0, 1.0), True),
    (AtMost(2), vector(1.0, 1.0, 1.0), False),
    (OnePerGroup([0, 0, 1, 1, None, None]), vector(1.0, 0.0, 1.0, 0.0, 1.0, 1.0), True),
    (OnePerGroup([0, 0, 1, 1, None, None]), vector(1.0, 1.0), False),
    (Levels([-1, 0, 1]), vector(1.0, -1.0), True),
    (Levels([-1, 0, 1]), vector(0.5), False),
    (Levels([-1, 1]), vector(1.0), False),
    (Levels([-1, 1]) & Available(ON), np.where(ON, 1.0, 0.0), True),
    (OneOf([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 1]]), vector(1.0, 1.0), True),
    (OneOf([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 1]]), vector(2.0, 2.0), False),
    (Available(ON), vector(1.0, 1.0), True),
    (Available(ON), vector(0.0, 0.0, 0.0, 1.0), False),
    (NonNegative() & AtMost(1), vector(1.0, 1.0), False),
    (Budget(2.0) & Box(-1.0, 1.0), vector(1.0, -1.0), True),
    (Budget(2.0) & Box(-1.0, 1.0), vector(1.5), False),
]


@pytest.mark.parametrize("n", range(len(ALLOWED)))
def test_what_is_allowed(n: int) -> None:
    within, c, allowed = ALLOWED[n]
    assert within.allows(c) is allowed


CONFLICTS: dict[str, tuple[Any, str]] = {
    "signs and levels": (
        lambda: NonNegative() & AtMost(3) & Levels([-1]),
        r"NonNegative\(\) and Levels\(\[-1\]\) conflict: no level is left for stream 0",
    ),
    "all off": (
        lambda: Budget(2.0) & Available(np.zeros(K, dtype=bool)),
        r"Available\(.*\) allows no measurement: no str",
    ),
    "halves": (
        lambda: Available(ON) & NonNegative() & Available(~ON),
        r"^Available\(.*\) and Available\(.*\) conflict: no stream may have weight$",
    ),
    "opposite signs": (
        lambda: NonNegative() & Box(-np.inf, 0.0),
        r"NonNegative\(\) and Box\(-inf, 0\) conflict: no str",
    ),
    "no zero and few": (
        lambda: Levels([-1, 1]) & AtMost(2),
        r"Levels\(\[-1, 1\]\) and AtMost\(2\) conflict: 6 streams cannot be without weight, which are too many",
    ),
    "no zero and groups": (
        lambda: Levels([1, 2]) & OnePerGroup([0, 0, 1, 1, 2, 2]),
        r"Levels.* and OnePerGroup.* conflict",
    ),
    "levels and limit": (
        lambda: Levels([0, 5]) & Budget(4.0),
        r"Levels\(\[0, 5\]\) and Budget\(limit=4.0\) conflict: \|c\|_1 would be at least 5",
    ),
    "levels and box": (
        lambda: Levels([0, 2]) & Box(-1.0, 1.0),
        r"Levels.* and Box.* conflict: every weight would be 0",
    ),
    "two lists": (
        lambda: Levels([0, 1]) & Levels([0, 2]),
        r"Levels.* and Levels.* conflict: no level is in both lists",
    ),
    "list and few": (
        lambda: OneOf(np.ones((2, K))) & AtMost(2),
        r"OneOf\(2 x 6 matrix\) and AtMost\(2\) conflict: none of the listed measurements is left",
    ),
    "two noises": (
        lambda: Readout(1.0, 0.3) & Readout(1.0, 0.2),
        r"Readout.* and Readout.* conflict: one instrument has one noise: 0.3 and 0.2",
    ),
    "endless weights": (lambda: AtMost(2) & Noise(0.1), r"Noise\(0.1\) allows no measurement: readout noise needs"),
    "wrong size": (lambda: Available(ON[:4]), r"Available is for 4 streams, but there are 6"),
    "wrong list": (lambda: OneOf(np.ones((2, 4))), r"OneOf lists measurements of 4 streams, but there are 6"),
    "box without 0": (lambda: Box(0.5, 1.0), r"Box\(0.5, 1\) leaves out 0: every stream may be without weight"),
    "a user's own": (lambda: NonNegative() & TwoBlocks(K), r"TwoBlocks cannot be combined by &"),
    "a user's own first": (lambda: TwoBlocks(K) & NonNegative(), r"TwoBlocks cannot be combined by &"),
    "a subclass": (lambda: HalfBudget(2.0) & NonNegative(), r"HalfBudget cannot be combined by &"),
    "no streams": (lambda: AtMost(0), r"the number of streams at once must be a whole number of at least 1"),
    "no levels": (lambda: Levels([0]), r"Levels needs a value other than 0"),
    "no mask": (lambda: Available([0, 1]), r"Available needs a mask"),
    "an empty row": (lambda: OneOf([[0, 0], [1, 0]]), r"row 0 of the list of measurements is all zero"),
    "negative noise": (lambda: Readout(1.0, -0.1), r"must not be negative"),
    "lists of streams": (lambda: OnePerGroup([[0, 1], [1, 2]]), "a label for each"),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicts_are_named_in_one_line(name: str) -> None:
    build, message = CONFLICTS[name]
    with pytest.raises(ValueError, match=message) as error:
        Problem(np.eye(K), shift=2.0, n_anomalies=1, measurements=build())
    assert "\n" not in str(error.value)


INSEPARABLE: dict[str, tuple[Constraint, str]] = {
    "both off": (Available(np.arange(K) < 4), r"cannot tell streams 4 and 5 apart: neither may have weight"),
    "listed alike": (OneOf([[1, 1, 0, 2, 3, 4], [0, 0, 1, 2, 5, 1]]), r"streams 0 and 1 apart: every listed"),
    "one level": (Levels([1]), r"streams 0 and 1 apart: their weights are given and show them alike"),
    "small budget": (
        Budget(0.4) & NonNegative(),
        r"streams 0 and 1 apart: unit contrast needs an L1 norm of at least 0.5",
    ),
}


@pytest.mark.parametrize("name", INSEPARABLE)
@pytest.mark.parametrize("policy", ["ecc-aht", "joint-pair", "joint"])
def test_streams_that_no_measurement_separates_are_named(name: str, policy: str) -> None:
    within, message = INSEPARABLE[name]
    with pytest.raises(ValueError, match=message) as error:
        make_policy(policy, Problem(families.toeplitz(K, 0.5), shift=2.0, n_anomalies=1, measurements=within))
    assert "\n" not in str(error.value)


def test_combining_is_flat_and_comparable() -> None:
    all_parts = NonNegative() & (AtMost(2) & Budget(4.0))
    assert isinstance(all_parts, Combined)
    assert all_parts.parts == (NonNegative(), AtMost(2), Budget(4.0))
    assert all_parts == (NonNegative() & AtMost(2)) & Budget(4.0)
    assert all_parts != NonNegative() & AtMost(3) & Budget(4.0)
    assert Budget(4.0) & NonNegative() == Budget(4.0) & NonNegative()
    assert repr(all_parts) == "NonNegative() & AtMost(2) & Budget(limit=4.0)"
    assert len({Levels([0, 1]), Levels([1, 0]), Levels([0, 2])}) == 2


@pytest.mark.parametrize("n", range(len(ALLOWED)))
def test_constraints_are_pickled_by_value(n: int) -> None:
    within, c, allowed = ALLOWED[n]
    within.allows(c)  # fills what it remembers
    if within.largest_weight < np.inf:
        within.contrast(families.toeplitz(K, 0.5), np.array([0, 2]), np.array([1.0, -1.0]))
    again = pickle.loads(pickle.dumps(within))
    assert again == within
    assert again.allows(c) is allowed
