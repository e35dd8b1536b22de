"""The catalogue is the table of docs/paper/figures.md."""

import json
import math

import numpy as np
import pytest

from eccaht import effective_rank, make_policy
from eccaht.research.experiments.comparison import refusal
from eccaht.research.paper.catalogue import BANDITS, EXPERIMENTS, FAMILIES, choose
from eccaht.research.paper.claims import PRINTED_RANKS
from eccaht.research.paper.experiment import Experiment

IDS = ["fig1", "fig2", "fig3a", "fig3b", "fig5a", "fig5b", "fig5c", *(f"fig{k}" for k in range(6, 27))]
IDS += ["table1", "stopping", "asymptotics", "lemmas", "ablations"]


def test_every_experiment_but_those_on_wadi_is_there() -> None:
    assert sorted(EXPERIMENTS) == sorted(IDS)
    assert all(experiment.id == id for id, experiment in EXPERIMENTS.items())


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_setting_is_a_problem_to_which_every_policy_applies(experiment: Experiment) -> None:
    for setting in experiment.settings:
        problem = setting.problem()
        for policy in experiment.policies:
            options = {**setting.options, **experiment.policy_options.get(policy, {})}
            others = ("stopping", "alpha", "alphas", "enough", "anomalies", "policy")  # no options of the algorithm
            rule = {name: options.pop(name) for name in others if name in options}
            name = experiment.policy_options.get(policy, {}).get("policy", policy)
            assert refusal(name, problem, **options) is None
            if "stopping" in rule:
                make_policy(name, problem, stopping=rule["stopping"], alpha=rule["alpha"])
    json.dumps(experiment.as_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("id", "size", "n", "shift", "budget", "horizon", "policies"),
    [
        ("fig1", 15, 3, 3, 4, 20, 1),
        ("fig5a", 100, 3, 5, 4, 500, 3),
        ("fig5b", 100, 3, 5, 4, 500, 3),
        ("fig5c", 1000, 10, 3, 10, 5000, 3),
        ("fig2", 100, 3, 5, 4, 500, 5),
        ("fig3a", 128, 5, 5, 5, 1500, 3),
        ("fig17", 128, 5, 3, 5, 2000, 1),
        ("fig18", 128, 5, 3, 5, 2000, 1),
        *((f"fig{k}", 128, 5, 3, 5, 2000, 7) for k in ("3b", *range(10, 17), *range(19, 27))),
    ],
)
def test_numbers_of_the_table(
    id: str, size: int, n: int, shift: float, budget: float, horizon: int, policies: int
) -> None:
    experiment = EXPERIMENTS[id]
    assert (experiment.horizon, len(experiment.policies)) == (horizon, policies)
    for setting in experiment.settings:
        problem = setting.problem()
        assert (problem.size, problem.n_anomalies, problem.budget) == (size, n, budget)
        assert set(problem.shift) == {shift}


def test_rank_experiments_have_both_mixtures_and_both_ranges() -> None:
    mixtures = EXPERIMENTS["fig17"].settings
    for label, unit in (("as printed", False), ("unit variance", True)):
        some = [setting for setting in mixtures if setting.label == label]
        assert (len(some), some[0].x, some[-1].x) == (30, 0.95, 0.9999)
        assert all(np.allclose(setting.covariance().diagonal(), 1.0) == unit for setting in some)
    scales = [setting.x for setting in EXPERIMENTS["fig18"].settings]
    np.testing.assert_allclose(scales, [*np.linspace(0.1, 5, 30), *np.linspace(10, 75, 10)])


def test_families_and_regularization() -> None:
    pairs = [("fig3b", "toeplitz"), *((f"fig{k}", name) for k, name in enumerate(FAMILIES[1:], start=10))]
    for id, family in pairs:
        (setting,) = EXPERIMENTS[id].settings
        assert (setting.family, setting.options, EXPERIMENTS[id].policies) == (family, {}, BANDITS)
    for k in (19, 20, 21):
        weaker, ridge = EXPERIMENTS[f"fig{k}"].settings
        assert (weaker.arguments["rho"], weaker.options) == (0.5, {})
        assert (ridge.arguments["rho"], ridge.options) == (0.8, {"regularize": 0.01})
    for k in range(22, 27):
        assert [setting.options for setting in EXPERIMENTS[f"fig{k}"].settings] == [{"regularize": 0.01}]


def test_effective_ranks_are_those_of_the_paper() -> None:
    found = {setting.label: setting.covariance() for setting in EXPERIMENTS["table1"].settings}
    assert list(found) == list(FAMILIES)
    for family, (shannon, participation) in PRINTED_RANKS.items():
        if family != "graph":  # a different random graph may differ
            assert round(effective_rank(found[family]), 2) == shannon
            assert round(effective_rank(found[family], kind="participation"), 2) == participation
    assert math.isclose(effective_rank(found["graph"]), 121.7, rel_tol=0.01)


def test_unknown_ids_are_refused_with_the_nearest() -> None:
    assert choose(["all"]) == list(EXPERIMENTS.values())
    with pytest.raises(ValueError, match=r"'fgi5a'.*'fig5a'"):
        choose(["fig2", "fgi5a"])
