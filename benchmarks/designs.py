"""Part 2: time and accuracy of one design, against cvxpy+OSQP and two interior-point solvers called directly.

A case is a family, equal or mixed shifts, and an L1 limit that binds or not. The binding limit lies halfway
between the least feasible one, 1/max|shift|, and the one that the unlimited optimum needs; the other is twice
the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks import rivals
from benchmarks.jobs import Job, Row, seconds
from benchmarks.rivals import Answer
from eccaht import Problem, families, pair_design
from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.streams.covariance import Covariance, Dense

STREAMS = 128
FAMILIES: dict[str, Callable[[], Covariance]] = {
    "toeplitz": lambda: families.toeplitz(STREAMS, 0.8),
    "equicorrelation": lambda: families.equicorrelation(STREAMS, 0.8),
    "kronecker": lambda: families.kronecker(0.8),
    "rbf": lambda: families.rbf(STREAMS, rho=0.8),
    "graph": lambda: families.graph(STREAMS, 0.8),
}
OURS = ("eccaht", "eccaht dense")
RIVALS = ("clarabel", "clarabel tight", "piqp", "piqp tight", "OSQP", "OSQP scaled")


class Case(NamedTuple):
    """One pair with its limit; `best` is the certified optimum of c'S c / (c'D)^2."""

    problem: Problem
    dense: Problem
    pair: tuple[int, int]
    S: Array
    D: Array
    best: float
    kkt_residual: float


def jobs(quick: bool) -> list[Job]:
    """One job a family and kind of shift."""
    pairs, repeats = (2, 1) if quick else (6, 2)
    return [
        Job(f"designs, {family}, {shifts} shifts", partial(_compare, family, shifts, pairs, repeats))
        for family in FAMILIES
        for shifts in ("equal", "mixed")
    ]


def _compare(family: str, shifts: str, n_pairs: int, repeats: int) -> list[Row]:
    operator = FAMILIES[family]()
    shift = np.full(STREAMS, 3.0) if shifts == "equal" else _mixed_shifts()
    rows: list[Row] = []
    rivals.warm_up()
    for binding in (False, True):
        cases = list(_cases(operator, shift, _pairs(n_pairs), binding))
        if cases:
            name = {"family": family, "shifts": shifts, "limit": "binds" if binding else "free"}
            rows += [name | result for result in _race(cases, repeats)]
    return rows


def _mixed_shifts() -> Array:
    """Sizes from 1 to 5, a third of them negative."""
    rng = rng_for(0, "mixed shifts")
    return rng.uniform(1.0, 5.0, STREAMS) * np.where(rng.random(STREAMS) < 1 / 3, -1.0, 1.0)


def _pairs(count: int) -> list[tuple[int, int]]:
    """Two neighbours, then random pairs."""
    rng = rng_for(0, "pairs")
    drawn = (rng.choice(STREAMS, 2, replace=False).tolist() for _ in range(count - 1))
    return [(60, 61), *((i, j) for i, j in drawn)]


def _cases(
    operator: Covariance,
    shift: Array,
    pairs: Sequence[tuple[int, int]],
    binding: bool,
) -> Iterator[Case]:
    S = operator.dense()
    dense = Dense(S)
    for i, j in pairs:
        D = rivals.contrast_of(shift, i, j)
        z = operator.solve(D)
        least, enough = 1.0 / float(np.abs(D).max()), float(np.abs(z).sum() / (z @ D))
        if binding and enough < least * (1.0 + 1e-6):
            continue  # the unlimited optimum spends the least that is feasible: no limit binds
        limit = 0.5 * (least + enough) if binding else 2.0 * enough
        problem = Problem(operator, shift=shift, n_anomalies=5, budget=limit)
        design = pair_design(problem, i, j)
        best = _objective(S, D, design.weights)
        yield Case(problem, problem.replace(covariance=dense), (i, j), S, D, best, design.kkt_residual)


def _solvers(case: Case) -> dict[str, Callable[[], Answer]]:
    """The contenders, their data prepared; S is divided by the optimal value where noted."""
    scaled, budget = case.S / case.best, case.problem.budget
    return {
        "eccaht": lambda: Answer(pair_design(case.problem, *case.pair).weights, True),
        "eccaht dense": lambda: Answer(pair_design(case.dense, *case.pair).weights, True),
        "clarabel": rivals.Clarabel(scaled, case.D, budget, tight=False),
        "clarabel tight": rivals.Clarabel(scaled, case.D, budget, tight=True),
        "piqp": rivals.Piqp(scaled, case.D, budget, tight=False),
        "piqp tight": rivals.Piqp(scaled, case.D, budget, tight=True),
        "OSQP": lambda: rivals.osqp_rebuilt(case.S, case.D, budget),
        "OSQP scaled": lambda: rivals.osqp_rebuilt(scaled, case.D, budget),
    }


def _race(cases: Sequence[Case], repeats: int) -> Iterator[Row]:
    """Time every solver on every pair in turn, and judge its weights."""
    names = (*OURS, *RIVALS)
    taken: dict[str, list[float]] = {name: [] for name in names}
    judged: dict[str, list[tuple[float, float, bool]]] = {name: [] for name in names}
    for case in cases:
        solvers = _solvers(case)
        for name, solve in solvers.items():
            answer = solve()  # also warms up
            excess = _objective(case.S, case.D, answer.weights) / case.best - 1.0
            judged[name].append((excess, _violation(case, answer.weights), answer.solved))
        for _ in range(repeats):
            for name, solve in solvers.items():
                taken[name].append(seconds(solve))
    for name in names:
        excesses, violations, solved = zip(*judged[name], strict=True)
        yield {
            "solver": name,
            "pairs": len(cases),
            "median_s": float(np.median(taken[name])),
            "excess": max(excesses, key=abs),
            "violation": max(violations),
            "unsolved": len(solved) - sum(solved),
            "kkt_residual": max(case.kkt_residual for case in cases) if name == "eccaht" else None,
            "optimum": float(np.median([case.best for case in cases])),
        }


def _objective(S: Array, D: Array, c: Array) -> float:
    """c'S c / (c'D)^2, in extended precision: at rbf nine digits cancel."""
    exact = c.astype(np.longdouble)
    return float((exact @ (S.astype(np.longdouble) @ exact)) / (exact @ D) ** 2)


def _violation(case: Case, c: Array) -> float:
    """Relative excess of |c|_1 over budget * c'D."""
    return max(float(np.abs(c).sum() / (case.problem.budget * (c @ case.D))) - 1.0, 0.0)
