"""All checks of a model and the verdict on the whole; how many measurements a search would take.

That number is simulated with the model's covariance, and shown beside a bound for any method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import as_count
from eccaht.base.extras import one_thread
from eccaht.base.presentation.text import lasting, percent, rounded
from eccaht.base.randomness import rng_for
from eccaht.base.statistics import Delay, delay, reached_for_good
from eccaht.plants.diagnose.checks import CHECKS
from eccaht.plants.diagnose.view import ALPHA, LATE, VERDICTS, WRONG, Check, ModelView, Verdict, actual_error
from eccaht.plants.model.model import Model
from eccaht.streams import (
    DEFAULT_POLICY,
    Hits,
    Problem,
    Simulator,
    fewest_measurements,
    make_policy,
    stays_right,
    steps,
)

RUNS, HORIZON, BUDGET = 20, 500, 5.0
_SETS = 5  # anomalous sets that the bound is averaged over
PURPOSE = (
    "These checks judge searches by weighted sums of sensors ('eccaht identify --sums'). Answers about whole windows "
    "are judged by drills ('eccaht drill')."
)


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
        plain = {name: value for name, value in vars(self).items() if name not in ("right", "stopped")}
        return plain | {"right": self.right.as_dict(), "stopped": self.stopped.as_dict()}


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
    make_policy(policy, problem)  # refuses a problem that the policy cannot handle before any work starts
    right: list[int | None] = []
    stopped: list[int | None] = []
    wrong = 0
    for run in range(runs):
        with one_thread():  # a step is too small to gain from several threads
            hits, stop = _search(problem, policy, (seed, run), horizon)
        right.append(reached_for_good(hits, level=n_anomalies))
        stopped.append(stop)
        wrong += int(stop is not None and hits[stop - 1] < n_anomalies)
        progress(1)
    sets = [Simulator(problem, seed=(seed, run)).anomalies for run in range(min(runs, _SETS))]
    with one_thread():
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


def _search(problem: Problem, name: str, seed: tuple[int, int], horizon: int) -> tuple[NDArray[np.int32], int | None]:
    """Anomalies in the set after each measurement, and when the policy's own rule would have stopped."""
    policy, world = make_policy(name, problem, seed=seed), Simulator(problem, seed=seed, names=(name,))
    hits, stop = Hits(world.anomalies), None
    for step in steps(policy, world, horizon, obey_stopping=False, recorders=[hits]):
        if stop is None and policy.should_stop():
            stop = step.number
        if stop is not None and stays_right(policy, world.anomalies):
            break
    return hits.over(horizon), stop


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


@dataclass(frozen=True)
class Diagnosis:
    """The checks of a model and, if a search was described, what it would take."""

    view: ModelView
    checks: tuple[Check, ...]
    expectation: Expectation | None = None

    @property
    def verdict(self) -> Verdict:
        return max((check.verdict for check in self.checks), key=VERDICTS.index)

    @property
    def caution(self) -> str:
        """What the report of a search with this model must say, "" if the model is fit for use."""
        if self.verdict == "ok":
            return ""
        reasons = [f"{check.name} ({check.shown})" for check in self.checks if check.verdict == self.verdict]
        state = "not fit for a search by sums" if self.verdict == "not fit" else "to be used with care"
        text = f"the model is {state}: {', '.join(reasons)}."
        if self.verdict == "not fit" and self.error > ALPHA:
            text += f" A search with a nominal error rate of {percent(ALPHA)} errs in {percent(self.error)} or more."
        return f"{text} 'eccaht diagnose' says what to do."

    @property
    def error(self) -> float:
        """Least share of wrong results where the nominal one is ALPHA, by the worst check that is not ok."""
        factors = [check.factor for check in self.checks if check.verdict != "ok"]
        return actual_error(max(factors, default=1.0))

    def brief(self) -> dict[str, Any]:
        """The verdict, the checks that are not ok, and the actual error for the nominal ALPHA, for JSON."""
        concerned = [check.name for check in self.checks if check.verdict != "ok"]
        return {"verdict": self.verdict, "checks": concerned, "error": self.error, "promised_error": ALPHA}

    @property
    def about(self) -> str:
        model, clock = self.view.model, self.view.model.clock
        return (
            f"{len(model.names)} sensors, {model.n_windows} windows of {clock.length(model.seconds)} from "
            f"{clock.show(model.first)} to {clock.show(model.last)}{clock.said}, covariance by {model.estimator}"
            + (f" with ridge {model.ridge:g}" if model.ridge else "")
        )

    def as_dict(self) -> dict[str, Any]:
        model = self.view.model
        return {
            "verdict": self.verdict,
            "error": self.error,
            "promised_error": ALPHA,
            "model": {
                "sensors": list(model.names),
                "windows": model.n_windows,
                "window_seconds": model.seconds,
                "first": model.clock.exact(model.first),
                "last": model.clock.exact(model.last),
                "estimator": model.estimator,
                "ridge": model.ridge,
            },
            "checks": [asdict(check) for check in self.checks],
            "expectation": None if self.expectation is None else self.expectation.as_dict(),
        }


def diagnose(model: Model, *, advise: bool = True, **search: Any) -> Diagnosis:
    """Check a model; with n_anomalies=, shift= and further arguments of `expect`, also simulate that search.

    advise: whether to try out remedies; without it actions name only those that need no trial.
    """
    view, expectation, simulated = ModelView(model, advise=advise), None, []
    if search:
        try:
            expectation = expect(model, **search)
            simulated = [judge(expectation)]
        except ArithmeticError as error:
            simulated = [impossible(str(error))]
    return Diagnosis(view, (*(check(view) for check in CHECKS), *simulated), expectation)
