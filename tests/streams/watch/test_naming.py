"""Onset, set and sizes: the evidence against quadrature and densities, and easy cases named right."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from eccaht.base.arrays import Array
from eccaht.streams.watch.naming import SIZES, Look, Named, Onset, bar, best_set, gains, name_streams
from eccaht.streams.watch.sums import Members, RecentSums, Sums
from tests.streams.watch.worlds import inverse, quiet, toeplitz

SIZE = 8
NOISE = toeplitz(SIZE, 0.7) * np.outer(np.arange(1.0, 9.0), np.arange(1.0, 9.0))
PRECISION = inverse(NOISE)
UNITS = np.arange(1.0, 9.0)


def windows_of(rows: Array) -> RecentSums:
    windows = RecentSums(NOISE, PRECISION)
    windows.refill(rows)
    return windows


def ratios_of_densities(rows: Array, members: Members) -> list[float]:
    """Shifts N(m, (0.3 m)^2) make the windows since the onset jointly Gaussian, with a common part."""
    mean, cover = np.zeros(SIZE), np.zeros((SIZE, SIZE))
    for k, m in zip(*members, strict=True):
        mean[k], cover[k, k] = m * UNITS[k], (0.3 * m * UNITS[k]) ** 2
    ratios = []
    for onset in range(len(rows)):
        there = ~np.isnan(rows[onset:].ravel())
        length = len(rows) - onset
        plain = np.kron(np.eye(length), NOISE)[np.ix_(there, there)]
        moved = plain + np.kron(np.ones((length, length)), cover)[np.ix_(there, there)]
        x = rows[onset:].ravel()[there]
        ratios.append(
            multivariate_normal(np.tile(mean, length)[there], moved).logpdf(x)
            - multivariate_normal(np.zeros(len(x)), plain).logpdf(x)
        )
    return ratios


@pytest.mark.parametrize("silent", [(), ((3, 1),), ((0, 2), (2, 2), (2, 6), (3, 1))])
def test_evidence_is_the_ratio_of_densities(silent: tuple[tuple[int, int], ...]) -> None:
    rows, members = quiet(NOISE, 4), Members((2, 5), (1.0, -2.0))
    for place in silent:
        rows[place] = np.nan
    np.testing.assert_allclose(windows_of(rows).evidence(members, 4), ratios_of_densities(rows, members), rtol=1e-8)


def test_windows_are_those_that_were_taken_last() -> None:
    rows = quiet(NOISE, 30)
    rows[::7, 3] = np.nan
    few = RecentSums(NOISE, PRECISION, longest=10)
    few.refill(rows)
    assert len(few) == 10
    for count in (1, 4, 10):
        kept, direct = few.last(count), windows_of(rows[-count:]).last(count)
        np.testing.assert_allclose(kept.b, direct.b, atol=1e-9)
        np.testing.assert_allclose(kept.M, direct.M, atol=1e-9)


def gain(sums: Sums, few: Members, stream: int, mean: float) -> float:
    """What a further stream gains, by quadrature."""
    given = sums.given(few)
    x = np.linspace(-20.0, 20.0, 40001)
    likelihood = np.exp(given.field[stream] * x - 0.5 * given.curvature[stream] * x**2)
    return float(np.log(np.trapezoid(likelihood * norm(mean, 0.3 * abs(mean)).pdf(x), x)))


def test_gains_of_a_further_stream_add_up_to_the_evidence_of_the_set() -> None:
    windows = windows_of(quiet(NOISE, 5))
    sums, few, more = windows.last(3), Members((2,), (1.0,)), Members((2, 3), (1.0, -2.0))
    added = windows.evidence(more, 5)[2] - windows.evidence(few, 5)[2]
    assert gain(sums, few, 3, -2.0) == pytest.approx(added, abs=1e-6)


def test_all_but_one_member_is_the_set_without_it() -> None:
    sums, members = windows_of(quiet(NOISE, 5)).last(3), Members((2, 3, 6), (1.0, -2.0, 4.0))
    field, curvature = sums.given(members).and_without_each()
    for place in range(3):
        rest = sums.given(members.without(place))
        np.testing.assert_allclose(field[place + 1], rest.field, atol=1e-9)
        np.testing.assert_allclose(curvature[place + 1], rest.curvature, atol=1e-9)


def test_gains_are_those_of_the_integral_with_the_weight_of_the_size() -> None:
    sums = Sums(np.array([5.0, -8.0]), np.diag([4.0, 9.0]))
    for common, like, other in ((0.0, 1 / 30, 1 / 30), (1.0, 0.6, 0.4 / 29), (-1.0, 0.4 / 29, 0.6)):
        gained = gains(sums.b, sums.M.diagonal(), common)
        place = int(np.searchsorted(SIZES, 1.0))
        for stream, weight in ((0, like), (1, other)):
            x = np.linspace(-20.0, 20.0, 40001)
            likelihood = np.exp(sums.b[stream] * x - 0.5 * sums.M[stream, stream] * x**2)
            sign = np.sign(sums.b[stream])
            integral = np.trapezoid(likelihood * norm(sign, 0.3).pdf(x), x)
            assert gained[place, stream] == pytest.approx(np.log(integral * weight), abs=1e-6)


def test_a_set_that_no_single_change_improves() -> None:
    rng = np.random.default_rng(3)
    sums = Sums(rng.standard_normal(SIZE) * 12.0, 10.0 * inverse(toeplitz(SIZE, 0.5)))
    look = best_set(sums, 1.0, Members((), ()), changes=30)
    members = look.members
    assert look.changed() is None
    outside = np.setdiff1d(np.arange(SIZE), members.streams)
    given = sums.given(members)
    gained = gains(given.field, given.curvature, look.common).max(axis=0)
    assert (gained[outside] <= bar(len(members.streams), SIZE) + 0.1).all()


def test_a_set_improves_over_the_windows_from_a_wrong_one() -> None:
    rows = quiet(NOISE, 40, seed=1)
    rows[10:, [1, 6]] += 2.0 * UNITS[[1, 6]]
    windows = windows_of(rows)
    wrong = Named(np.array([0, 3]), 2.0 * UNITS[[0, 3]], np.zeros(SIZE), Onset(10, 10, 10), 2.0)
    for _ in range(12):
        wrong = name_streams(windows, 40, begin=10, settled=True, start=wrong)
    assert wrong.members.tolist() == [1, 6]


def test_confidence_is_that_of_an_enumeration() -> None:
    """Of all sets of one or two of a few streams that do not depend on each other."""
    size = 4
    sums = Sums(np.array([24.0, 21.0, 6.0, 2.0]), 20.0 * np.eye(size))
    look = Look(sums, 1.0, Members((0, 1), (1.0, 1.0)))
    apart = gains(sums.b, sums.M.diagonal(), 1.0).max(axis=0)

    def log_weight(members: tuple[int, ...]) -> float:
        return sum(apart[k] - bar(n, size) for n, k in enumerate(members))

    sets: list[tuple[int, ...]] = [(a,) for a in range(size)] + [(a, b) for a in range(size) for b in range(a)]
    sets += [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    weights = np.exp([log_weight(members) for members in sets])
    probability = weights[sets.index((1, 0))] / weights.sum()
    assert 0.2 < probability < 0.9
    assert look.confidence(look.beliefs()) == pytest.approx(probability**2.5, abs=0.05)


@pytest.mark.parametrize(("moved", "sizes"), [((3,), (2.0,)), ((1, 2, 6), (2.0, 2.0, -2.0))])
def test_steps_are_named_with_onset_and_sizes(moved: tuple[int, ...], sizes: tuple[float, ...]) -> None:
    rows = quiet(NOISE, 60, seed=1)
    rows[40:, list(moved)] += np.array(sizes) * UNITS[list(moved)]
    rows[50, 0] = np.nan
    windows = windows_of(rows)
    named = name_streams(windows, 60)
    for _ in range(4):
        named = name_streams(windows, 60, begin=named.onset.best, start=named)
    assert named.members.tolist() == list(moved)
    assert abs(named.onset.best - 40) <= 1
    assert named.onset.first <= named.onset.best <= named.onset.last
    np.testing.assert_allclose(named.sizes, np.array(sizes) * UNITS[list(moved)], rtol=0.4)
    assert (named.beliefs[list(moved)] > 0.9).all()
    assert (np.delete(named.beliefs, moved) < 0.5).all()


def test_only_the_last_windows_say_who_is_in_the_set() -> None:
    rows = quiet(NOISE, 60, seed=1)
    rows[10:40, 1] += 3.0 * UNITS[1]
    rows[40:, 5] += 3.0 * UNITS[5]
    assert name_streams(windows_of(rows), 60, begin=10, settled=True, recent=20).members.tolist() == [5]
