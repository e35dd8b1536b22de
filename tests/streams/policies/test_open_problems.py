"""Stopping with a bounded error, unknown numbers, unknown sizes, model error."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binomtest, kstest

from eccaht import Problem, Simulator, UnknownShift, families, load_policy, make_policy, search
from eccaht.streams.posterior import robust_likelihood
from eccaht.streams.run.loop import estimated_shifts

ABLE = ("joint", "exact")


@pytest.mark.parametrize("stopping", ["posterior", "glr"])
@pytest.mark.parametrize("name", ABLE)
@pytest.mark.parametrize("number", [2, (0, 3)], ids=["two", "up to three"])
def test_errors_are_at_most_alpha(name: str, stopping: str, number: int | tuple[int, int]) -> None:
    """Counted over worlds drawn from the prior; alpha is large so that errors do happen."""
    alpha, runs, wrong = 0.3, 40, 0
    problem = Problem(families.equicorrelation(10, 0.5), shift=2.0, n_anomalies=number, budget=3.0)
    for seed in range(runs):
        world = Simulator(problem, seed=seed)
        result = search(make_policy(name, problem, seed=seed, stopping=stopping, alpha=alpha), world.measure, 500)
        assert result.reason == "stopped"
        assert result.confidence is not None
        assert result.confidence.how == "exact"
        wrong += not np.array_equal(result.anomalies, world.anomalies)
    assert binomtest(wrong, runs, alpha, alternative="greater").pvalue > 0.01


@pytest.mark.parametrize("runs", [60, pytest.param(150, marks=pytest.mark.slow)])
def test_exact_and_enumerated_joint_are_as_sure_as_they_say(runs: int) -> None:
    """Stopped at a posterior of 1 - alpha, the mean confidence is the share of right sets."""
    problem = Problem(families.toeplitz(12, 0.6), shift=2.0, n_anomalies=2, budget=3.0)
    said, right = [], []
    for seed in range(runs):
        world = Simulator(problem, seed=seed)
        result = search(make_policy("joint", problem, seed=seed, alpha=0.3), world.measure, 500)
        assert result.confidence is not None
        said.append(result.confidence.probability)
        right.append(np.array_equal(result.anomalies, world.anomalies))
    deviation = np.sqrt(np.sum(np.array(said) * (1.0 - np.array(said))))
    assert abs(np.sum(right) - np.sum(said)) < 3.5 * deviation


@pytest.mark.parametrize("name", ABLE)
def test_nothing_wrong_is_an_answer(name: str) -> None:
    problem = Problem(families.toeplitz(16, 0.6), shift=4.0, n_anomalies=(0, 3), budget=3.0)
    quiet = 0
    for seed in range(10):
        policy, world = make_policy(name, problem, seed=seed), Simulator(problem, seed=seed, anomalies=[])
        assert policy.pair is None
        result = search(policy, world.measure, 300)
        assert result.confidence is not None
        assert result.confidence.probability >= 0.95
        quiet += result.anomalies.size == 0
        assert policy.scores.shape == policy.beliefs.shape == (16,)
    assert quiet >= 9


@pytest.mark.parametrize("name", ABLE)
def test_shifts_of_unknown_size_are_estimated(name: str) -> None:
    """Right sets, and intervals that cover at their level."""
    problem = Problem(families.toeplitz(12, 0.6), shift=UnknownShift(4.0), n_anomalies=2, budget=3.0)
    covered, right = [], 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        anomalies, shifts = rng.choice(12, 2, replace=False), rng.choice([-1.0, 1.0], 2) * rng.uniform(2.0, 5.0, 2)
        world = Simulator(problem, seed=seed, anomalies=anomalies, shifts=shifts)
        result = search(make_policy(name, problem, seed=seed, alpha=0.05), world.measure, 100)
        if np.array_equal(result.anomalies, world.anomalies):
            right += 1
            assert result.shifts is not None
            assert result.shifts.level == 0.95
            covered.extend(((result.shifts.low <= world.shifts) & (world.shifts <= result.shifts.high)).tolist())
    assert right >= 17
    assert binomtest(sum(covered), len(covered), 0.95).pvalue > 0.001


def test_mixed_known_and_unknown_shifts() -> None:
    shift: list[float | UnknownShift] = [3.0] * 6 + [UnknownShift(4.0, "negative")] * 6
    problem = Problem(families.toeplitz(12, 0.6), shift=shift, n_anomalies=2, budget=3.0)
    world = Simulator(problem, seed=1, anomalies=[2, 9], shifts=[3.0, -3.5])
    policy = make_policy("joint", problem, seed=1, stopping=60)
    assert np.array_equal(search(policy, world.measure).anomalies, [2, 9])
    estimates = estimated_shifts(policy)
    assert estimates is not None
    assert estimates.low[0] == estimates.high[0] == 3.0
    assert estimates.low[1] < -3.5 < estimates.high[1]


@pytest.mark.parametrize("name", ABLE)
@pytest.mark.parametrize("kind", ["number", "shift", "vectors", "outliers"])
def test_saved_and_loaded_it_goes_on_identically(name: str, kind: str, tmp_path: Path) -> None:
    shift = UnknownShift(4.0) if kind == "shift" else 4.0
    problem = Problem(
        families.toeplitz(16, 0.6),
        shift=shift,
        n_anomalies=(0, 3) if kind == "number" else 3,
        budget=3.0,
        readout_noise=0.1,
    )
    policy = make_policy(name, problem, seed=2, **({"outliers": 0.05} if kind == "outliers" else {}))  # type: ignore[arg-type]
    world = Simulator(problem, seed=2)
    for _ in range(6):
        c = policy.ask()
        policy.tell(c, world.measure(c))
    if kind == "vectors":
        policy.observe(world.sample(1)[0])
    policy.save(tmp_path / "policy")
    loaded = load_policy(tmp_path / "policy")
    for _ in range(4):
        c, d = policy.ask(), loaded.ask()
        assert np.array_equal(c, d)
        y = world.measure(c)
        policy.tell(c, y)
        loaded.tell(d, y)
    assert np.array_equal(policy.scores, loaded.scores)
    assert policy.should_stop() == loaded.should_stop()
    assert policy.confidence == loaded.confidence


def test_whole_vectors_find_the_set() -> None:
    problem = Problem(families.toeplitz(30, 0.8), shift=1.0, n_anomalies=3, budget=3.0)
    for name in ("joint", "exact", "joint-pair"):
        world, policy = Simulator(problem, seed=4), make_policy(name, problem, seed=4)
        for x in world.sample(12):
            policy.observe(x)
        assert policy.n_readings == 12
        assert np.array_equal(policy.decision, world.anomalies)


def test_outlying_readings_do_not_decide() -> None:
    problem = Problem(families.toeplitz(20, 0.6), shift=3.0, n_anomalies=2, budget=3.0)
    right = {0.0: 0, 0.1: 0}
    for outliers in right:
        for seed in range(12):
            world, rng = Simulator(problem, seed=seed), np.random.default_rng(seed)
            policy = make_policy("joint", problem, seed=seed, stopping=25, outliers=outliers)
            while not policy.should_stop():
                c = policy.ask()
                wild = 30.0 * (rng.random() < 0.1) * rng.standard_normal() * np.sqrt(problem.noise_variance(c))
                policy.tell(c, world.measure(c) + wild)
            right[outliers] += np.array_equal(policy.decision, world.anomalies)
    assert right[0.1] >= 11
    assert right[0.1] > right[0.0]


@pytest.mark.parametrize("size", [30.0, 1e3, 1e8])
@pytest.mark.parametrize("K", [20, 60])
def test_one_reading_far_off_decides_nothing(K: int, size: float) -> None:
    """However far: its influence is bounded, and the fit is judged by the same likelihood."""
    problem = Problem(families.toeplitz(K, 0.7), shift=3.0, n_anomalies=2, budget=4.0)
    right = 0
    for seed in range(4):
        world, policy = Simulator(problem, seed=seed), make_policy("joint", problem, seed=seed, outliers=0.05)
        for t in range(40):
            c = policy.ask()
            policy.tell(c, world.measure(c) + size * (t == 4) * np.sqrt(problem.noise_variance(c)))
        right += np.array_equal(policy.decision, world.anomalies)
        assert policy.fit is not None
        assert policy.fit > 1e-3
    assert right == 4


@pytest.mark.parametrize("name", ["joint", "exact"])
def test_a_search_does_not_stop_on_readings_that_its_set_cannot_have_made(name: str) -> None:
    problem = Problem(np.eye(6), shift=2.0, n_anomalies=1, budget=1.0)
    policy = make_policy(name, problem)
    for k in (0, 1, 0):
        policy.tell(np.eye(6)[k], 1e8)
    assert policy.fit is not None
    assert policy.fit < 1e-6
    assert not policy.should_stop()
    found = search(policy, lambda c: 1e8 * float(np.sign(c.sum())), max_measurements=5)
    assert found.reason == "max_measurements"
    assert found.fit == policy.fit


@pytest.mark.parametrize("shift", [2.0, UnknownShift(2.0)], ids=["known", "unknown"])
@pytest.mark.parametrize("runs", [60, pytest.param(150, marks=pytest.mark.slow)])
def test_the_fit_is_uniform_where_the_model_holds(shift: float | UnknownShift, runs: int) -> None:
    """A probability of readings as bad or worse, if the set is right, must be uniform over runs."""
    problem = Problem(families.toeplitz(12, 0.5), shift=shift, n_anomalies=2, budget=3.0)
    chances = []
    for seed in range(runs):
        world, policy = Simulator(problem, seed=seed), make_policy("exact", problem, stopping=None)
        for x in world.sample(8):
            policy.observe(x)
        likelihood = policy.likelihood
        assert likelihood is not None
        chances.append(likelihood.fit(world.anomalies).chance)
    assert kstest(chances, "uniform").pvalue > 1e-3


def test_the_fit_with_outliers_is_uniform_where_the_model_holds() -> None:
    problem, rng = Problem(np.eye(3), shift=2.0, n_anomalies=1, budget=1.0), np.random.default_rng(3)
    chances = []
    for _ in range(300):
        likelihood = robust_likelihood(problem, 0.2)
        for k in range(12):
            wild = rng.random() < 0.2
            noise = 10.0 * rng.standard_cauchy() if wild else rng.standard_normal()
            likelihood.evidence.add(np.eye(3)[k % 3], 2.0 * (k % 3 == 1) + noise)
        chances.append(likelihood.fit(np.array([1])).chance)
    assert kstest(chances, "uniform").pvalue > 1e-3


def test_noise_of_the_instrument_counts_and_gives_the_budget_a_meaning() -> None:
    quiet = Problem(families.identity(4), shift=1.0, n_anomalies=1, budget=2.0)
    loud = quiet.replace(readout_noise=3.0)
    c = np.array([1.0, -1.0, 0.0, 0.0])
    assert_allclose(loud.noise_variance(c), 2.0 + 9.0)
    assert_allclose(loud.noise_variance(2.0 * c), 8.0 + 9.0)
    readings = [Simulator(loud, seed=s, anomalies=[2]).measure(c) for s in range(4000)]
    assert abs(np.var(readings) / 11.0 - 1.0) < 0.1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_anomalies": (3, 1)}, "the least must not be above"),
        ({"n_anomalies": (0, 4)}, "smaller than the number of streams"),
        ({"n_anomalies": (1, 2, 3)}, "least, most"),
        ({"n_anomalies": (-1, 2)}, "at least 0"),
        ({"readout_noise": -1.0}, "must not be negative"),
        ({"shift": [1.0, UnknownShift(1.0), 0.0, 2.0]}, "shift of stream 2 is 0"),
    ],
)
def test_bad_problems_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Problem(families.identity(4), **({"shift": 1.0, "n_anomalies": 1, "budget": 2.0} | change))  # type: ignore[arg-type]


def test_bad_unknown_shifts_and_outliers_are_refused() -> None:
    with pytest.raises(ValueError, match="scale"):
        UnknownShift(0.0)
    with pytest.raises(ValueError, match="either"):
        UnknownShift(1.0, "up")  # type: ignore[arg-type]
    problem = Problem(families.identity(8), shift=1.0, n_anomalies=1, budget=2.0)
    with pytest.raises(ValueError, match="share of the readings"):
        make_policy("joint", problem, outliers=0.7)
    with pytest.raises(ValueError, match="known shifts"):
        make_policy("joint", problem.replace(shift=UnknownShift(1.0)), outliers=0.1)
