"""Several policies on one problem: the runs, and their summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index, as_count
from eccaht.base.presentation.text import explained
from eccaht.base.randomness import check_seed, rng_for
from eccaht.base.statistics import Arrivals, Delay, Estimate, arrivals, delay, estimate, f1_score
from eccaht.research.experiments.workers import run_batches
from eccaht.streams import Hits, Problem, Simulator, make_policy, stays_right, steps
from eccaht.streams.policies.catalogue import BUILT_IN, find_entry

TARGET = 0.95  # the F1 that a run must reach, first and for good
_POINTS = 300  # of a curve: more would not be seen on a logarithmic axis

Cell = tuple[str, int]  # policy, run
Run = tuple[NDArray[np.int32], float]  # hits after each measurement, processor time of one in seconds


@dataclass(frozen=True)
class Records:
    """By policy: anomalies found after each measurement, (runs, horizon), and the processor time of one, (runs,)."""

    n_anomalies: int
    seed: int
    hits: dict[str, NDArray[np.int32]]
    seconds_per_step: dict[str, Array]

    @classmethod
    def of(cls, n_anomalies: int, seed: int, runs: Sequence[Mapping[str, Run]]) -> Records:
        hits = {name: np.stack([run[name][0] for run in runs]) for name in runs[0]}
        seconds = {name: np.array([run[name][1] for run in runs]) for name in runs[0]}
        return cls(n_anomalies, seed, hits, seconds)

    def f1(self, name: str) -> Array:
        return f1_score(self.hits[name], self.n_anomalies, self.n_anomalies)

    def arrivals(self, name: str) -> Arrivals:
        """Measurements to F1 >= 0.95 and F1 at the end, one value a run."""
        return arrivals(self.f1(name), TARGET)


def compare(
    problem: Problem,
    names: Sequence[str],
    *,
    runs: int = 20,
    horizon: int = 500,
    seed: int = 0,
    jobs: int = 1,
    options: Mapping[str, Any] = MappingProxyType({}),
    progress: Callable[[int], object] = lambda _: None,
) -> Records:
    """Run every policy `runs` times for `horizon` measurements.

    In each run all policies face the same anomalous set, each with noise and a generator of its own: except for the
    times no number depends on `jobs` or on which other policies run. Options go to every policy; `progress(n)` is
    called with the number of runs finished since the last call.

    >>> from eccaht import families
    >>> problem = Problem(families.identity(8), shift=6.0, n_anomalies=1, budget=1.0)
    >>> compare(problem, ["ecc-aht"], runs=2, horizon=10).hits["ecc-aht"][:, -1]
    array([1, 1], dtype=int32)
    """
    for what, number in {"runs": runs, "horizon": horizon, "jobs": jobs}.items():
        as_count(number, what, least=1)
    (seed,) = check_seed(seed)
    check_policies(names, problem, options)
    plan = problem, horizon, seed, dict(options)
    # all policies of a run, then those of the next: batches then take about equally long though policies differ
    cells = [(name, run) for run in range(runs) for name in names]
    found = run_batches(_run, plan, cells, jobs, progress)
    return Records.of(problem.known_number, seed, [{name: found[name, run] for name in names} for run in range(runs)])


def refusal(name: str, problem: Problem, **options: Any) -> str | None:
    """Say why a policy does not apply to the problem; None if it does."""
    try:
        make_policy(name, problem, stopping=None, **{**options, **told(name, range(problem.sizes[1]))})
    except ValueError as error:
        return str(error)
    except Exception as error:  # a policy of the user's own may fail in any way
        if name in BUILT_IN:
            raise
        raise ValueError(f"policy {name!r} cannot be built: {explained(error)}") from error
    return None


def check_policies(names: Sequence[str], problem: Problem, options: Mapping[str, Any]) -> None:
    """Refuse names that are unknown, named twice or do not apply to the problem."""
    if isinstance(names, str):
        raise ValueError(f"policies must be a list, as [{names!r}]")
    check_names(names, lambda name: (name, refusal(name, problem, **options)))


def check_names(names: Sequence[str], refused: Callable[[str], tuple[str, str | None]]) -> None:
    """Refuse names that are given twice or that are refused: by the policy that they mean, and for a reason."""
    if not names:
        raise ValueError("no policy to compare: name at least one")
    for k, name in enumerate(names):
        if name in names[:k]:
            raise ValueError(f"policy {name!r} is named twice: name each once")
        policy, reason = refused(name)
        if reason is not None:
            raise ValueError(reason if policy in reason else f"policy {name!r} does not apply: {reason}")


def _run(plan: tuple[Problem, int, int, dict[str, Any]], cell: Cell) -> Run:
    (problem, horizon, seed, options), (name, run) = plan, cell
    return run_policy(problem, name, horizon, (seed, run), options)


def run_policy(problem: Problem, name: str, horizon: int, seed: tuple[int, int], options: Mapping[str, Any]) -> Run:
    """Run a policy against a simulated world; both are drawn from the seed and the name.

    The exact policies cost a hundred times as much a measurement as the others and need a few dozen of them. Their runs
    end once the set is right and leads every swap by 50 nats; the rest of the horizon counts as right.
    """
    world = Simulator(problem, seed=seed, names=[name])
    truth = told(name, world.anomalies.tolist())
    policy = make_policy(name, problem, seed=seed, stopping=None, **{**options, **truth})
    hits = Hits(world.anomalies)
    start = process_time()
    with labelled(name, lambda: f"{name}, run {seed[1]}, after {policy.n_readings} measurements"):
        for _ in steps(policy, world, horizon, obey_stopping=False):
            hits.count(policy)
            if stays_right(policy, world.anomalies):
                break
    return hits.over(horizon), (process_time() - start) / policy.n_readings


def told(name: str, anomalies: Sequence[int]) -> dict[str, Any]:
    """The true set as an option, for a policy that is told it."""
    return {"anomalies": list(anomalies)} if find_entry(name).oracle else {}


@contextmanager
def labelled(policy: str, where: Callable[[], str]) -> Iterator[None]:
    """Let errors say where they came up; whatever a policy of the user's own raises is a ValueError."""
    try:
        yield
    except (ValueError, ArithmeticError) as error:
        raise type(error)(f"{where()}: {error}") from None
    except Exception as error:
        if policy in BUILT_IN:
            raise
        raise ValueError(f"{where()}: {explained(error)}") from error


class Row(NamedTuple):
    """One policy: measurements to F1 >= 0.95 first and for good, F1 at the end, median processor time of a step."""

    policy: str
    first: Delay
    for_good: Delay
    final_f1: Estimate
    final_hits: list[int]
    microseconds_per_step: float


def summarise(records: Records) -> list[Row]:
    """Return one row a policy, in their order."""
    rows = []
    for name, hits in records.hits.items():
        found = summary(records.arrivals(name), hits.shape[1], records.seed)
        rows.append(Row(name, *found, hits[:, -1].tolist(), 1e6 * float(np.median(records.seconds_per_step[name]))))
    return rows


def summary(found: Arrivals, horizon: int, seed: int) -> tuple[Delay, Delay, Estimate]:
    """Measurements to F1 >= 0.95 first and for good and F1 at the end, over the runs.

    Every number uses the same resamples and depends on no other.
    """
    first, for_good = (delay(times, horizon, rng=rng_for(seed, "bootstrap")) for times in found[:2])
    return first, for_good, estimate(found.final, rng=rng_for(seed, "bootstrap"))


def interval_columns(what: str, found: Delay | Estimate, absent: float | None) -> dict[str, float | None]:
    """A mean and its interval as columns of a table; `absent` stands for an interval that the runs cannot give."""
    low, high = found.interval or (absent, absent)
    return {f"{what}_mean": found.mean, f"{what}_low": low, f"{what}_high": high}


def curve_steps(horizon: int) -> Index:
    """The measurements, at most 300, after which a curve is shown: all of the first ones and then ever fewer."""
    spaced = np.linspace if horizon <= _POINTS else np.geomspace
    return np.unique(spaced(1, horizon, min(horizon, _POINTS)).round().astype(np.intp))


def as_entry(row: Row) -> dict[str, Any]:
    delays = {"first": row.first.as_dict(), "for_good": row.for_good.as_dict()}
    return {**row._asdict(), **delays, "final_f1": row.final_f1._asdict()}
