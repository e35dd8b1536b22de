"""What a search over windows says is what its readings say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from eccaht import Problem, Simulator, families, make_policy, policy_names
from eccaht.arrays import Array
from eccaht.environments import Replay
from eccaht.identification import Entry, Finding, investigate, search
from eccaht.identification.finding import confirmation, estimate_sizes, swap_evidence
from eccaht.policies import Policy

START = np.datetime64("2024-05-01T08:00", "us")
NAMES = tuple(f"s{k}" for k in range(8))


def pose(rho: float = 0.6, n: int = 2) -> Problem:
    shift = np.array([3.0, -3.0, 2.0, 2.5, -2.0, 3.0, 2.0, 4.0])
    return Problem(
        families.toeplitz(8, rho), shift=shift, n_anomalies=n, budget=3.0, mean=np.linspace(-1, 1, 8), names=NAMES
    )


def windows(x: Array) -> list[tuple[np.datetime64, Array]]:
    return [(START + k * np.timedelta64(60, "s"), row) for k, row in enumerate(x)]


def found(policy: Policy, x: Array, **options: int | float | None) -> Finding:
    per_window = int(options.pop("per_window", 1) or 1)
    return investigate(policy, Replay(windows(x), policy.problem, per_window=per_window), **options)  # type: ignore[arg-type]


def log_likelihood(problem: Problem, entries: tuple[Entry, ...], anomalies: tuple[int, ...]) -> float:
    S = problem.covariance.dense()
    total = 0.0
    for entry in entries:
        c = entry.weights
        total -= (entry.reading - problem.expected(c, anomalies)) ** 2 / (2 * float(c @ S @ c))
    return total


@pytest.mark.parametrize("per_window", [1, 3])
def test_the_gain_of_every_swap_is_the_difference_of_likelihoods_of_the_two_sets(per_window: int) -> None:
    problem = pose()
    x = Simulator(problem, anomalies=[1, 5], seed=3).sample(12)
    x[2, 4] = x[5, :3] = np.nan
    finding = found(make_policy("ecc-aht", problem, stopping=None), x, per_window=per_window)
    A = set(finding.anomalies.tolist())
    for row, i in enumerate(finding.anomalies.tolist()):
        for j in range(8):
            if j in A:
                assert finding.swaps[row, j] == np.inf
                continue
            other = tuple(sorted(A - {i} | {j}))
            gain = log_likelihood(problem, finding.entries, tuple(A)) - log_likelihood(problem, finding.entries, other)
            assert finding.swaps[row, j] == pytest.approx(gain, abs=1e-9)
            shares = swap_evidence(problem, finding.entries, finding.anomalies, i, j)
            assert shares.sum() == pytest.approx(gain, abs=1e-9)
    assert finding.swap.gain == finding.swaps.min()
    assert finding.swap.out in A
    assert finding.swap.into not in A


@pytest.mark.parametrize("name", [name for name in policy_names() if name != "hds"])
def test_every_policy_can_search_recorded_windows(name: str) -> None:
    problem = pose(rho=0.0)
    x = Simulator(problem, anomalies=[1, 5], seed=1).sample(150)
    policy = make_policy(name, problem, stopping=None)
    finding = found(policy, x)
    assert finding.names == ("s1", "s5")
    assert (finding.reason, finding.n_measurements, finding.n_windows) == ("data_ended", 150, 150)
    assert np.array_equal(finding.scores, policy.scores)
    assert np.array_equal(finding.beliefs, policy.beliefs)
    assert finding.runner_up == max(set(range(8)) - {1, 5}, key=lambda k: policy.scores[k])
    assert finding.margin == pytest.approx(min(policy.scores[[1, 5]]) - policy.scores[finding.runner_up])


def test_entries_tell_the_search_as_it_was() -> None:
    problem = pose()
    x = Simulator(problem, anomalies=[0, 7], seed=4).sample(40)
    watched: list[Entry] = []
    policy, twin = (make_policy("ecc-aht", problem, stopping=None, seed=2) for _ in range(2))
    finding = investigate(policy, Replay(windows(x), problem), watch=watched.append)
    assert tuple(watched) == finding.entries
    before = twin.scores.copy()
    for t, entry in enumerate(finding.entries):
        held, c, pair = twin.decision, twin.ask(), twin.pair
        assert (entry.number, entry.window, entry.time) == (t + 1, t, windows(x)[t][0])
        assert np.array_equal(entry.held, held)
        assert (entry.champion, entry.challenger) == pair
        assert np.array_equal(entry.weights, c)
        assert entry.reading == pytest.approx(c @ x[t])
        swap = sorted({*held.tolist()} - {entry.champion} | {entry.challenger})
        assert entry.expected == pytest.approx(problem.expected(c, held))
        assert entry.expected_swapped == pytest.approx(problem.expected(c, swap))
        v = c @ problem.covariance.dense() @ c
        near, far = entry.reading - entry.expected, entry.reading - entry.expected_swapped
        assert entry.evidence == pytest.approx((far**2 - near**2) / (2 * v))
        twin.tell(c, entry.reading)
        assert np.array_equal(entry.scores, twin.scores)
        assert entry.moved == pytest.approx(twin.scores - before)
        assert np.array_equal(entry.decision, twin.decision)
        before = twin.scores.copy()
    changed = [e.number for e in finding.entries if not np.array_equal(e.held, e.decision)]
    assert finding.settled == max(changed, default=1)


def test_sizes_are_those_of_least_squares_and_their_errors_are_true() -> None:
    problem = pose(n=3)
    true = {1: -2.0, 3: 4.0, 6: 1.0}
    rng = np.random.default_rng(0)
    estimates, errors = [], []
    decision = np.array([1, 3, 6])
    designs = rng.standard_normal((6, 8))
    for _ in range(400):
        x = problem.mean + problem.covariance.sample(rng, 6)
        for k, size in true.items():
            x[:, k] += size
        entries = [made(problem, c, float(c @ row)) for c, row in zip(designs, x, strict=True)]
        sizes, error = estimate_sizes(problem, entries, decision)
        estimates.append(sizes)
        errors.append(error)
    assert np.mean(estimates, axis=0) == pytest.approx(list(true.values()), abs=4 * np.max(errors) / 20)
    assert np.std(estimates, axis=0) == pytest.approx(errors[0], rel=0.15)
    unknown, _ = estimate_sizes(problem, entries[:2], decision)  # two readings cannot tell three sizes
    assert np.isnan(unknown).all()


def made(problem: Problem, c: Array, y: float) -> Entry:
    nothing, none = np.zeros(8), np.zeros(0, dtype=np.intp)
    noise = float(np.sqrt(problem.noise_variance(c)))
    return Entry(1, 0, START, c, y, noise, 0, 1, 0.0, 0.0, none, none, nothing, nothing, 0.0)


def test_a_confirmed_set_beats_every_single_swap_by_the_threshold() -> None:
    problem = Problem(families.toeplitz(20, 0.8), shift=3.0, n_anomalies=3, budget=4.0)
    hasty = unsettled = wrong = 0
    for seed in range(20):
        x = Simulator(problem, seed=seed).sample(300)
        truth = Simulator(problem, seed=seed).anomalies
        plain = found(make_policy("ecc-aht", problem, seed=seed), x)
        finding = found(make_policy("ecc-aht", problem, seed=seed), x, confirm=0.05)
        assert finding.n_measurements >= plain.n_measurements
        needed = confirmation(problem, finding.anomalies, 0.05)
        assert needed == pytest.approx(np.log(3 * 17 / 0.05))
        assert (finding.reason == "stopped") == (finding.swap.gain >= needed)
        hasty += not np.array_equal(plain.anomalies, truth)
        unsettled += finding.reason != "stopped"
        wrong += finding.reason == "stopped" and not np.array_equal(finding.anomalies, truth)
    assert hasty >= 5  # what the gap rule alone does on such noise
    assert wrong <= 2


def test_why_a_search_ended() -> None:
    problem = pose(rho=0.0)
    x = Simulator(problem, anomalies=[0, 7], seed=4).sample(60)
    assert found(make_policy("ecc-aht", problem), x).reason == "stopped"
    assert found(make_policy("ecc-aht", problem), x, max_measurements=2).reason == "max_measurements"
    short = found(make_policy("ecc-aht", problem, stopping=None), x[:4])
    assert (short.reason, short.n_measurements, short.last) == ("data_ended", 4, windows(x)[3][0])
    with pytest.raises(ValueError, match="no window to read"):
        found(make_policy("ecc-aht", problem), x[:0])
    with pytest.raises(ValueError, match="missing in all 3 windows"):
        found(make_policy("ecc-aht", problem), np.full((3, 8), np.nan))
    with pytest.raises(ValueError, match="max_measurements"):
        next(search(make_policy("ecc-aht", problem), Replay(windows(x), problem), 0))


def test_several_readings_a_window_need_fewer_windows() -> None:
    problem = pose()
    x = Simulator(problem, anomalies=[1, 5], seed=8).sample(200)
    one, four = (found(make_policy("ecc-aht", problem), x, per_window=m, confirm=0.05) for m in (1, 4))
    assert four.names == one.names == ("s1", "s5")
    assert four.n_windows < one.n_windows
    used = [len(list(group)) for _, group in itertools.groupby(four.entries, key=lambda entry: entry.window)]
    assert max(used) == 4
