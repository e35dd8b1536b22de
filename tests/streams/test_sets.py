"""Possible sets, their prior, and many weighted ones."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.streams.sets import Hypotheses, SetPrior


@pytest.mark.parametrize(("K", "least", "most"), [(6, 2, 2), (6, 0, 3), (5, 1, 4), (7, 1, 1)])
def test_all_sets_are_all_sets_and_the_prior_adds_up(K: int, least: int, most: int) -> None:
    prior = SetPrior(K, least, most)
    rows = prior.all_sets()
    found = {tuple(sorted(k for k in row if k < K)) for row in rows.tolist()}
    assert found == {c for m in range(least, most + 1) for c in combinations(range(K), m)}
    assert len(rows) == prior.count == sum(comb(K, m) for m in range(least, most + 1))
    chance = np.exp(prior.log_prior_of(rows))
    assert_allclose(chance.sum(), 1.0)
    held = (rows < K).sum(axis=1)
    assert_allclose([chance[held == m].sum() for m in range(least, most + 1)], 1.0 / (most - least + 1))


@pytest.mark.parametrize(("K", "least", "most"), [(6, 2, 2), (6, 0, 3), (300, 2, 2), (300, 0, 2)])
def test_random_sets_follow_the_prior(K: int, least: int, most: int) -> None:
    prior = SetPrior(K, least, most)
    rows = prior.random_sets(np.random.default_rng(0), 20_000)
    prior.check(rows)
    held = (rows < K).sum(axis=1)
    for m in range(least, most + 1):
        share = (held == m).mean()
        assert abs(share - 1.0 / (most - least + 1)) < 5 * 0.5 / np.sqrt(len(rows))
    counts = np.bincount(rows.ravel(), minlength=K + 1)[:K]
    expected = held.sum() / K
    assert np.abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_keys_do_not_depend_on_the_order_of_slots() -> None:
    prior = SetPrior(9, 0, 3)
    rows = np.array([[1, 2, 9], [9, 2, 1], [2, 1, 8], [9, 9, 1]])
    keys = prior.keys(rows)
    assert keys[0] == keys[1]
    assert len(set(keys.tolist())) == 3
    found, shares = prior.distinct(rows)
    assert sorted(shares.tolist()) == [0.25, 0.25, 0.5]
    assert len(found) == 3


@pytest.mark.parametrize("bad", [[[1, 1]], [[-1, 2]], [[0, 7]], [[6, 6]]])
def test_damaged_sets_are_refused(bad: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="set"):
        SetPrior(6, 1, 2).check(np.array(bad))


def test_hypotheses_of_plain_sets() -> None:
    sets = np.array([[0, 1], [0, 2], [1, 2]])
    weights, shifts = np.array([0.5, 0.25, 0.25]), np.tile([1.0, 1.0, 1.0, 0.0], (3, 1))
    hypotheses = Hypotheses.of_sets(sets, weights, np.ones((3, 1)), shifts)
    assert_allclose(hypotheses.doubt(SetPrior(3, 2, 2)), 0.5)
    both = hypotheses.joined(hypotheses, 0.3)
    assert_allclose(both.chance, np.concatenate([0.3 * weights, 0.7 * weights]))
    assert_allclose(both.rest[both.row], np.tile(sets[:, :1], (2, 1)))
    assert_allclose(both.doubt(SetPrior(3, 2, 2)), 0.5)


def test_hypotheses_of_opened_slots() -> None:
    """Each row stands for a set with every stream that may join it; what is all but impossible is left out."""
    chances = np.array([[0.0, 0.3, 0.2, 0.0], [1e-12, 0.0, 0.0, 0.5]])
    shifts = np.arange(8.0).reshape(2, 4)
    found = Hypotheses.of_slots(np.array([[0], [1]]), chances, np.array([[2.0], [3.0]]), shifts)
    assert_allclose(found.row, [0, 0, 1])
    assert_allclose(found.stream, [1, 2, 3])
    assert_allclose(found.shift, [1.0, 2.0, 7.0])
    assert_allclose(found.chance, [0.3, 0.2, 0.5])
