"""What to read next: compared with all possible choices, and with the leading directions."""

from itertools import combinations

import numpy as np
import pytest

from eccaht import Problem, Watch, families
from eccaht.base.arrays import Array
from eccaht.measurements import AtMost, Budget, Constraint, NonNegative, OneOf, Readout
from eccaht.streams.watch.choice import Choice
from tests.streams.watch.conformance import check_watch
from tests.streams.watch.worlds import inverse, toeplitz

SIZE = 7
NOISE = toeplitz(SIZE, 0.8)
VARIANCE = np.array([0.1, 0.0, 3.0, 0.2, 0.0, 0.4, 0.0])


def problem(measurements: Constraint) -> Problem:
    return Problem(NOISE, shift=1.0, n_anomalies=1, measurements=measurements)


def nats(C: Array) -> float:
    noise = C @ NOISE @ C.T
    both = noise + (C * VARIANCE) @ C.T
    return 0.5 * float(np.linalg.slogdet(both)[1] - np.linalg.slogdet(noise)[1])


def test_single_streams_are_the_best_ones_given_those_before() -> None:
    units = np.eye(SIZE)
    chosen = np.abs(Choice(problem(AtMost(1)), 3)(VARIANCE)).argmax(axis=1).tolist()
    for m in range(3):
        before = chosen[:m]
        worth = {k: nats(units[[*before, k]]) for k in range(SIZE) if k not in before}
        assert worth[chosen[m]] == pytest.approx(max(worth.values()))
    best = max(nats(units[list(some)]) for some in combinations(range(SIZE), 3))
    assert nats(units[chosen]) >= (1.0 - np.exp(-1.0)) * best


def test_a_suspect_is_read_with_the_streams_whose_noise_is_like_its_own() -> None:
    chosen = Choice(problem(AtMost(1)), 3)(1e-9 + np.eye(1, SIZE, 3)[0])
    assert sorted(np.abs(chosen).argmax(axis=1).tolist()) == [2, 3, 4]


def test_sums_are_the_leading_directions() -> None:
    root = np.sqrt(VARIANCE)
    largest = np.linalg.eigvalsh(root[:, None] * inverse(NOISE) * root)[::-1]
    for readings in (1, 2):
        C = Choice(problem(Budget(1e6)), readings)(VARIANCE)
        assert nats(C) == pytest.approx(0.5 * np.log1p(largest[:readings]).sum(), rel=1e-3)


def test_the_first_one_is_for_the_stream_that_was_not_read() -> None:
    singles = Choice(problem(AtMost(1)), 2)(VARIANCE, 4)
    assert np.flatnonzero(singles[0]).tolist() == [4]
    c = Choice(problem(Budget(1e6)), 2)(VARIANCE, 4)[0]
    assert c[4] ** 2 / (c @ NOISE @ c) == pytest.approx(inverse(NOISE)[4, 4], rel=0.05)


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="only 7 measurements"):
        Choice(problem(AtMost(1)), 8)
    with pytest.raises(ValueError, match="leave readings out"):
        Choice(problem(Budget(1.0)), 8)


PAIRS = np.vstack([np.eye(8), np.eye(8) - np.roll(np.eye(8), 1, 1)])


@pytest.mark.parametrize(
    ("measurements", "readings"),
    [(AtMost(1), 2), (Budget(3.0), 1), (Budget(3.0), 3), (OneOf(PAIRS), 2), (NonNegative(), 2),
     (Readout(1.0, 0.3), 2), (Budget(1.0), None)],
)  # fmt: skip
def test_conformance(measurements: Constraint, readings: int | None) -> None:
    known = Problem(families.toeplitz(8, rho=0.6), shift=2.0, n_anomalies=(1, 2), measurements=measurements)
    assert check_watch(lambda given: Watch(given, readings), problem=known) == {}


def test_conformance_with_heavy_tails_and_an_estimate() -> None:
    assert check_watch(lambda given: Watch(given.replace(degrees_of_freedom=5.0, estimated_from=300), 2)) == {}
