"""Searches in recorded rows read what was recorded, and compare methods with all else equal."""

from collections.abc import Sequence

import numpy as np
import pytest

from eccaht import Problem, families, make_policy
from eccaht.base.arrays import Array
from eccaht.base.statistics import Estimate, first_reached
from eccaht.research.experiments.comparison import Records, as_entry, summarise
from eccaht.research.experiments.figures import Times, draw_delays, draw_times
from eccaht.research.experiments.localisation import (
    RecordedSearch,
    arrival_times,
    believed,
    build,
    check_known,
    check_methods,
    check_reach,
    flat,
    follow,
    localise,
    policy_of,
    pooled,
    savings,
    summary_table,
)
from eccaht.streams.covariance import Diagonal

TRUTH = np.array([2, 5])


def problem(n: int = 2) -> Problem:
    return Problem(families.toeplitz(8, 0.9), shift=3.0, n_anomalies=n, budget=4.0)


def rows(count: int, *, seed: int = 0, truth: Sequence[int] = (2, 5)) -> Array:
    drawn = problem().covariance.sample(np.random.default_rng(seed), count)
    drawn[:, list(truth)] += 3.0
    return drawn


def test_a_search_is_the_plain_loop_over_the_rows() -> None:
    search = RecordedSearch(problem(), rows(15), TRUTH)
    policy = make_policy("ecc-aht", problem(), seed=(3, 0), stopping=None)
    hits = []
    for row in search.rows:
        c = policy.ask()
        policy.tell(c, float(c @ row))
        hits.append(len({2, 5} & set(policy.decision.tolist())))
    records = localise({"a": [search]}, ["ecc-aht"], seed=3)["a"]
    assert records.hits["ecc-aht"][0].tolist() == hits


def test_a_row_without_any_sensor_leaves_the_decision_as_it_was() -> None:
    complete = rows(10)
    with_gaps = np.insert(complete, [0, 4, 4, 10], np.nan, axis=0)
    without = follow(RecordedSearch(problem(), complete, TRUTH), build("round-robin", problem(), seed=(0,)), problem())
    found = follow(RecordedSearch(problem(), with_gaps, TRUTH), build("round-robin", problem(), seed=(0,)), problem())
    assert found[[1, 2, 3, 4, 7, 8, 9, 10, 11, 12]].tolist() == without.tolist()
    assert found[0] == 0
    assert found[5] == found[6] == found[4]
    assert found[13] == found[12]


def test_several_measurements_of_a_row_count_one_after_the_other() -> None:
    search = RecordedSearch(problem(1), rows(5, truth=[2]), np.array([2]), per_row=3)
    hits = follow(search, build("ecc-aht", problem(1), seed=(0,)), problem(1))
    assert hits.shape == (15,)
    assert hits[-1] == 1


def test_blind_methods_believe_in_the_diagonal_and_nothing_else_changes() -> None:
    assert policy_of("ecc-aht-diagonal") == ("ecc-aht", True)
    assert policy_of("ecc-aht") == ("ecc-aht", False)
    seen = believed("ecc-aht-diagonal", problem())
    assert isinstance(seen.covariance, Diagonal)
    np.testing.assert_array_equal(seen.covariance.diagonal(), problem().covariance.diagonal())
    assert believed("ecc-aht", p := problem()) is p
    # round-robin asks for the same either way, but weighs what it reads by what it believes of the noise
    blind, full = (build(name, problem(), seed=(0,)) for name in ("round-robin-diagonal", "round-robin"))
    np.testing.assert_array_equal(blind.ask(), full.ask())


def test_numbers_depend_neither_on_the_other_methods_nor_on_the_processes() -> None:
    searches = {"a": [RecordedSearch(problem(), rows(12, seed=k), TRUTH) for k in range(3)]}
    alone = localise(searches, ["random-sparse"], seed=1)["a"].hits["random-sparse"]
    among = localise(searches, ["ecc-aht", "random-sparse"], seed=1, jobs=2)["a"].hits["random-sparse"]
    np.testing.assert_array_equal(alone, among)


def test_unknown_and_unfit_methods_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'ecc-ath'.*'ecc-aht'"):
        check_known(["ecc-ath"])
    with pytest.raises(ValueError, match="named twice"):
        check_methods(["diagonal", "diagonal"], problem())
    with pytest.raises(ValueError, match="hds"):
        check_methods(["hds"], problem())
    check_methods(["hds-diagonal"], problem())  # blind, it has the independent streams that it needs
    with pytest.raises(ValueError, match="name at least one"):
        localise({"a": [RecordedSearch(problem(), rows(3), TRUTH)]}, [])


def test_shifts_out_of_reach_are_refused_before_any_work() -> None:
    check_reach(-0.2, 5.0)
    with pytest.raises(ValueError, match=r"at least 6.66667"):
        check_reach(0.15, 5.0)
    with pytest.raises(ValueError, match="shift 0 is no anomaly"):
        check_reach(0.0, 5.0)


def made_up() -> dict[str, Records]:
    """Two groups of two runs: ecc-aht arrives after 1, 2 and 3, 4 measurements, diagonal after 3, 4 and never."""
    ends = {"a": {"ecc-aht": (1, 2), "diagonal": (3, 4)}, "b": {"ecc-aht": (3, 4), "diagonal": (9, 9)}}
    return {
        label: Records(
            1,
            0,
            {name: np.array([[int(t >= end) for t in range(1, 7)] for end in both]) for name, both in each.items()},
            {name: np.zeros(2) for name in each},
        )
        for label, each in ends.items()
    }


def test_savings_are_paired_and_the_cut_off_count_at_the_horizon() -> None:
    groups = made_up()
    assert {name: times.tolist() for name, times in arrival_times(groups["b"]).items()} == {
        "ecc-aht": [3.0, 4.0],
        "diagonal": [6.0, 6.0],
    }
    assert pooled(groups)["diagonal"].tolist() == [4.5, 5.0]
    (saved,) = savings(arrival_times(groups["b"]), seed=0)
    assert (saved.full, saved.blind, saved.more.mean) == ("ecc-aht", "diagonal", 2.5)
    assert savings({"ecc-aht": np.ones(2)}, seed=0) == []
    both_cut_off = {"ecc-aht": np.full(3, 9.0), "diagonal": np.full(3, 9.0)}
    assert savings(both_cut_off, seed=0)[0].more == Estimate(0.0, None)


def test_the_table_holds_every_group_and_method() -> None:
    groups = made_up()
    table = summary_table(groups, {"a": {"K": 5}, "b": {"K": 6}})
    assert table["group"].tolist() == ["a", "a", "b", "b"]
    assert table["K"].tolist() == [5, 5, 6, 6]
    assert table["for_good_mean"].tolist() == [1.5, 3.5, 3.5, 6.0]
    assert table["for_good_censored"].tolist() == [0, 0, 0, 2]
    row = summarise(groups["b"])[1]
    assert np.isnan(flat(row)["for_good_low"])
    assert as_entry(row)["for_good"] == {
        "times": [None, None], "mean": 6.0, "interval": None, "censored": 2, "lower_bound": True
    }  # fmt: skip


def test_figures_draw_every_method_in_every_group_and_mark_lower_bounds() -> None:
    figure = draw_delays(made_up(), title="t", unit="windows", reached=first_reached)
    (ax,) = figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    means = [line for line in ax.lines if line.get_marker() != "|" and len(np.atleast_1d(line.get_xdata())) == 1]
    assert sorted(float(np.atleast_1d(line.get_xdata())[0]) for line in means) == [1.5, 3.5, 3.5, 6.0]
    assert [line.get_marker() for line in means] == ["o", "v", "o", "^"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["ecc-aht", "diagonal (No-Correlation)", "single searches", "lower bound: some cut off"]
    complete = draw_times({"a": {"combgape": Times([2.0, 3.0], 9.0)}}, title="t", label="seconds")
    assert [text.get_text() for text in complete.legends[0].get_texts()] == ["combgape", "single searches"]
