"""`python -m benchmarks.stability [--runs N]`: searches whose believed covariance is not that of the world.

What makes a search err: a change of the covariance as a norm sees it, or of the noise in its own measurements?
docs/measured/plants.md has the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import eigh

from eccaht import Problem, Simulator, families, identify, make_policy
from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.base.statistics import clopper_pearson

STREAMS, SHIFT, ALPHA, MOST, RUNS = 24, 0.5, 0.05, 3000, 400


def believed() -> dict[str, Array]:
    """What the searches are given; unit variances."""
    loads = rng_for(0, "stability").standard_normal((STREAMS, 3))
    S = loads @ loads.T + 0.5 * np.eye(STREAMS)
    scale = np.sqrt(S.diagonal())
    return {"three common causes": S / np.outer(scale, scale), "toeplitz 0.9": families.toeplitz(STREAMS, 0.9).dense()}


def stronger_cause(S: Array) -> Array:
    """The strongest common cause has four times its variance."""
    values, vectors = np.linalg.eigh(S)
    return np.asarray(S + 3.0 * values[-1] * np.outer(vectors[:, -1], vectors[:, -1]))


WORLDS: dict[str, Callable[[Array], Array]] = {
    "the same": lambda S: S,
    "its strongest common cause four times as strong": stronger_cause,
    "all variances and correlations times 2": lambda S: 2.0 * S,
    "15 % more variance in each sensor of its own": lambda S: S + 0.15 * np.diag(S.diagonal()),
    "correlations 10 % weaker": lambda S: 0.9 * S + 0.1 * np.diag(S.diagonal()),
    "50 % more variance in each sensor of its own": lambda S: S + 0.5 * np.diag(S.diagonal()),
}


def pair_factor(S: Array, true: Array) -> float:
    """The factor of c'S c, c = S^-1 (e_i - e_j), that nine of ten pairs do not exceed."""
    first, second = np.triu_indices(len(S), 1)
    inverse = np.linalg.inv(S)
    C = inverse[first] - inverse[second]
    noise = [np.einsum("pk,kl,pl->p", C, each, C) for each in (true, S)]
    return float(np.quantile(noise[0] / noise[1], 0.9))


def wrong_sets(S: Array, true: Array, runs: int) -> int:
    """Searches by ecc-aht, as the paper has them, that stop with the wrong stream or not at all."""
    problem = Problem(S, shift=SHIFT, n_anomalies=1, budget=5.0)
    world = Problem(true, shift=SHIFT, n_anomalies=1, budget=5.0)
    wrong = 0
    for seed in range(runs):
        simulator = Simulator(world, seed=seed)
        policy = make_policy("ecc-aht", problem, seed=seed, alpha=ALPHA)
        result = identify(policy, simulator.measure, max_measurements=MOST)
        wrong += not np.array_equal(result.anomalies, simulator.anomalies)
    return wrong


def lines(runs: int) -> Iterator[str]:
    """One row of the table a world."""
    for name, S in believed().items():
        for world, change in WORLDS.items():
            true = change(S)
            frobenius = np.linalg.norm(true - S) / np.linalg.norm(S)
            largest = eigh(true, S, eigvals_only=True)[-1]
            factor, wrong = pair_factor(S, true), wrong_sets(S, true, runs)
            low, high = clopper_pearson(wrong, runs)
            measures = f"{frobenius:.2f} | {largest:.2f} | {factor:.2f}"
            share = f"{wrong} of {runs} [{low:.3f}, {high:.3f}]"
            yield f"| {name} | {world} | {measures} | {share} | {ALPHA ** (1.0 / max(factor, 1.0)):.2f} |"


def main() -> None:
    """Read the options and count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stability", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    for line in lines(parser.parse_args().runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
