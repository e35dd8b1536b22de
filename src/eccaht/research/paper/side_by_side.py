"""How many measurements ecc-aht and joint need: on the problem of the demo and where noise is hard."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from eccaht.base.statistics import reached_for_good
from eccaht.research.experiments.comparison import run_policy
from eccaht.research.paper import fig1
from eccaht.streams.covariance import families
from eccaht.streams.problem import Problem

POLICIES = ("ecc-aht", "joint")
RUNS, HORIZON = 20, 200


class Needed(NamedTuple):
    """Measurements until the set was right for good, one number a run, None where it never was within the horizon."""

    problem: str
    policy: str
    times: list[int | None]

    @property
    def never(self) -> int:
        """Runs that were not right at the end."""
        return self.times.count(None)

    @property
    def median(self) -> float | None:
        """Of all runs; None if it lies beyond the horizon."""
        middle = median(HORIZON + 1 if time is None else time for time in self.times)
        return middle if middle <= HORIZON else None

    @property
    def slowest(self) -> int | None:
        """Of all runs; None if one never was right."""
        return None if self.never else max(time or 0 for time in self.times)


def problems() -> dict[str, Problem]:
    """The demo's own problem, and one whose noise is shared along the rows and the columns of a grid."""
    grid = Problem(families.kronecker(0.8, (8, 8)), shift=3.0, n_anomalies=4, budget=5.0)
    return {"this problem, 3 of 15 streams": fig1.problem(), "kronecker noise, 4 of 64 streams": grid}


def side_by_side(seed: int = 0) -> Iterator[Needed]:
    """Run both policies on both problems; in run k all face the same anomalous set."""
    for name, problem in problems().items():
        for policy in POLICIES:
            with threadpool_limits(1):  # a step is too small to gain from several threads
                runs = [run_policy(problem, policy, HORIZON, (seed, run), {})[0] for run in range(RUNS)]
            yield Needed(name, policy, [reached_for_good(hits, problem.known_number) for hits in runs])
