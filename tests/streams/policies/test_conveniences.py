"""Names, dicts, gaps and frames: what they say is what plain arrays say."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest

from eccaht import Problem, UnknownShift, families, make_policy
from eccaht.base.arrays import Array
from eccaht.streams.policies.policy import BudgetWarning, Policy

NAMES = ("TT-301", "TT-302", "TT-303", "PT-1")
S = families.toeplitz(4, 0.6).dense()


def problem(**changes: Any) -> Problem:
    options: dict[str, Any] = {"shift": 3.0, "n_anomalies": 1, "budget": 2.0, "mean": 1.0, "names": NAMES}
    return Problem(S, **options | changes)


def observed(x: Any, **changes: Any) -> Policy:
    policy = make_policy("joint", problem(**changes))
    policy.observe(x)
    return policy


def same(one: Policy, other: Policy) -> bool:
    return bool(np.array_equal(one.scores, other.scores) and np.array_equal(one.beliefs, other.beliefs))


# -- observe -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, {"readout_noise": 0.5}, {"shift": UnknownShift(3.0)}])
def test_streams_that_are_not_read_are_left_out_exactly(changes: dict[str, Any]) -> None:
    """A problem of those that were read alone gives the same odds between them."""
    x = np.array([4.1, np.nan, 0.3, 1.2])
    there = np.array([0, 2, 3])
    options: dict[str, Any] = {"shift": 3.0, "n_anomalies": 1, "budget": 2.0, "mean": 1.0} | changes
    small = make_policy("exact", Problem(S[np.ix_(there, there)], **options))
    small.observe(x[there])
    odds = np.log(observed(x, **changes).beliefs[there]) - np.log(small.beliefs)
    assert odds == pytest.approx(np.full(3, odds[0]))


def test_a_dict_goes_by_name_and_what_it_lacks_was_not_read() -> None:
    x = [4.1, np.nan, 0.3, 1.2]
    assert same(observed(dict(zip(NAMES[::-1], x[::-1], strict=True))), observed(x))
    assert same(observed({"PT-1": 1.2, "TT-301": 4.1, "TT-303": 0.3}), observed(x))
    assert same(observed({"PT-1": 1.2, "TT-301": 4.1, "TT-303": 0.3, "TT-302": None}), observed(x))


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ({"TT-33": 1.0}, "unknown stream 'TT-33': did you mean 'TT-303'"),
        ({}, "all streams are missing"),
        ([np.nan] * 4, "all streams are missing"),
        ([1.0, np.inf, 0.0, np.nan], "non-finite value at index 1"),
        ([1.0, 2.0], "shape"),
        ({"PT-1": "x"}, "real numbers"),
    ],
)
def test_readings_that_cannot_be_taken(x: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        observed(x)


def test_names_are_needed_for_a_dict() -> None:
    with pytest.raises(ValueError, match="the streams have none"):
        observed({"a": 1.0}, names=None)


# -- decision_names ------------------------------------------------------------------------------------


def test_the_decision_by_name_and_by_number() -> None:
    x = [1.0, 1.0, 9.0, 1.0]
    assert observed(x).decision_names == ("TT-303",)
    assert observed(x, names=None).decision_names == ("2",)


# -- Problem -------------------------------------------------------------------------------------------


def test_shifts_and_means_by_name() -> None:
    built = problem(
        shift={"TT-303": 2.0, "PT-1": -1.0, "TT-301": UnknownShift(3.0), "TT-302": 4.0},
        mean={"TT-303": 0.2, "PT-1": 0.3, "TT-301": 0.0, "TT-302": 0.1},
    )
    assert built.shift.tolist() == [0.0, 4.0, 2.0, -1.0]
    assert built.shift_spread.tolist() == [3.0, 0.0, 0.0, 0.0]
    assert built.mean.tolist() == [0.0, 0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shift": {"TT-303": 2.0}}, "shift lacks 'TT-301', 'TT-302', 'PT-1'"),
        (
            {"shift": dict.fromkeys((*NAMES, "TT-3O3"), 2.0)},
            "shift has an unknown stream 'TT-3O3': did you mean 'TT-303'",
        ),
        ({"mean": {"TT-303": 2.0}}, "mean lacks"),
        ({"shift": {"TT-303": 2.0}, "names": None}, "the streams have none"),
    ],
)
def test_names_that_are_wrong(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        problem(**changes)


def test_a_polars_frame_gives_its_names() -> None:
    built = problem(names=None)
    framed = Problem(pl.DataFrame(S, schema=list(NAMES)), shift=3.0, n_anomalies=1, budget=2.0, mean=1.0)
    assert framed.names == NAMES
    assert np.array_equal(framed.covariance.dense(), built.covariance.dense())
    row = pl.DataFrame([[4.0], [None], [0.0], [1.0]], schema=list(NAMES)).row(0, named=True)
    policy = make_policy("joint", framed)
    policy.observe(row)
    assert same(policy, observed([4.0, np.nan, 0.0, 1.0]))


def test_frames_and_series_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    turned = list(NAMES[::-1])
    frame = pd.DataFrame(S, index=NAMES, columns=NAMES)
    built = Problem(
        frame,
        shift=pd.Series([4.0, 3.0, 2.0, 1.0], turned),
        n_anomalies=1,
        budget=2.0,
        mean=pd.Series([0.3, 0.2, 0.1, 0.0], turned),
    )
    assert built.names == NAMES
    assert built.shift.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert built.mean.tolist() == [0.0, 0.1, 0.2, 0.3]
    assert same(observed(pd.Series([1.2, 0.3, np.nan, 4.1], turned)), observed([4.1, np.nan, 0.3, 1.2]))
    assert same(observed(pd.Series([4.1, np.nan, 0.3, 1.2])), observed([4.1, np.nan, 0.3, 1.2]))
    with pytest.raises(ValueError, match="same order"):
        Problem(frame[turned], shift=1.0, n_anomalies=1, budget=1.0)
    assert Problem(pd.DataFrame(S), shift=1.0, n_anomalies=1, budget=1.0).names is None


# -- beyond the budget ---------------------------------------------------------------------------------


def beyond(policy: Policy, c: Array) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy.tell(c, 1.0)
    assert all(warning.category is BudgetWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def test_weights_beyond_the_budget_are_warned_of_once() -> None:
    policy = make_policy("joint", problem())
    assert beyond(policy, np.array([2.0, 0.0, 0.0, 0.0])) == []
    (said,) = beyond(policy, np.array([2.0, 0.0, 0.0, 1.0]))
    assert "|c|_1 = 3" in said
    assert "budget of 2" in said
    assert beyond(policy, np.full(4, 5.0)) == []
    assert policy.n_readings == 3


# -- tell ----------------------------------------------------------------------------------------------


def test_weights_go_by_name() -> None:
    by_name, plain = (make_policy("joint", problem()) for _ in range(2))
    by_name.tell({"PT-1": 1.0, "TT-302": -0.5}, 2.0)
    plain.tell([0.0, -0.5, 0.0, 1.0], 2.0)
    assert same(by_name, plain)
    with pytest.raises(ValueError, match="did you mean 'TT-30"):
        plain.tell({"TT-30": 1.0}, 2.0)


def test_names_that_contradict_the_labels_of_a_frame_are_refused() -> None:
    frame = pl.DataFrame(S, schema=list(NAMES))
    assert Problem(frame, shift=3.0, n_anomalies=1, budget=2.0, names=NAMES).names == NAMES
    with pytest.raises(ValueError, match="names differ"):
        Problem(frame, shift=3.0, n_anomalies=1, budget=2.0, names=NAMES[::-1])
