"""One point of part 3, in a process of its own so that its peak memory is its own.

`python -m benchmarks.point KIND STREAMS BUDGET SECONDS` prints one line of JSON.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from eccaht import Problem, Simulator, families, make_policy
from eccaht.base.randomness import rng_for
from eccaht.streams.covariance import Covariance, LowRankPlusDiagonal, SparsePrecision


def _factor_model(K: int) -> Covariance:
    return LowRankPlusDiagonal(rng_for(0, "factors").standard_normal((K, 3)), np.ones(K))


def _chain(K: int) -> Covariance:
    beside = np.full(K - 1, -0.4)
    return SparsePrecision(sp.diags_array([beside, np.ones(K), beside], offsets=[-1, 0, 1]))


def _grid(K: int) -> Covariance:
    """A lattice as square as K allows, each stream tied to its four neighbours."""
    rows = next(a for a in range(math.isqrt(K), 0, -1) if K % a == 0)
    columns = K // rows
    across = sp.kron(sp.eye_array(rows), _neighbours(columns))
    down = sp.kron(_neighbours(rows), sp.eye_array(columns))
    return SparsePrecision(sp.eye_array(K) - 0.2 * (across + down))


def _neighbours(n: int) -> sp.dia_array:
    return sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1], shape=(n, n))


KINDS: dict[str, Callable[[int], Covariance]] = {
    "AR1": lambda K: families.toeplitz(K, 0.8),
    "BlockDiagonal": lambda K: families.block(K, 0.8),
    "Circulant": lambda K: families.circulant(K, 0.8),
    "Kronecker": lambda K: families.kronecker(0.8, shape=(10, K // 10)),
    "LowRank, equicorrelation": lambda K: families.equicorrelation(K, 0.8),
    "LowRank, 3 factors": _factor_model,
    "SparsePrecision, chain": _chain,
    "SparsePrecision, grid": _grid,
}


def peak_memory() -> float:
    """Peak resident memory of this program in bytes.

    Linux carries ru_maxrss over from the process that started this one, so the kernel's own high-water mark
    is read where there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024.0 * float(line.split()[1])
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # bytes on macOS


def measure(kind: str, streams: int, budget: float, patience: float) -> dict[str, float]:
    """Build the problem and step for `patience` seconds, but at least 5 and at most 300 times."""
    imported, start = peak_memory(), time.perf_counter()
    problem = Problem(KINDS[kind](streams), shift=3.0, n_anomalies=5, budget=budget)
    policy, world = make_policy("ecc-aht", problem, stopping=None), Simulator(problem)
    built = time.perf_counter()
    taken: list[float] = []
    busy: list[float] = []  # processor time, which a loaded machine does not stretch as much
    while len(taken) < 6 or (sum(taken) < patience and len(taken) < 301):
        before, worked = time.perf_counter(), time.process_time()
        c = policy.ask()
        policy.tell(c, world.measure(c))
        taken.append(time.perf_counter() - before)
        busy.append(time.process_time() - worked)
    return {
        "build_s": built - start,
        "first_s": taken[0],
        "median_s": float(np.median(taken[1:])),
        "processor_s": float(np.median(busy[1:])),
        "timed_steps": len(taken) - 1,
        "peak_mb": peak_memory() / 2**20,
        "import_mb": imported / 2**20,
    }


if __name__ == "__main__":
    kind, streams, budget, patience = sys.argv[1:]
    print(json.dumps(measure(kind, int(streams), float(budget), float(patience))))
