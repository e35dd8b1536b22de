"""How many measurements a search takes: simulated with the model's covariance, beside a bound for any method."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from eccaht.arrays import Array, Index, as_count
from eccaht.diagnose.verdicts import ALPHA, LATE, WRONG, Check, Verdict
from eccaht.eigen import largest_eigenpair
from eccaht.extras import one_thread
from eccaht.model.model import Model
from eccaht.policies import DEFAULT_POLICY, make_policy
from eccaht.presentation.text import lasting, percent, rounded
from eccaht.problem import Problem
from eccaht.randomness import rng_for
from eccaht.run.loop import settled
from eccaht.run.simulator import Simulator
from eccaht.statistics import Delay, delay, reached_for_good

RUNS, HORIZON, BUDGET = 20, 500, 5.0
_SETS, _ROUNDS = 5, 60  # anomalous sets that the bound is averaged over, and steps towards the best bound of each
_RIVALS, _CANDIDATES = 100, 1000  # sensors outside a set that a bound looks at, and that these are chosen from


@dataclass(frozen=True)
class Expectation:
    """What searches for n anomalies of a given shift come to, if the world is as the model says.

    right: measurements until the decision is right for good; stopped: until the policy's rule would stop.
    wrong: searches that the rule would have stopped with a wrong set.
    bound: mean measurements below which no method can err as rarely as ALPHA.
    """

    policy: str
    n_anomalies: int
    shift: float
    budget: float
    runs: int
    horizon: int
    seed: int
    seconds: float
    right: Delay
    stopped: Delay
    wrong: int
    bound: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        plain = {name: value for name, value in vars(self).items() if name not in ("right", "stopped")}
        for name, found in (("right", self.right), ("stopped", self.stopped)):
            plain[name] = {**found._asdict(), "censored": found.censored, "lower_bound": found.censored > 0}
        return plain


def expect(
    model: Model,
    *,
    n_anomalies: int,
    shift: float,
    budget: float = BUDGET,
    runs: int = RUNS,
    horizon: int = HORIZON,
    seed: int = 0,
    policy: str = DEFAULT_POLICY,
    progress: Callable[[int], object] = lambda _: None,
) -> Expectation:
    """Simulate searches with the covariance of the model; in each, another set of sensors is anomalous."""
    runs, horizon = as_count(runs, "runs", least=1), as_count(horizon, "horizon", least=1)
    problem = model.problem(shift=shift, n_anomalies=n_anomalies, budget=budget)
    make_policy(policy, problem)  # refuses what does not fit before any work starts
    right: list[int | None] = []
    stopped: list[int | None] = []
    wrong = 0
    for run in range(runs):
        with one_thread():  # a step is too small to be shared
            hits, stop = _search(problem, policy, (seed, run), horizon)
        right.append(reached_for_good(hits, level=n_anomalies))
        stopped.append(stop)
        wrong += int(stop is not None and hits[stop - 1] < n_anomalies)
        progress(1)
    sets = [Simulator(problem, seed=(seed, run)).anomalies for run in range(min(runs, _SETS))]
    with one_thread():
        bound = float(np.mean([fewest_measurements(problem, anomalies) for anomalies in sets]))
    return Expectation(
        policy=policy,
        n_anomalies=n_anomalies,
        shift=float(shift),
        budget=float(budget),
        runs=runs,
        horizon=horizon,
        seed=seed,
        seconds=model.seconds,
        right=delay(right, horizon, rng=rng_for(seed, "interval", "right")),
        stopped=delay(stopped, horizon, rng=rng_for(seed, "interval", "stopped")),
        wrong=wrong,
        bound=bound,
    )


def _search(problem: Problem, name: str, seed: tuple[int, int], horizon: int) -> tuple[Array, int | None]:
    """Anomalies in the set after each measurement, and when the policy's own rule would have stopped."""
    policy, world = make_policy(name, problem, seed=seed), Simulator(problem, seed=seed, names=(name,))
    hits, stop = np.zeros(horizon), None
    for step in range(horizon):
        c = policy.ask()
        policy.tell(c, world.measure(c))
        hits[step] = np.isin(policy.decision, world.anomalies).sum()
        if stop is None and policy.should_stop():
            stop = step + 1
        if stop is not None and settled(policy, world.anomalies):
            hits[step:] = hits[step]
            break
    return hits, stop


def fewest_measurements(problem: Problem, anomalies: Index, alpha: float = ALPHA) -> float:
    """Mean measurements that any method needs to name this set and err with probability at most alpha.

    Whatever is measured, and in whatever mix, some single swap of the set gains at most
    Gamma = lambda_max(sum of w d d') / 2 nats a measurement, d = S^-1/2 (shift_i e_i - shift_j e_j), for any weights w
    of the swaps that sum to 1. The mean number is then at least kl(alpha, 1 - alpha) / Gamma. Weights are improved by
    multiplicative steps; each of them gives a valid bound, also where the budget limits measurements. Of many sensors
    only those that are hardest to tell from the set get weight.
    """
    rivals = _hardest(problem, anomalies)
    chosen = np.concatenate([anomalies, rivals])
    white = _root(problem, chosen)  # column k: shift of the chosen k in white noise, turned
    A, B = white[:, : anomalies.size], white[:, anomalies.size :]
    weights = np.full((A.shape[1], B.shape[1]), 1.0 / (A.shape[1] * B.shape[1]))
    least = math.inf
    for step in range(_ROUNDS):
        across = A @ weights @ B.T
        M = (A * weights.sum(axis=1)) @ A.T + (B * weights.sum(axis=0)) @ B.T - across - across.T
        value, vector = largest_eigenpair(M)
        least = min(least, value)
        gained = np.square((vector @ A)[:, None] - vector @ B)
        weights = weights * np.exp(-gained / (gained.max() * math.sqrt(1.0 + step)))
        weights /= weights.sum()
    needed = (1.0 - 2.0 * alpha) * math.log((1.0 - alpha) / alpha)
    return max(1.0, needed / (0.5 * least))


def _hardest(problem: Problem, anomalies: Index) -> Index:
    """The sensors outside the set whose swap with a member shows least, at most _RIVALS."""
    outside = np.setdiff1d(np.arange(problem.size), anomalies)
    outside = outside[np.linspace(0, outside.size - 1, min(outside.size, _CANDIDATES)).round().astype(np.intp)]
    if outside.size <= _RIVALS:
        return outside
    G = _gram(problem, np.concatenate([anomalies, outside]))
    own, n = G.diagonal(), anomalies.size
    information = own[:n, None] + own[n:] - 2.0 * G[:n, n:]
    return outside[np.argsort(information.min(axis=0), kind="stable")[:_RIVALS]]


def _gram(problem: Problem, chosen: Index) -> Array:
    """Inner products of the chosen sensors' shifts in white noise: shift_i shift_j (S^-1)_ij."""
    units = np.zeros((problem.size, chosen.size))
    units[chosen, range(chosen.size)] = problem.shift[chosen]
    G: Array = units.T @ problem.covariance.solve(units)
    return 0.5 * (G + G.T)


def _root(problem: Problem, chosen: Index) -> Array:
    """A square matrix whose columns have these inner products: only they matter."""
    values, vectors = np.linalg.eigh(_gram(problem, chosen))
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def judge(found: Expectation) -> Check:
    """Turn the simulated searches into a check."""
    right, runs, late = found.right, found.runs, found.right.censored
    verdict: Verdict = "not fit" if late > LATE * runs else "caution" if late or found.wrong > WRONG * runs else "ok"
    mean = f"{'at least ' if late else ''}{rounded(right.mean)}"
    interval = f" [{rounded(right.interval[0])}, {rounded(right.interval[1])}]" if right.interval else ""
    anomalies = f"{found.n_anomalies} anomalies" if found.n_anomalies > 1 else "1 anomaly"
    meaning = (
        f"{runs} simulated searches with {found.policy} for {anomalies} of shift {found.shift:g}, budget "
        f"{found.budget:g}: the set is right for good after {mean} measurements on average{interval}, "
        f"{lasting(right.mean * found.seconds)} at one a window."
    )
    meaning += f" {late} of {runs} were not right after {found.horizon}." if late else ""
    meaning += f" Its rule stopped {runs - found.stopped.censored} of them, {found.wrong} with a wrong set."
    if found.bound >= 1.05:
        meaning += f" Below {rounded(found.bound)} on average no method errs in only {percent(ALPHA)} of searches."
    action = ""
    if late:
        action = "Search for a larger shift or fewer anomalies (`--shift`, `--anomalies`), raise the `--budget`, or "
        action += "allow more measurements (`--horizon`)."
    elif verdict != "ok":
        action = f"Do not let the rule stop the search: identify with `--stopping {max(t for t in right.times if t)}`, "
        action += "which was enough in every simulated search."
    limits = f"ok if every search ends right and at most {percent(WRONG)} would stop wrong, "
    limits += f"not fit if more than {percent(LATE)} do not end right within {found.horizon}"
    return Check("expected measurements", right.mean, f"{mean} measurements", verdict, limits, meaning, action)


def impossible(reason: str) -> Check:
    """The check where the covariance is too ill-conditioned to search with at all."""
    limits = "not fit if no measurement can be designed"
    action = "Calibrate with `--ridge 0.01`, or leave near-duplicate sensors out (`--exclude`)."
    return Check("expected measurements", None, "none", "not fit", limits, f"{reason[:1].upper()}{reason[1:]}.", action)
