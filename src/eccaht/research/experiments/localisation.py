"""Searches in recorded rows: several methods on the same rows, against a truth that is known.

Unlike in a simulation all methods of a run read the very same noise. They differ in what they weigh, and in what they
believe: a method is a policy by its name, or that name with "-diagonal" for the policy that takes the streams for
independent, so that full and diagonal covariance are compared with all else equal.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array, Index, as_count, as_number, as_positive, rounded_up
from eccaht.base.randomness import check_seed, rng_for
from eccaht.base.statistics import Estimate, estimate
from eccaht.plants import Model, Replay
from eccaht.research.experiments.comparison import (
    Records,
    Row,
    Run,
    as_entry,
    check_names,
    interval_columns,
    labelled,
    refusal,
    summarise,
)
from eccaht.research.experiments.tables import Table, from_rows
from eccaht.research.experiments.workers import local
from eccaht.streams import Diagonal, Hits, Policy, Problem, make_policy, policy_names, steps
from eccaht.streams.policies.catalogue import unknown_policy

BLIND = "-diagonal"
FULL_AND_BLIND = (("joint", "joint-diagonal"), ("ecc-aht", "diagonal"))  # with and without correlation, else the same


@dataclass(frozen=True)
class RecordedSearch:
    """Rows of scaled windows, (T, K), read in this order, and the streams to be found in them."""

    problem: Problem
    rows: Array
    truth: Index
    per_row: int = 1


def recorded_search(model: Model, rows: Array, truth: Index, shift: float, budget: float) -> RecordedSearch:
    """A search that takes the model's covariance as if it were exact, as the paper's do."""
    search: dict[str, Any] = {"shift": shift, "n_anomalies": truth.size, "budget": budget}
    return RecordedSearch(Problem(model.covariance, mean=model.mean, names=model.names, **search), rows, truth)


def policy_of(name: str) -> tuple[str, bool]:
    """The policy of a method and whether it is blind to correlation.

    >>> policy_of("ttts-challenger-diagonal"), policy_of("diagonal")
    (('ttts-challenger', True), ('diagonal', False))
    """
    return (name.removesuffix(BLIND), True) if name.endswith(BLIND) and name != BLIND else (name, False)


def believed(name: str, problem: Problem) -> Problem:
    blind = policy_of(name)[1]
    return problem.replace(covariance=Diagonal(problem.covariance.diagonal())) if blind else problem


def check_known(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, after refusing unknown ones with the nearest known."""
    for name in names:
        if (policy := policy_of(name)[0]) not in policy_names():
            raise unknown_policy(policy)
    return tuple(names)


def check_reach(shift: float, budget: float) -> None:
    """Refuse a shift that is 0 or too small for the budget before any work: a pair needs |shift| * budget >= 1."""
    if as_number(shift, "shift") == 0:
        raise ValueError("shift 0 is no anomaly: give it a size")
    if as_positive(budget, "budget") * abs(shift) < 1.0:
        least = rounded_up(1.0 / abs(shift))
        raise ValueError(f"budget {budget:g} cannot separate sensors shifted by {shift:g}: give at least {least}")


def check_methods(names: Sequence[str], problem: Problem) -> None:
    """Refuse methods that are unknown, named twice or do not apply to the problem."""
    check_names(names, lambda name: (policy_of(name)[0], refusal(policy_of(name)[0], believed(name, problem))))


def localise(
    searches: Mapping[str, Sequence[RecordedSearch]],
    names: Sequence[str],
    *,
    seed: int = 0,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
) -> dict[str, Records]:
    """Run every method on every search; the searches of a group are its runs and have the same length.

    No number depends on `jobs` or on which other methods run; `progress(n)` is called with the number finished.
    """
    as_count(jobs, "jobs", least=1)
    (seed,) = check_seed(seed)
    for group in searches.values():
        check_methods(names, group[0].problem)
    cells = [
        (label, run, search, tuple(names), seed)
        for label, group in searches.items()
        for run, search in enumerate(group)
    ]
    done: dict[tuple[str, int], Finished] = {}
    with closing(local(min(jobs, len(cells)))(_run, cells)) as results:
        for label, run, finished in results:
            done[label, run] = finished
            progress(1)
    return {
        label: Records.of(group[0].problem.known_number, seed, [done[label, run] for run in range(len(group))])
        for label, group in searches.items()
    }


Finished = dict[str, Run]  # by method


def _run(label: str, run: int, search: RecordedSearch, names: tuple[str, ...], seed: int) -> tuple[str, int, Finished]:
    finished: Finished = {}
    for name in names:
        start = process_time()
        with labelled(policy_of(name)[0], lambda name=name: f"{name}, {label}, run {run}"):  # type: ignore[misc]
            hits = follow(search, build(name, search.problem, seed=(seed, run)), believed(name, search.problem))
        finished[name] = hits, (process_time() - start) / max(len(hits), 1)
    return label, run, finished


def build(name: str, problem: Problem, *, seed: Sequence[int]) -> Policy:
    return make_policy(policy_of(name)[0], believed(name, problem), seed=seed, stopping=None)


def follow(search: RecordedSearch, policy: Policy, problem: Problem) -> NDArray[np.int32]:
    """Let the policy read the rows and return how many of the truth it names after each, `per_row` to a row.

    A row that cannot be read, because all sensors with weight are missing, leaves the decision as it was.
    """
    T, each = len(search.rows), search.per_row
    replay = Replay(((np.datetime64(t, "s"), row) for t, row in enumerate(search.rows)), problem, per_window=each)
    counted, hits, place = Hits(search.truth), np.zeros(T * each, dtype=np.int32), -1
    for step in steps(policy, replay, obey_stopping=False):
        counted.count(policy)
        place = max(place + 1, step.window * each)
        hits[place:] = counted.counts[-1]
    return hits


class Saved(NamedTuple):
    """How many more measurements the blind method needs than the full one, paired run by run."""

    full: str
    blind: str
    more: Estimate


def savings(times: Mapping[str, Array], *, seed: int) -> list[Saved]:
    """Compare each method with its blind twin, where both ran; times by method, (runs,).

    Where no run differs, as when both were cut off in all of them, there is no interval.
    """
    saved = []
    for full, blind in FULL_AND_BLIND:
        if full in times and blind in times:
            more = times[blind] - times[full]
            mean = estimate(more, rng=rng_for(seed, "bootstrap"))
            saved.append(Saved(full, blind, mean if more.any() else Estimate(0.0, None)))
    return saved


def arrival_times(records: Records) -> dict[str, Array]:
    """By method and run: measurements until right for good, the horizon where it never is."""
    return {
        name: np.array([time or hits.shape[1] for time in records.arrivals(name).for_good], dtype=float)
        for name, hits in records.hits.items()
    }


def pooled(groups: Mapping[str, Records]) -> dict[str, Array]:
    """By method: the mean arrival time over groups of the same runs, (runs,)."""
    times = [arrival_times(records) for records in groups.values()]
    return {name: np.mean([group[name] for group in times], axis=0) for name in times[0]}


def summary_table(groups: Mapping[str, Records], extra: Mapping[str, Mapping[str, Any]]) -> Table:
    """One row for each group and method; `extra` holds further columns of a group."""
    rows = [
        {"group": label, **extra.get(label, {}), **flat(row)}
        for label, records in groups.items()
        for row in summarise(records)
    ]
    return from_rows(rows)


def flat(row: Row) -> dict[str, Any]:
    """A row as plain columns; an interval that the runs cannot give is NaN."""
    entry: dict[str, Any] = {"policy": row.policy}
    for what in ("first", "for_good", "final_f1"):
        entry |= interval_columns(what, getattr(row, what), np.nan)
    runs = len(row.for_good.times)
    return entry | {"first_censored": row.first.censored, "for_good_censored": row.for_good.censored, "runs": runs}


def group_entry(records: Records) -> dict[str, Any]:
    saved = savings(arrival_times(records), seed=records.seed)
    return {
        "policies": [as_entry(row) for row in summarise(records)],
        "diagonal_needs_more": [{**each._asdict(), "more": each.more._asdict()} for each in saved],
    }
