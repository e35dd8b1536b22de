"""What is computed for the theory is what the formulas say, and its verdicts follow from it."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from eccaht import Problem, Simulator, families, make_policy
from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.research.paper.lemmas import fastest_single, follow, off_diagonal, one_reading
from eccaht.research.paper.results import Results
from eccaht.research.paper.theorems import THEOREMS
from eccaht.research.paper.verdicts import Verdict
from eccaht.streams import pair_design, steps

ENTRY = EXPERIMENTS["lemmas"]
BY_ID = {claim.id: claim for claim in THEOREMS}
RUNS = 80  # enough for a Clopper-Pearson interval below 5 %
FINE = {"cross_term": 0.1, "backward": 0, "covered": 1, "settled": 30, "hardest": 1, "design": 1, "exponent": 0}
FINE |= {"lead": 900, "readings": 400, "nats": 1600, "expected_nats": 1600, "gamma": 4, "worth": 2}


def seen(label: str = "", **columns: float) -> dict[str, Results]:
    """Made-up searches in which all theorems hold, but for some columns in one setting, or in all."""
    spread = 1.0 + 1e-3 * (np.arange(RUNS) % 3 - 1.0)
    cells = {}
    for k, policy in ENTRY.cells:
        values = FINE | (columns if label in ENTRY.settings[k].label else {})
        cells[k, policy] = np.stack([values[name] * spread for name in ENTRY.columns], axis=1)
    table = EXPERIMENTS["table1"]
    return {"lemmas": Results(ENTRY, 0, cells), "table1": Results(table, 0, {})}


def verdict(id: str, label: str = "", **columns: float) -> Verdict:
    return BY_ID[id].verdict(seen(label, **columns))


@pytest.mark.parametrize(
    ("id", "against"),
    [
        ("cross-terms", {"cross_term": 0.5}),
        ("drift", {"backward": 0.5}),
        ("ranking", {"exponent": 12.0}),
        ("settling", {"settled": np.nan}),
        ("hardest", {"hardest": 0.1}),
        ("design", {"design": 0.5}),
        ("growth", {"nats": 800.0}),
        ("concentration", {"nats": 9000.0}),
        ("pairwise", {"lead": -1.0}),
    ],
)
def test_each_lemma_holds_or_fails_by_its_column(id: str, against: dict[str, float]) -> None:
    assert verdict(id).word == "holds"
    one = verdict(id, "0.5", **against)
    assert one.word == "partly"
    assert "not on toeplitz 0.5" in one.condition


def test_coverage_is_asked_for_where_the_lemma_promises_it() -> None:
    assert verdict("coverage").word == "holds"
    (part,) = verdict("coverage", covered=0.3).measures
    assert (part.answer, part.when) == ("no", "on independent streams")


def test_what_was_never_seen_decides_nothing() -> None:
    found = verdict("design", "-0.6", design=np.nan)
    assert found.sentence.endswith("not decided on toeplitz -0.6")


def test_formulas_need_no_runs() -> None:
    table = {"table1": Results(EXPERIMENTS["table1"], 0, {})}
    assert [BY_ID[id].verdict(table).word for id in ("speed-limit", "oracle")] == ["does not hold"] * 2
    assert BY_ID["ridge-rank"].verdict(table).word == "holds"
    (met,) = BY_ID["incoherence"].verdict(table).measures
    assert met.value == 1  # the random graph


def test_a_reading_of_independent_streams_by_hand() -> None:
    """Half a contrast on each of the pair: C = 1/4 / (1/4 + 1/4), and only pairs with one of the two are covered."""
    K, inside = 8, np.array([1, 5])
    problem = Problem(families.identity(K), shift=3.0, n_anomalies=2, budget=2.0)
    pairs = np.ix_(inside, np.setdiff1d(np.arange(K), inside))
    assert off_diagonal(problem) == 0.0
    h = problem.shift * pair_design(problem, 5, 2).weights
    cross, backward, covered, hardest, least = one_reading(h, (5, 2), pairs, 0.5)
    assert cross == pytest.approx(0.5)
    assert (backward, hardest, least) == (0.0, 0.0, 0.0)
    assert covered == pytest.approx(1.0 - 1 * 5 / 12)
    assert np.isnan(one_reading(h, (5, 1), pairs, 0.5)).all()


def test_a_neighbour_of_the_challenger_gains_on_an_anomaly_that_is_not_measured() -> None:
    problem = Problem(families.toeplitz(12, rho=0.5), shift=3.0, n_anomalies=2, budget=4.0)
    pairs = np.ix_([1, 5], [k for k in range(12) if k not in (1, 5)])
    h = problem.shift * pair_design(problem, 5, 9).weights
    assert one_reading(h, (5, 9), pairs, 0.0)[1] == 1.0
    gain = h * h[[1, 5]].sum() - 0.5 * h**2  # of each score, times the noise variance
    assert gain[8] > gain[1]


def test_evidence_of_a_search_is_the_likelihood_of_its_readings() -> None:
    setting = replace(ENTRY.settings[1], arguments={"K": 12, "rho": 0.5})
    problem = setting.problem()
    found = dict(zip(ENTRY.columns, follow(problem, "ecc-aht", 30, (4, 0), {"enough": 30}), strict=True))
    world = Simulator(problem, seed=(4, 0), names=["ecc-aht"])
    policy = make_policy("ecc-aht", problem, seed=(4, 0), stopping=None)
    made = list(steps(policy, world, 30, obey_stopping=False))
    inside = set(world.anomalies.tolist())

    def log_likelihood(members: set[int]) -> float:
        shifted = problem.mean + problem.shift * np.isin(range(12), [*members])
        return sum(norm.logpdf(s.reading, s.weights @ shifted, problem.noise_variance(s.weights) ** 0.5) for s in made)

    rivals = [inside - {i} | {j} for i in inside for j in set(range(12)) - inside]
    least = min(log_likelihood(inside) - log_likelihood(rival) for rival in rivals)
    assert found["nats"] == pytest.approx(least, rel=1e-9)
    assert found["readings"] == 30
    members = [*inside]
    others = np.setdiff1d(np.arange(12), members)
    assert found["lead"] == pytest.approx(policy.scores[members].min() - policy.scores[others].max(), rel=1e-9)


def test_the_best_measurement_is_found_over_all_signs() -> None:
    truth = np.array([1, 1, 0, 0])
    rivals = np.array([truth - np.isin(range(4), rival) for rival in combinations(range(4), 2) if rival != (0, 1)])
    assert fastest_single(np.eye(4), rivals) == pytest.approx(0.5 * (1 / 2 + 1 / 2))  # half of 1/n + 1/(K - n)
    S = families.toeplitz(4, rho=0.8).dense()

    def rate(c: Any) -> float:
        return float((rivals @ c).__pow__(2).min() / (2.0 * c @ S @ c))

    starts = np.random.default_rng(0).normal(size=(40, 4))
    climbed = [rate(minimize(lambda c: -rate(c), c, method="Nelder-Mead", options={"xatol": 1e-9}).x) for c in starts]
    assert max(climbed) == pytest.approx(fastest_single(S, rivals), rel=1e-4)
    assert max(climbed) <= fastest_single(S, rivals) * (1.0 + 1e-9)
