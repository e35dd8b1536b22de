"""`python -m benchmarks.estimates`: errors of searches with an estimated covariance (docs/measured/searches.md)."""

from __future__ import annotations

import numpy as np
from sklearn.covariance import ledoit_wolf

from benchmarks.confidence import _noise
from eccaht import Problem, Simulator, make_policy, search
from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.streams.covariance import as_covariance

K, RUNS, ALPHA, HORIZON = 24, 200, 0.05, 400
ESTIMATES = ("sample", "sample, regularize=0.01", "Ledoit-Wolf")


def wrong(truth: Problem, root: Array, vectors: int, estimate: str, policy: str) -> int:
    """Wrong sets of RUNS searches, each with an estimate of its own."""
    ridge = 0.01 if "regularize" in estimate else None
    count = 0
    for seed in range(RUNS):
        rows = (root @ rng_for(seed, "vectors").standard_normal((K, vectors))).T
        given = ledoit_wolf(rows)[0] if estimate == "Ledoit-Wolf" else np.cov(rows.T)
        world = Simulator(truth, seed=seed)
        searcher = make_policy(policy, truth.replace(covariance=given), seed=seed, alpha=ALPHA, regularize=ridge)
        result = search(searcher, world.measure, max_measurements=HORIZON)
        count += not np.array_equal(np.sort(result.anomalies), np.sort(world.anomalies))
    return count


def main() -> None:
    """Print a row for each noise, policy and estimate: wrong sets from 2 K, 5 K and 20 K vectors."""
    for noise in ("toeplitz", "factor"):
        covariance = as_covariance(_noise(noise, K)).dense()
        root = np.asarray(np.linalg.cholesky(covariance), dtype=float)
        truth = Problem(covariance, shift=2.0, n_anomalies=2, budget=5.0)
        for policy in ("joint", "ecc-aht"):
            for estimate in ESTIMATES:
                counts = [wrong(truth, root, m * K, estimate, policy) for m in (2, 5, 20)]
                print(f"| {noise} | `{policy}` | {estimate} |", " | ".join(map(str, counts)), "|", flush=True)


if __name__ == "__main__":
    main()
