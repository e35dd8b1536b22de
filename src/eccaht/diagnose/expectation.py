"""How many measurements a search takes: simulated with the model's covariance, beside a bound for any method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from eccaht.arrays import Array, as_count
from eccaht.diagnose.thresholds import LATE, WRONG
from eccaht.diagnose.verdicts import ALPHA, Check, Verdict, percent
from eccaht.limits import fewest_measurements
from eccaht.model.model import Model
from eccaht.policies import DEFAULT_POLICY, make_policy
from eccaht.problem import Problem
from eccaht.randomness import rng_for
from eccaht.run.loop import settled
from eccaht.run.simulator import Simulator
from eccaht.statistics import Delay, delay, reached_for_good

RUNS, HORIZON, BUDGET = 20, 500, 5.0
_SETS = 5  # anomalous sets that the bound is averaged over


@dataclass(frozen=True)
class Expectation:
    """What searches for n anomalies of a given shift come to, if the world is as the model says.

    right: measurements until the announced set is right for good; stopped: until the policy's rule would stop.
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
        for name, told in (("right", self.right), ("stopped", self.stopped)):
            plain[name] = {**told._asdict(), "censored": told.censored, "lower_bound": told.censored > 0}
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
        with threadpool_limits(1):  # a step is too small to be shared
            hits, stop = _search(problem, policy, (seed, run), horizon)
        right.append(reached_for_good(hits, level=n_anomalies))
        stopped.append(stop)
        wrong += int(stop is not None and hits[stop - 1] < n_anomalies)
        progress(1)
    sets = [Simulator(problem, seed=(seed, run)).anomalies for run in range(min(runs, _SETS))]
    with threadpool_limits(1):
        bound = float(np.mean([fewest_measurements(problem, anomalies, ALPHA) for anomalies in sets]))
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


def judge(told: Expectation) -> Check:
    """Turn the simulated searches into a check."""
    right, late = told.right, told.right.censored
    verdict: Verdict = "not fit" if late > LATE * told.runs else "caution" if late else "ok"
    if verdict == "ok" and told.wrong > WRONG * told.runs:
        verdict = "caution"
    mean = f"{'at least ' if late else ''}{_count(right.mean)}"
    interval = f" [{_count(right.interval[0])}, {_count(right.interval[1])}]" if right.interval else ""
    anomalies = f"{told.n_anomalies} anomalies" if told.n_anomalies > 1 else "1 anomaly"
    meaning = f"{told.runs} simulated searches with {told.policy} for {anomalies} of shift {told.shift:g}, budget "
    meaning += f"{told.budget:g}: the set is right for good after {mean} measurements on average{interval}, "
    meaning += f"{_span(right.mean * told.seconds)} at one a window."
    meaning += f" {late} of {told.runs} were not right after {told.horizon}." if late else ""
    stops = told.runs - told.stopped.censored
    meaning += f" Its rule stopped {stops} of them, {told.wrong} with a wrong set."
    if told.bound >= 1.05:
        meaning += f" Below {_count(told.bound)} on average no method errs in only {percent(ALPHA)} of searches."
    action = ""
    if late:
        action = "Search for a larger shift or fewer anomalies (`--shift`, `--anomalies`), raise the `--budget`, or "
        action += "allow more measurements (`--horizon`)."
    elif verdict != "ok":
        action = f"Do not let the rule stop the search: identify with `--stopping {max(t for t in right.times if t)}`, "
        action += "which was enough in every simulated search."
    limits = f"ok if every search ends right and at most {percent(WRONG)} would stop wrong, "
    limits += f"not fit if more than {percent(LATE)} do not end right within {told.horizon}"
    shown = f"{mean} measurements"
    return Check("expected measurements", right.mean, shown, verdict, limits, meaning, action)


def impossible(reason: str) -> Check:
    """The check where the covariance is too ill-conditioned to search with at all."""
    limits = "not fit if no measurement can be designed"
    action = "Calibrate with `--ridge 0.01`, or leave near-duplicate sensors out (`--exclude`)."
    return Check("expected measurements", None, "none", "not fit", limits, f"{reason[:1].upper()}{reason[1:]}.", action)


def _span(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{_count(seconds / size)} {unit}"
    return f"{_count(seconds)} seconds"


def _count(x: float) -> str:
    return f"{x:.0f}" if x >= 99.95 else f"{x:.1f}".removesuffix(".0")
