"""What a search over windows says is what its readings say."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, Simulator, UnknownShift, families, make_policy, policy_names
from eccaht.base.arrays import Array
from eccaht.plants.incident.search import Finding, Investigation, arguments, investigate, strongest_argument
from eccaht.plants.replay import Replay
from eccaht.streams.policies import Policy
from eccaht.streams.run.evidence import EMPTY, Change, Evidence
from eccaht.streams.run.loop import estimated_shifts
from eccaht.streams.run.recorders import Ledger, LedgerEntry

START = np.datetime64("2024-05-01T08:00", "us")
NAMES = tuple(f"s{k}" for k in range(8))


def pose(rho: float = 0.6, n: int = 2) -> Problem:
    shift = np.array([3.0, -3.0, 2.0, 2.5, -2.0, 3.0, 2.0, 4.0])
    return Problem(
        families.toeplitz(8, rho), shift=shift, n_anomalies=n, budget=3.0, mean=np.linspace(-1, 1, 8), names=NAMES
    )


def windows(x: Array) -> list[tuple[np.datetime64, Array]]:
    return [(START + k * np.timedelta64(60, "s"), row) for k, row in enumerate(x)]


def found(policy: Policy, x: Array, **options: int | None) -> Finding:
    per_window = int(options.pop("per_window", 1) or 1)
    return investigate(policy, Replay(windows(x), policy.problem, per_window=per_window), **options)


def log_likelihood(problem: Problem, entries: tuple[LedgerEntry, ...], anomalies: tuple[int, ...]) -> float:
    S = problem.covariance.dense()
    total = 0.0
    for entry in entries:
        c = entry.weights
        total -= (entry.reading - problem.expected(c, anomalies)) ** 2 / (2 * float(c @ S @ c))
    return total


def best(problem: Problem, finding: Finding, i: int) -> tuple[float, int]:
    """The smallest loss of likelihood if another sensor replaces i, and that sensor, by trying each."""
    A = set(finding.anomalies.tolist())
    own = log_likelihood(problem, finding.entries, tuple(A))
    tried = [(own - log_likelihood(problem, finding.entries, (*(A - {i}), j)), j) for j in set(range(8)) - A]
    return min(tried)


@pytest.mark.parametrize("per_window", [1, 3])
def test_rivals_are_the_best_of_all_sets_one_swap_away(per_window: int) -> None:
    problem = pose()
    x = Simulator(problem, anomalies=[1, 5], seed=3).sample(12)
    x[2, 4] = x[5, :3] = np.nan
    finding = found(make_policy("ecc-aht", problem, stopping=None), x, per_window=per_window)
    assert [change.out for change in finding.rivals] == finding.anomalies.tolist()
    for change in finding.rivals:
        gain, into = best(problem, finding, change.out)
        assert change.into == into
        assert change.log_odds == pytest.approx(gain, abs=1e-9)
        said = arguments(problem, finding, change)
        assert sum(argument.evidence for argument in said) == pytest.approx(gain, abs=1e-9)
        assert strongest_argument(problem, finding, change).evidence == max(argument.evidence for argument in said)
    assert finding.rival == min(finding.rivals, key=lambda change: change.log_odds)


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


def test_entries_record_the_search_as_it_was() -> None:
    problem = pose()
    x = Simulator(problem, anomalies=[0, 7], seed=4).sample(40)
    policy, twin = (make_policy("ecc-aht", problem, stopping=None, seed=2) for _ in range(2))
    ledger = Ledger(policy)
    finding = investigate(policy, Replay(windows(x), problem), ledger=ledger)
    assert tuple(ledger.entries) == finding.entries
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
        record = Evidence(problem)
        for c, row in zip(designs, x, strict=True):
            record.add(c, float(c @ row))
        sizes, error = record.sizes(decision)
        estimates.append(sizes)
        errors.append(error)
    assert np.mean(estimates, axis=0) == pytest.approx(list(true.values()), abs=4 * np.max(errors) / 20)
    assert np.std(estimates, axis=0) == pytest.approx(errors[0], rel=0.15)
    short = Evidence(problem)
    for c in designs[:2]:
        short.add(c, 0.0)
    assert np.isnan(short.sizes(decision)).all()  # two readings cannot determine three sizes


def test_nothing_wrong_is_a_finding_with_a_confidence() -> None:
    problem = pose().replace(n_anomalies=(0, 3))
    x = problem.mean + problem.covariance.sample(np.random.default_rng(1), 200)
    policy = make_policy("joint", problem)
    finding = found(policy, x)
    assert (finding.names, finding.reason, finding.rivals) == ((), "stopped", ())
    assert finding.confidence is not None
    assert finding.confidence.how == "exact"
    assert 0.95 <= finding.confidence.probability <= 1.0
    assert np.isnan(finding.margin)
    assert finding.shifts.values.size == 0
    assert finding.rival.out == EMPTY
    own, other = (log_likelihood(problem, finding.entries, members) for members in ((), (finding.rival.into,)))
    prior = np.log(8)  # sizes are equally likely, and there are eight sets of one sensor
    assert finding.rival.log_odds == pytest.approx(own - other + prior, abs=1e-9)


def test_an_open_number_is_found_and_rivals_may_lack_a_sensor() -> None:
    problem = pose().replace(n_anomalies=(0, 3))
    x = Simulator(problem, anomalies=[1, 5], seed=3).sample(200)
    finding = found(make_policy("joint", problem, stopping=60), x)
    assert finding.names == ("s1", "s5")
    assert {change.of(finding.anomalies).size for change in finding.rivals} <= {1, 2}
    assert {entry.champion for entry in finding.entries} | {entry.challenger for entry in finding.entries} >= {EMPTY}
    for entry in finding.entries:
        other = Change(entry.champion, entry.challenger, 0.0).of(entry.held)
        assert entry.expected == pytest.approx(problem.expected(entry.weights, entry.held))
        assert entry.expected_swapped == pytest.approx(problem.expected(entry.weights, other))
        v = problem.noise_variance(entry.weights)
        near, far = entry.reading - entry.expected, entry.reading - entry.expected_swapped
        assert entry.evidence == pytest.approx((far**2 - near**2) / (2 * v))


def test_unknown_shifts_are_estimated_with_the_intervals_of_the_policy() -> None:
    problem = pose().replace(shift=[UnknownShift(3.0)] * 7 + [4.0])
    x = Simulator(pose(), anomalies=[1, 7], seed=3).sample(80)
    policy = make_policy("joint", problem, stopping=None)
    finding = found(policy, x)
    assert finding.names == ("s1", "s7")
    estimates = estimated_shifts(policy)
    assert estimates is not None
    assert finding.shifts.low[0] == pytest.approx(estimates.low[0])
    assert finding.shifts.low[0] < -3.0 < finding.shifts.high[0]
    assert np.isnan(finding.shifts.values[1])  # it was known
    # what the readings add to the evidence, each given the earlier ones, adds up to the log-odds of the two sets
    held, other = np.array([1, 7]), np.array([4, 7])
    record, total = Evidence(problem), 0.0
    for entry in finding.entries:
        before = record.log_odds(held, other)
        record.add(entry.weights, entry.reading)
        total += record.log_odds(held, other) - before
    assert total == pytest.approx(finding.evidence.log_odds(held, other))


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_windows_observed_whole_say_what_their_present_sensors_say(noise: float) -> None:
    problem = pose().replace(readout_noise=noise)
    x = Simulator(problem, anomalies=[1, 5], seed=3).sample(6)
    x[1, 4] = x[2, :3] = x[4, 1:] = np.nan
    x[3] = np.nan
    replay = Replay(windows(x), problem)
    finding = investigate(make_policy("joint", problem, stopping=None), replay, vectors=True)
    assert (finding.n_measurements, finding.n_windows, finding.n_skipped) == (5, 6, 1)
    S = problem.covariance.dense() + noise**2 * np.eye(8)

    def fit(row: Array, members: tuple[int, ...]) -> float:
        present = ~np.isnan(row)
        off = row - problem.mean
        off[list(members)] -= problem.shift[list(members)]
        return -0.5 * float(off[present] @ np.linalg.solve(S[np.ix_(present, present)], off[present]))

    rows = np.delete(x, 3, axis=0)
    for one, other in itertools.combinations(itertools.combinations(range(8), 2), 2):
        ratio = sum(fit(row, one) - fit(row, other) for row in rows)
        assert finding.evidence.log_odds(np.array(one), np.array(other)) == pytest.approx(ratio, abs=1e-8)
    for entry, row in zip(finding.entries, rows, strict=True):  # each shown as a sum that says as much
        rival = Change(entry.champion, entry.challenger, 0.0).of(entry.held)
        assert entry.evidence == pytest.approx(fit(row, tuple(entry.held)) - fit(row, tuple(rival)), abs=1e-8)
        if entry.noise:
            near, far = entry.reading - entry.expected, entry.reading - entry.expected_swapped
            assert entry.evidence == pytest.approx((far**2 - near**2) / (2 * entry.noise**2), abs=1e-8)
            assert np.abs(entry.weights).sum() == pytest.approx(problem.budget)
    for change in finding.rivals:
        said = arguments(problem, finding, change)
        assert sum(argument.evidence for argument in said) == pytest.approx(change.log_odds, abs=1e-8)


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
        found(make_policy("ecc-aht", problem), x, max_measurements=0)


def test_several_readings_a_window_need_fewer_windows() -> None:
    problem = pose()
    x = Simulator(problem, anomalies=[1, 5], seed=8).sample(200)
    one, four = (found(make_policy("joint", problem), x, per_window=m) for m in (1, 4))
    assert four.names == one.names == ("s1", "s5")
    assert four.n_windows < one.n_windows
    used = [len(list(group)) for _, group in itertools.groupby(four.entries, key=lambda entry: entry.window)]
    assert max(used) == 4


def content(finding: Finding) -> dict[str, Any]:
    """All that a finding says, but for why the search ended and its evidence, which cannot be compared as they are."""
    fields = {field.name: getattr(finding, field.name) for field in dataclasses.fields(finding)}
    fields["entries"] = [dataclasses.asdict(entry) for entry in finding.entries]
    fields["arguments"] = [strongest_argument(pose(), finding, change).evidence for change in finding.rivals]
    return {name: value for name, value in fields.items() if name not in ("reason", "evidence")}


@pytest.mark.parametrize(
    ("name", "options", "vectors"),
    [("ecc-aht", {}, False), ("joint", {}, False), ("joint", {}, True), ("joint", {"stopping": "posterior"}, False)],
)
@pytest.mark.parametrize("shift", [None, UnknownShift(3.0)])
def test_a_finding_of_an_unfinished_search_is_that_of_one_stopped_there(
    name: str, options: dict[str, Any], vectors: bool, shift: UnknownShift | None
) -> None:
    if shift is not None and name != "joint":
        return
    problem = pose() if shift is None else pose().replace(shift=shift)
    x = Simulator(pose(), anomalies=[1, 5], seed=3).sample(14)
    x[2, 4] = x[5, :3] = x[6] = np.nan

    def search(**more: Any) -> Investigation:
        policy = make_policy(name, problem, **{"stopping": None, **options})
        return Investigation(policy, Replay(windows(x), problem), vectors=vectors, **more)

    going_on = search()
    with pytest.raises(ValueError, match="nothing was measured yet"):
        going_on.finding()
    asked = {step.number: going_on.finding() for step in going_on}
    end = going_on.finding()
    assert end.reason == ("stopped" if options else "data_ended")
    np.testing.assert_equal(content(end), content(asked[max(asked)]))
    undisturbed = search()
    assert len(list(undisturbed)) == max(asked)
    np.testing.assert_equal(content(end), content(undisturbed.finding()))  # asking changed nothing
    for number in range(1, max(asked) + 1):
        stopped = search(max_measurements=number)
        assert len(list(stopped)) == number
        assert asked[number].reason == "unfinished" or number == max(asked)
        np.testing.assert_equal(content(asked[number]), content(stopped.finding()))


def test_a_search_can_be_left_and_taken_up_again() -> None:
    problem = pose()
    x = Simulator(problem, anomalies=[1, 5], seed=3).sample(12)
    search = Investigation(make_policy("ecc-aht", problem, stopping=None), Replay(windows(x), problem))
    for step in search:
        if step.number == 5:
            break
    assert search.finding().n_measurements == 5
    assert [step.number for step in search] == list(range(6, 13))


@pytest.mark.parametrize("name", ["ecc-aht", "joint"])
@pytest.mark.parametrize("plain", [False, True])
def test_a_simulator_and_a_function_give_a_finding_at_any_step(name: str, plain: bool) -> None:
    problem = pose()
    world = Simulator(problem, anomalies=[1, 5], seed=3)
    search = Investigation(make_policy(name, problem, stopping=None), world.measure if plain else world)
    with pytest.raises(ValueError, match="nothing was measured yet: take a step first"):
        search.finding()
    for count in range(1, 31):
        next(search)
        finding = search.finding()
        assert finding.n_measurements == len(finding.entries) == count
        assert (finding.n_skipped, finding.cautions) == (0, ())
    assert finding.anomalies.tolist() == [1, 5]
    again = investigate(make_policy(name, problem, stopping=None), world, max_measurements=30)
    assert again.n_measurements == 30
    assert again.anomalies.tolist() == [1, 5]


@pytest.mark.parametrize("world", [None, 5, "readings"])
def test_readings_come_from_a_world_or_a_function(world: Any) -> None:
    with pytest.raises(ValueError, match="readings come from a world or a function of weights, not from"):
        Investigation(make_policy("ecc-aht", pose()), world)
