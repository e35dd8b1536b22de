"""Whatever asks and tells takes part: it names streams itself, and nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from eccaht import Problem, Simulator, families, from_ask_tell, make_policy, register_policy, search
from eccaht.streams.policies import Entry, Policy
from eccaht.streams.stopping import Never
from tests.checks.capabilities import check_fully

pytestmark = pytest.mark.usefixtures("own_policies")


def problem(size: int = 8, n_anomalies: int | tuple[int, int] = 2) -> Problem:
    return Problem(families.identity(size), shift=4.0, n_anomalies=n_anomalies, budget=1.0, mean=1.0)


class Silent:
    """Reads the streams in turn and keeps what they show to itself."""

    def __init__(self, problem: Problem, seed: int, *, start: int = 0) -> None:
        self.problem, self.seed, self.t = problem, seed, start

    def ask(self) -> NDArray[np.float64]:
        return self.problem.budget * np.eye(self.problem.size)[self.t % self.problem.size]

    def tell(self, c: NDArray[np.float64], y: float) -> None:  # noqa: ARG002
        self.t += 1


class Scores(Silent):
    """As round-robin: in turn, with a log-likelihood ratio for each stream."""

    def __init__(self, problem: Problem, seed: int, *, start: int = 0) -> None:
        super().__init__(problem, seed, start=start)
        n, K = problem.known_number, problem.size
        self.scores = np.full(K, np.log(n / (K - n)))

    def tell(self, c: NDArray[np.float64], y: float) -> None:
        h, v = c * self.problem.shift, self.problem.covariance.quad(c)
        self.scores = self.scores + (h * (y - c @ self.problem.mean) - 0.5 * h**2) / v
        super().tell(c, y)


class Decides(Scores):
    """Names streams alone, by a method, and stops by itself."""

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__(problem, seed)
        self._scores, self.scores = self.scores, None  # type: ignore[assignment]

    def tell(self, c: NDArray[np.float64], y: float) -> None:
        self.scores = self._scores
        super().tell(c, y)
        self._scores, self.scores = self.scores, None  # type: ignore[assignment]

    def decision(self) -> list[int]:
        return [int(k) for k in np.argsort(-self._scores, kind="stable")[: self.problem.known_number]]

    def should_stop(self) -> bool:
        return self.t >= 3 * self.problem.size


ENTRIES: dict[str, Callable[[], Entry]] = {
    "scores": lambda: from_ask_tell(Scores, log_odds=True),
    "decides": lambda: from_ask_tell(Decides, order_matters=True),  # the first of equals is named first
}


@pytest.mark.parametrize("name", ENTRIES)
def test_it_passes_the_suite(name: str) -> None:
    register_policy(name, ENTRIES[name]())
    skipped = {"saving": "an algorithm that asks and tells cannot be saved: no file knows what it remembers"}
    skipped |= {"relabelling": "it declares that the order of the streams matters"} if name == "decides" else {}
    assert check_fully(name) == skipped


def made(build: Any, problem: Problem, **declared: bool) -> Policy:
    """A policy of what `build` makes."""
    register_policy("made", from_ask_tell(build, **declared), replace=True)
    return make_policy("made", problem)


def test_the_scores_are_those_of_the_object() -> None:
    policy = made(Scores, problem(), log_odds=True)
    composed = make_policy("round-robin", problem(), stopping=None)
    for k in range(20):
        for each in (composed, policy):
            each.tell(np.eye(8)[k % 8], 1.0 + 3.0 * (k % 3))
    np.testing.assert_allclose(policy.scores, composed.scores, rtol=1e-12)
    np.testing.assert_allclose(policy.beliefs, composed.beliefs, rtol=1e-12)
    assert_array_equal(policy.decision, composed.decision)


def test_a_search_ends_where_the_object_says() -> None:
    world = Simulator(problem(), anomalies=[2, 5], seed=1)
    found = search(made(Decides, problem()), world.measure)
    assert (found.anomalies.tolist(), found.n_measurements, found.reason) == ([2, 5], 24, "stopped")
    assert isinstance(made(Scores, problem()).stopping, Never)
    with pytest.raises(ValueError, match="of its own"):
        make_policy("made", problem(), stopping="own")


def test_what_it_does_not_offer_is_refused() -> None:
    policy = made(Scores, problem())
    for act in (
        lambda: policy.ask(batch=2),
        lambda: policy.ask(available=np.arange(8) > 0),
        lambda: policy.tell_many(np.eye(8)[:1], [0.0]),
        lambda: policy.observe(np.zeros(8)),
    ):
        with pytest.raises(ValueError, match=r"polic|vectors"):
            act()
    assert (policy.confidence, policy.fit, policy.likelihood) == (None, None, None)
    register_policy("fixed", from_ask_tell(Decides))
    with pytest.raises(ValueError, match="known number"):
        make_policy("fixed", problem(n_anomalies=(0, 3)))


def test_it_may_name_as_many_streams_as_the_problem_leaves_open() -> None:
    class Few(Silent):
        decision: tuple[int, ...] = ()

    few, tied = Few(problem(), 0), Scores(problem(), 0)
    policy = made(lambda *_: few, problem(n_anomalies=(0, 3)), open_number=True)
    assert policy.decision.tolist() == []
    few.decision = (5, 1)
    policy.tell(policy.ask(), 0.0)
    assert policy.decision.tolist() == [1, 5]
    assert policy.beliefs.tolist() == [0, 1, 0, 0, 0, 1, 0, 0]
    policy = made(lambda *_: tied, problem())
    tied.scores = np.array([0.0, 3.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    assert policy.beliefs.tolist() == [0, 1, 0.25, 0, 0.25, 0.25, 0, 0.25]
    policy = made(lambda *_: tied, problem(n_anomalies=(0, 3)), open_number=True)
    with pytest.raises(ValueError, match="has no decision"):
        _ = policy.decision


def test_seed_and_options_reach_the_builder() -> None:
    register_policy("scores", from_ask_tell(Scores))
    built: list[Silent] = []

    def build(problem: Problem, seed: int, *, start: int = 0) -> Silent:
        built.append(Scores(problem, seed, start=start))
        return built[-1]

    register_policy("built", from_ask_tell(build))
    for seed in (1, 1, (1, 2)):
        make_policy("built", problem(), seed=seed, start=3)
    assert [each.t for each in built] == [3, 3, 3]
    assert built[0].seed == built[1].seed != built[2].seed
    assert all(0 <= each.seed < 2**32 for each in built)
    with pytest.raises(ValueError, match="no option 'begin'"):
        make_policy("built", problem(), begin=3)


# -- what is wrong is said -------------------------------------------------------------------------------


def broken(**parts: Any) -> Any:
    return type("Broken", (Scores,), parts)(problem(), 0)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (broken(ask=lambda _: np.ones(8)), r"ask\(\) of Broken gave weights of \|c\|_1 = 8 that Budget\(limit=1.0\)"),
        (broken(ask=lambda _: np.zeros(8)), r"ask\(\) of Broken: measurement is all zero"),
        (broken(ask=lambda _: np.ones(3)), r"ask\(\) of Broken: measurement has shape \(3,\)"),
        (broken(ask=lambda _: None), r"ask\(\) of Broken: "),
        (broken(decision=[1]), "decision of Broken names 1 streams, but 2 are anomalous"),
        (broken(decision=[1, 1]), "decision of Broken must be distinct numbers of streams below 8"),
        (broken(decision=[1, 8]), "decision of Broken must be distinct numbers of streams below 8"),
        (broken(decision=[0.5, 1.0]), "decision of Broken must be distinct numbers"),
        (broken(beliefs=[0.5]), r"beliefs of Broken must be 8 numbers, not an array of shape \(1,\)"),
        (Silent(problem(), 0), "Silent has neither decision nor scores"),
        (object(), r"object has no ask\(\): a policy needs ask\(\) and tell\(c, y\)"),
    ],
)
def test_faults_are_one_line(broken: Any, words: str) -> None:
    def use() -> None:
        policy = made(lambda *_: broken, problem())
        _ = policy.decision, policy.beliefs, policy.ask()

    with pytest.raises(ValueError, match=words):
        use()


def test_one_object_cannot_serve_several_runs() -> None:
    with pytest.raises(ValueError, match="must be a function"):
        from_ask_tell(Scores(problem(), 0))  # type: ignore[arg-type]
