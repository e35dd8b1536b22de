"""Verdicts follow from the runs: the same rule gives each word when the runs are made to say so."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.research.paper.claims import CLAIMS, HIGH_RANK, LOW_RANK
from eccaht.research.paper.experiment import Setting
from eccaht.research.paper.results import Results, slopes, stopped_search, stopping_times, unlimited_budget
from eccaht.research.paper.verdicts import CLOSE, Claim, Verdict, conclude, judged, rank_correlation

RUNS, HORIZON = 10, 200
NEVER = HORIZON + 1
BY_ID = {claim.id: claim for claim in CLAIMS}
SPREAD = np.arange(RUNS) % 3  # so that intervals have a width

Times = Callable[[Setting, str], ArrayLike]  # when F1 passes 0.95 for good, for each run


def fabricated(id: str, when: Times, runs: int = RUNS) -> Results:
    experiment = replace(EXPERIMENTS[id], horizon=HORIZON)
    hits: dict[tuple[int, str], NDArray[np.int32]] = {}
    for k, setting in enumerate(experiment.settings):
        for policy in experiment.policies:
            times = np.broadcast_to(np.asarray(when(setting, policy)), RUNS)[:runs]
            found = np.arange(1, experiment.horizon + 1) >= times[:, None]
            hits[k, policy] = (setting.n_anomalies * found).astype(np.int32)
    return Results(experiment, 0, hits)


def verdict(id: str, when: Times | Mapping[str, Times], **options: Any) -> Verdict:
    claim = BY_ID[id]
    given = {x: fabricated(x, when[x] if isinstance(when, Mapping) else when, **options) for x in claim.experiments}
    return claim.verdict(given)


def numbers(found: Verdict) -> str:
    return "\n".join(map(str, found.measures))


def by_policy(others: ArrayLike = 60 + SPREAD, **times: ArrayLike) -> Times:
    return lambda _, policy: times.get(policy.replace("-", "_"), others)


FAST, SLOW = by_policy(ecc_aht=10), by_policy(ecc_aht=100)
TIED = by_policy(ecc_aht=60 + SPREAD[::-1])


@pytest.mark.parametrize("id", ["independent", "hds"])
def test_faster_holds_slower_does_not_and_a_tie_is_not_decided(id: str) -> None:
    assert [verdict(id, when).word for when in (FAST, SLOW, TIED)] == ["holds", "does not hold", "not decided"]
    assert verdict(id, FAST, runs=2).word == "not decided"
    assert verdict(id, FAST, runs=1).word == "not decided"


def test_a_claim_about_two_rivals_may_hold_for_one() -> None:
    half = verdict("independent", by_policy(ecc_aht=50, round_robin=90 + SPREAD, random_sparse=20))
    assert half.sentence == "partly: holds against round-robin, not against random-sparse"
    assert numbers(half).startswith("40.9 [")
    assert half.traced_to == ("fig5a/summary.csv", "claims/runs.csv")


def test_what_is_shown_for_one_rival_and_open_for_the_other_says_so() -> None:
    half = verdict("independent", by_policy(60 + SPREAD, ecc_aht=50 + SPREAD, random_sparse=50 + SPREAD[::-1]))
    assert half.sentence == "partly: holds against round-robin; not decided against random-sparse"


def test_runs_cut_off_are_counted_at_the_horizon_and_named() -> None:
    when = by_policy(ecc_aht=[NEVER, *[10] * (RUNS - 1)], round_robin=NEVER)
    first = verdict("independent", when).measures[0]
    assert first.value == HORIZON - 10 - (HORIZON - 10) / RUNS
    assert first.note == f"cut off at the horizon: 1 run of ecc-aht, {RUNS} of round-robin"
    lower = verdict("independent", by_policy(NEVER, ecc_aht=9)).measures[0].note
    assert lower.startswith("a lower bound, cut off at the horizon: ")
    assert verdict("independent", by_policy(9, ecc_aht=NEVER)).measures[0].note.startswith("an upper bound, ")


def test_the_lead_grows_with_correlation() -> None:
    wider = {"fig5a": by_policy(ecc_aht=50), "fig5b": FAST}
    assert verdict("widening", wider).word == "holds"
    assert verdict("widening", {"fig5a": FAST, "fig5b": by_policy(ecc_aht=50)}).word == "does not hold"
    assert verdict("widening", FAST).word == "not decided"


def test_up_to_an_order_of_magnitude_is_ten_within_the_interval_against_one_baseline() -> None:
    ten = [40, *[9] * (RUNS - 1)]
    words = [verdict("order-of-magnitude", by_policy(100 + SPREAD, ecc_aht=time)).word for time in (5, ten, 20, 40)]
    assert words == ["holds", "holds", "does not hold", "does not hold"]
    assert verdict("order-of-magnitude", by_policy(100, ecc_aht=[100] * 5 + [1] * 5)).word == "not decided"
    one = verdict("order-of-magnitude", by_policy(20 + SPREAD, ecc_aht=9, round_robin=100 + SPREAD))
    assert one.word == "holds"
    assert len(one.measures) == 2
    factor = verdict("order-of-magnitude", by_policy(100, ecc_aht=5)).measures[0]
    assert factor.value == pytest.approx(20)
    assert factor.sample == pytest.approx([20] * RUNS)


def test_ablation_by_factor_and_by_the_median_run() -> None:
    same = {"cost_free": 10 + SPREAD, "ecc_aht": 10 + SPREAD}
    assert verdict("ablation", by_policy(**same)).word == "holds"
    near = verdict("ablation", by_policy(**same, simple_difference=12 + SPREAD))
    assert near.sentence == "partly: holds against cost-free and random-sparse, not against No-QP"
    stuck = [10, 10, 10, 10, 10, 10, *[NEVER] * 4]
    found = verdict("ablation", by_policy(30, ecc_aht=stuck, cost_free=10))
    assert (
        found.condition
        == "holds against cost-free, and in the median run against No-QP; not decided against No-QP and random-sparse"
    )
    assert "4 of 10 runs of ecc-aht wrong at the end" in numbers(found)
    assert verdict("ablation", by_policy(20, ecc_aht=60, cost_free=90)).word == "does not hold"


@pytest.mark.parametrize(
    ("delay", "sentence"),
    [
        (lambda rho, own: 100 - 50 * rho * own, "holds"),
        (lambda rho, own: 100 - 50 * abs(rho) * own, "holds"),
        (lambda rho, _: 100 - 50 * rho, "partly: holds for ecc-aht, not for round-robin or random-sparse"),
        (lambda rho, own: 100 + 50 * rho * (2 * own - 1), "does not hold"),
    ],
)
def test_the_trend_in_rho_is_that_of_ecc_aht_alone(delay: Callable[[float, bool], float], sentence: str) -> None:
    found = verdict("correlation", lambda setting, policy: delay(setting.x, policy == "ecc-aht") + SPREAD)
    assert found.sentence == sentence
    assert len(found.measures) == 4


def test_the_slope_in_n_is_compared() -> None:
    def when(own: int, others: int) -> Times:
        return lambda setting, policy: 20 + (own if policy == "ecc-aht" else others) * setting.x + SPREAD

    good = verdict("anomaly-count", when(5, 20))
    assert good.word == "holds"
    assert good.measures[0].value == pytest.approx(15)
    assert "5 against 20" in numbers(good)
    assert verdict("anomaly-count", when(20, 5)).word == "does not hold"


def test_the_budget_is_judged_where_it_binds_and_where_it_does_not() -> None:
    found = verdict("budget", lambda setting, _: 100 - 80 * min(setting.x, 0.65) + SPREAD)
    assert found.sentence == "partly: holds below B = 0.63, where the limit binds, not from B = 0.63 up"
    assert verdict("budget", lambda setting, _: 150 - 20 * np.log2(setting.x) + SPREAD).word == "holds"
    assert verdict("budget", lambda setting, _: 50 + setting.x + SPREAD).word == "does not hold"


def test_the_limit_stops_binding_where_the_designs_say() -> None:
    from eccaht.streams.designs import pair_design

    problem = EXPERIMENTS["fig9"].settings[0].problem()
    enough = unlimited_budget(problem)
    assert enough == pytest.approx(0.63, abs=0.005)
    for budget, binds in ((enough * 0.999, True), (enough * 1.001, False)):
        near = replace(EXPERIMENTS["fig9"].settings[0], budget=budget).problem()
        assert any(pair_design(near, i, j).budget_active for i in (0, 1, 50) for j in (2, 52, 99)) == binds


def test_matching_means_not_slower_by_half() -> None:
    words = [verdict("ttts-challenger", by_policy(ecc_aht=time)).word for time in (20, 66, 150)]
    assert words == ["holds", "holds", "does not hold"]


def test_often_second_is_behind_a_rival_in_two_of_three_families() -> None:
    cases = [(SLOW, SLOW, SLOW), (SLOW, FAST, SLOW), (SLOW, FAST, TIED), (FAST, FAST, TIED), (FAST, TIED, TIED)]
    words = [verdict("low-rank-losses", dict(zip(LOW_RANK, case, strict=True))).word for case in cases]
    assert words == ["holds", "holds", "partly", "does not hold", "not decided"]


@pytest.mark.parametrize("id", ["families", "combgape", "parts"])
def test_a_lead_is_over_the_fastest_or_over_each(id: str) -> None:
    assert [verdict(id, when).word for when in (FAST, SLOW, TIED)] == ["holds", "does not hold", "not decided"]


def test_the_advantage_is_that_of_the_worst_setting() -> None:
    def weak(setting: Setting, policy: str) -> ArrayLike:
        return (
            90 if policy == "ecc-aht" and setting.label == "shift 0.5" else 60 if policy != "ecc-aht" else 20
        ) + SPREAD

    found = verdict("advantage", weak)
    assert found.sentence == "partly: holds in fig7, fig8 and fig9, not in fig6"
    assert numbers(found).splitlines()[0].endswith("at shift 0.5")
    assert verdict("weak-signals", weak).sentence == "partly: holds in its own right, not against random-sparse"


def test_what_does_not_converge_is_counted() -> None:
    assert verdict("unconverged", by_policy(NEVER)).word == "holds"
    assert verdict("unconverged", FAST).word == "does not hold"


def test_drops_and_weaker_correlation_compare_runs_on_the_same_sets() -> None:
    strong, weak = ("fig10", "fig15", "fig16"), ("fig19", "fig20", "fig21")
    later = dict.fromkeys(strong, by_policy(ecc_aht=50 + SPREAD)) | dict.fromkeys(weak, by_policy(ecc_aht=20 + SPREAD))
    assert verdict("low-rank-drops", later | {"fig3b": FAST}).word == "holds"
    assert verdict("low-rank-drops", later | {"fig3b": SLOW}).word == "does not hold"
    assert verdict("weaker-correlation", later).word == "holds"


def test_enough_rank_allows_no_wrong_end() -> None:
    assert verdict("sufficient-rank", FAST).word == "holds"
    wrong = by_policy(ecc_aht=[NEVER, *[9] * (RUNS - 1)])
    found = verdict("sufficient-rank", {**dict.fromkeys(HIGH_RANK, FAST), "fig3b": wrong})
    assert found.sentence == "partly: holds on block, circulant, graph and exponential, not on toeplitz"


def test_the_printed_ranks_are_ours_and_neighbours_get_the_opposite_sign() -> None:
    assert verdict("table1", FAST).word == "holds"
    (hats,) = verdict("mexican-hat", FAST).measures
    assert hats.value == pytest.approx(100 * 208 / 210)  # all but the ends of the line whose rival is two steps away


def test_collapse_compares_the_ends_of_the_ranks() -> None:
    def barrier(setting: Setting, _: str) -> ArrayLike:
        shape = setting.arguments
        return NEVER if shape.get("alpha", 0) > 0.985 or shape.get("length_scale", 0) > 4 else 20

    assert verdict("collapse", barrier).word == "holds"
    assert verdict("collapse", lambda *_: 20).word == "does not hold"
    found = verdict("collapse", {"fig17": lambda *_: 20, "fig18": barrier})
    assert found.condition.startswith("holds on rbf, and under 0.4 K of rbf, not on spectral mixture or")
    assert len(found.measures) == 4


def test_regularization_must_help_there_and_nowhere_else() -> None:
    def when(*helped: str) -> Times:
        return lambda s, _: (20 if s.options and s.family in helped else 60) + SPREAD

    low, high = LOW_RANK.values(), HIGH_RANK.values()
    assert verdict("regularization", when(*low)).word == "holds"
    lacking = "no effect seen on equicorrelation or kronecker"
    assert verdict("regularization", when("rbf")).sentence == f"partly: helps on rbf, {lacking}"
    both = verdict("regularization", when("rbf", "block"))
    assert both.sentence == f"partly: helps on rbf, {lacking}; it helps on block too"
    assert verdict("regularization", when(*high)).word == "does not hold"
    assert verdict("regularization", when()).word == "not decided"


def announced(hits: int, runs: int) -> Results:
    entry = EXPERIMENTS["stopping"]
    return Results(entry, 0, {cell: np.array([[hits, 30, 4.0 if hits < 3 else 0.0]] * runs) for cell in entry.cells})


def test_wrong_announcements_are_counted() -> None:
    cases = {(2, 10): "does not hold", (3, 10): "not decided", (3, 200): "holds"}
    for (hits, runs), word in cases.items():
        assert BY_ID["stopping"].verdict({"stopping": announced(hits, runs)}).word == word
    (first, *_) = BY_ID["stopping"].verdict({"stopping": announced(2, 10)}).measures
    assert str(first).startswith("100 [69.2, 100] % of 10 announced sets wrong on independent streams")


def test_a_search_announces_where_its_rule_stops() -> None:
    entry = EXPERIMENTS["stopping"]
    assert entry.repeats(20) == 200
    problem, options = entry.settings[0].problem(), entry.policy_options["ecc-aht"]
    hits, measurements, nats = stopped_search(problem, "ecc-aht", entry.horizon, (3, 0), options)
    assert 0 <= hits <= 3
    assert (nats == 0.0) == (hits == 3)
    assert 10 < measurements < entry.horizon
    assert stopped_search(problem, "ecc-aht", 5, (3, 0), options)[1] == 5


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_each_claim_says_what_to_run_or_why_it_is_not_tested(claim: Claim) -> None:
    found = claim.verdict({}, "some dir")
    if claim.experiments:
        assert found.sentence == f"not run: eccaht reproduce {' '.join(claim.experiments)} --out 'some dir'"
    else:
        assert found.measures or found.condition
    assert {*claim.experiments} <= {*EXPERIMENTS}


def stops(*runs: ArrayLike) -> Results:
    entry = EXPERIMENTS["asymptotics"]
    return Results(entry, 0, {cell: np.array(runs, dtype=float) for cell in entry.cells})


def test_the_slope_of_independent_streams_is_that_of_a_hand_count() -> None:
    """A reading of a pair adds shift^2 / 4 to one of n members in turn; Gamma* is (1/n + 1/(K - n)) shift^2 / 2."""
    entry = EXPERIMENTS["asymptotics"]
    problem, options = entry.settings[0].problem(), entry.policy_options["ecc-aht"]
    found = [stopping_times(problem, "ecc-aht", entry.horizon, (0, run), options) for run in range(6)]
    sample, lost = slopes(stops(*found), 0)
    assert lost == 0
    expected = (1 / 3 + 1 / 97) / 2 / (1 / 4 / 3)
    assert np.mean(sample) == pytest.approx(expected, rel=0.1)
    assert expected > 1.0 + CLOSE


def test_a_search_that_the_horizon_cuts_off_has_no_slope() -> None:
    entry = EXPERIMENTS["asymptotics"]
    problem, options = entry.settings[0].problem(), entry.policy_options["ecc-aht"]
    cut = stopping_times(problem, "ecc-aht", 20, (0, 0), options)
    assert np.isnan(cut).all()
    found = BY_ID["asymptotics"].verdict({"asymptotics": stops(cut, cut)})
    assert found.word == "not decided"
    assert "no number times 1/Gamma*" in numbers(found)


@pytest.mark.parametrize(("factor", "word"), [(1.0, "holds"), (1.5, "does not hold"), (1.1, "not decided")])
def test_the_rate_is_reached_where_the_whole_interval_is_close_to_1(factor: float, word: str) -> None:
    nats = 60 * np.log(10)
    runs = [(50.0, 50.0 + factor * x * nats, 1.0) for x in np.linspace(0.95, 1.05, 20)]
    found = BY_ID["asymptotics"].verdict({"asymptotics": stops(*runs, [np.nan] * 3)})
    assert found.word == word
    assert "left out: 1 of 21 runs that did not stop" in numbers(found)


def test_a_number_is_the_mean_of_its_sample_and_the_interval_holds_it() -> None:
    results = fabricated("fig5a", FAST)
    part = judged(SPREAD, results, "x")
    assert part.interval is not None
    assert part.interval[0] < part.value < part.interval[1]
    assert part.value == pytest.approx(np.mean(part.sample))
    assert conclude([part], "fig5a").word == "holds"


def test_rank_correlation_is_scipys_and_0_for_a_constant() -> None:
    from scipy.stats import spearmanr

    x, y = np.random.default_rng(0).integers(0, 5, (2, 12)).astype(float)
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert rank_correlation(x, np.ones(12)) == 0.0
