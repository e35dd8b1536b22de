"""Instruments in parallel: results are given as they come, lost ones are given up, and the order decides everything."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from eccaht import Problem, Simulator, families, identify, make_policy
from eccaht.base.arrays import Array
from eccaht.streams.run import Hits, steps

PROBLEM = Problem(families.toeplitz(24, 0.6), shift=4.0, n_anomalies=2, budget=3.0)
WAIT = 30.0  # seconds after which a test that hangs fails


class Bench:
    """An instrument whose results come in an order that the test decides: slot by slot, of those under way."""

    def __init__(self, world: Simulator, order: Callable[[int], int], count: int) -> None:
        self.world, self.order, self.count = world, order, count
        self.seen: list[Array] = []
        self.most = 0
        self._waiting: list[int] = []
        self._turn = threading.Condition()

    def measure(self, c: Array) -> float:
        with self._turn:
            self.seen.append(c)
            me = len(self.seen) - 1
            self._waiting.append(me)
            self.most = max(self.most, len(self._waiting))
            self._turn.notify_all()
            # wait until as many are under way as can be, then let the chosen one go
            assert self._turn.wait_for(lambda: self._free(me), WAIT)
            self._waiting.remove(me)
            return self.world.measure(c)

    def release(self) -> None:
        """Let all go."""
        with self._turn:
            self.count = 0
            self._turn.notify_all()

    def _free(self, me: int) -> bool:
        if not self.count:
            return True
        return len(self._waiting) >= self.count and self._waiting[self.order(len(self.seen)) % self.count] == me


def searched(order: Callable[[int], int], workers: int = 3) -> tuple[list[Array], list[float]]:
    policy, bench = make_policy("joint", PROBLEM, seed=1, stopping=None), Bench(Simulator(PROBLEM), order, workers)
    done = []
    for step in steps(policy, bench.measure, 200, workers=workers):
        done.append(step)
        if len(done) == 9:
            bench.release()
            break
    assert bench.most == workers
    return [step.weights for step in done], [step.reading for step in done]


def test_results_are_given_in_the_order_in_which_they_come() -> None:
    """The last to begin is the first to be given; measurements follow from that order alone."""
    policy, world = make_policy("joint", PROBLEM, seed=1, stopping=None), Simulator(PROBLEM)
    expected, waiting = [], [policy.ask(batch=1)[0] for _ in range(3)]
    for _ in range(5):
        c = waiting.pop()
        policy.tell(c, world.measure(c))
        expected.append(c)
        waiting.append(policy.ask(batch=1)[0])
    weights, _ = searched(lambda _: -1)
    assert all(np.array_equal(c, d) for c, d in zip(weights[:5], expected, strict=True))


def test_the_same_order_gives_the_same_search() -> None:
    first, second = searched(lambda begun: 5 * begun), searched(lambda begun: 5 * begun)
    for one, other in zip(*map(lambda run: run[0], (first, second)), strict=True):  # noqa: C417
        assert np.array_equal(one, other)
    assert first[1] == second[1]


def test_one_worker_is_the_plain_loop() -> None:
    plain, alone = (make_policy("joint", PROBLEM, seed=3) for _ in range(2))
    one = identify(plain, Simulator(PROBLEM, seed=3).measure, 300)
    other = identify(alone, Simulator(PROBLEM, seed=3).measure, 300, workers=1)
    assert (one.n_measurements, one.reason) == (other.n_measurements, other.reason) == (one.n_measurements, "stopped")
    assert np.array_equal(plain.scores, alone.scores)


@pytest.mark.parametrize("lost", [None, float("nan"), np.float32("nan")])
def test_lost_results_are_given_up_and_the_search_goes_on(lost: float | None) -> None:
    world, lock, calls = Simulator(PROBLEM, seed=4), threading.Lock(), []

    def measure(c: Array) -> float | None:
        with lock:
            calls.append(c)
            return lost if len(calls) % 5 == 0 else world.measure(c)

    policy = make_policy("joint", PROBLEM, seed=4)
    found = identify(policy, measure, 300, workers=4)
    assert np.array_equal(found.anomalies, world.anomalies)
    assert found.reason == "stopped"
    assert found.n_measurements == policy.n_told <= len(calls) - len(calls) // 5
    assert policy.pending.shape == (0, 24)


def test_measurements_that_were_lost_count_for_the_limit() -> None:
    found = identify(make_policy("joint", PROBLEM), lambda _: None, 7, workers=2)
    assert (found.n_measurements, found.reason) == (0, "max_measurements")
    with pytest.raises(RuntimeError, match="1000 results in a row were lost: see to the instrument"):
        identify(make_policy("round-robin", PROBLEM), lambda _: None, workers=2)


def test_an_error_of_the_instrument_ends_the_search_and_leaves_what_was_under_way_pending() -> None:
    world, both = Simulator(PROBLEM, seed=5), threading.Barrier(2, timeout=WAIT)

    def breaks(_: Array) -> float:
        both.wait()  # both are under way
        raise OSError("cable")

    policy = make_policy("joint", PROBLEM, seed=5)
    with pytest.raises(OSError, match="cable"):
        identify(policy, breaks, 300, workers=2)
    assert policy.n_told == 0
    pending = policy.pending
    assert len(pending) == 2
    asked: list[Array] = []

    def measure(c: Array) -> float:
        asked.append(c)
        return world.measure(c)

    list(steps(policy, measure, 2, workers=1))
    assert np.array_equal(asked, pending)
    assert np.array_equal(identify(policy, world.measure, 300, workers=2).anomalies, world.anomalies)
    assert len(policy.pending) == 0


def test_recorders_see_every_step_and_its_pair() -> None:
    policy, world = make_policy("ecc-aht", PROBLEM, seed=6, stopping=None), Simulator(PROBLEM, seed=6)
    hits = Hits(world.anomalies)
    made = list(steps(policy, world.measure, 12, recorders=[hits], workers=3))
    assert [step.number for step in made] == list(range(1, 13))
    assert len(hits.counts) == 12
    assert all(step.champion >= 0 and step.challenger >= 0 for step in made)


def test_whole_windows_and_odd_numbers_are_refused() -> None:
    policy = make_policy("joint", PROBLEM)
    with pytest.raises(ValueError, match="workers read weighted sums"):
        next(steps(policy, Simulator(PROBLEM), whole=True, workers=2))
    with pytest.raises(ValueError, match="workers must be a whole number of at least 1"):
        identify(policy, lambda _: 0.0, 5, workers=0)
    walk = make_policy("hds", Problem(families.identity(8), shift=5.0, n_anomalies=1, budget=1.0))
    with pytest.raises(ValueError, match="not for this policy"):
        identify(walk, lambda _: 0.0, 5, workers=2)


def test_results_of_workers_that_end_together_come_one_by_one() -> None:
    policy = make_policy("ecc-aht", PROBLEM, stopping=None)
    made = list(steps(policy, Simulator(PROBLEM), limit=40, workers=4))
    assert [step.number for step in made] == list(range(1, 41))
    assert policy.n_told == 40
    assert len(policy.pending) == 0
