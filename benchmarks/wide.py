"""Part 9: very many streams: measurements until the stop, time of a step, and whole vectors.

`python -m benchmarks.wide KIND STREAMS` prints one line of JSON about whole vectors, from a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.jobs import Job, Row, seconds
from benchmarks.point import KINDS, peak_memory
from benchmarks.tables import Column, Table, milliseconds, thousands, three_digits
from eccaht import Problem, Simulator, families, make_policy
from eccaht.streams.covariance import Covariance, LowRankPlusDiagonal

ROOT = Path(__file__).resolve().parent.parent
NOISES: dict[str, Callable[[int], Covariance]] = {
    "identity": families.identity,
    "toeplitz 0.8": lambda K: families.toeplitz(K, 0.8),
    "three factors": lambda K: LowRankPlusDiagonal(np.random.default_rng(0).standard_normal((K, 3)), np.ones(K)),
    "kronecker 0.8": lambda K: families.kronecker(0.8, (16, K // 16)),
}
SEARCHES = (*((noise, K, 5) for K in (144, 256, 512) for noise in NOISES), ("toeplitz 0.8", 1000, 10))
POSTERIORS = ("population", "wide")
SEEDS, QUICK_SEEDS, AT_ONCE = 16, 2, 4
MOST = 1500  # measurements at most
STEPS = 60  # timed at 10,000 streams
VECTORS = ("AR1", "BlockDiagonal", "Circulant", "Kronecker", "LowRank, 3 factors", "SparsePrecision, chain")


def jobs(quick: bool) -> list[Job]:
    """Searches in turns, steps at 10,000 streams, and one process for each covariance and size."""
    found = []
    for first in range(0, QUICK_SEEDS if quick else SEEDS, QUICK_SEEDS if quick else AT_ONCE):
        seeds = range(first, first + (QUICK_SEEDS if quick else AT_ONCE))
        for noise, K, n in SEARCHES[: 1 if quick else None]:
            for name in POSTERIORS:
                label = f"wide, {name}, {noise}, K = {K}, seeds from {first}"
                found.append(Job(label, partial(_searches, name, noise, K, n, seeds)))
    sizes = (10_000,) if quick else (10_000, 100_000)
    found += [Job(f"wide, vectors, {kind}, K = {K:,}", partial(_vectors, kind, K)) for kind in VECTORS for K in sizes]
    return found if quick else [*found, Job("wide, steps, K = 10,000", _large_steps)]


def _problem(noise: str, K: int, n: int) -> Problem:
    return Problem(NOISES[noise](K), shift=3.0, n_anomalies=n, budget=5.0)


def _searches(name: str, noise: str, K: int, n: int, seeds: range) -> list[Row]:
    problem = _problem(noise, K, n)
    common: Row = {"part": "search", "posterior": name, "noise": noise, "streams": K, "anomalies": n}
    return [common | _search(problem, name, s) for s in seeds]


def _search(problem: Problem, name: str, seed: int) -> Row:
    """Measure until the policy stops."""
    policy = make_policy("joint", problem, seed=seed, posterior=name)
    world, start = Simulator(problem, seed=seed), time.process_time()
    while policy.n_readings < MOST and not policy.should_stop():
        policy.tell(policy.ask(), world.measure(policy.ask()))
    taken = time.process_time() - start
    wrong = not np.array_equal(policy.decision, np.sort(world.anomalies))
    return {"seed": seed, "measurements": policy.n_readings, "wrong": wrong, "step_s": taken / policy.n_readings}


def _large_steps() -> list[Row]:
    problem = _problem("toeplitz 0.8", 10_000, 10)
    policy, world = make_policy("joint", problem, seed=0, stopping=None), Simulator(problem, seed=0)
    taken = [seconds(lambda: policy.tell(policy.ask(), world.measure(policy.ask()))) for _ in range(STEPS)]
    row: Row = {"part": "search", "posterior": "wide", "noise": "toeplitz 0.8", "streams": 10_000, "anomalies": 10}
    return [row | {"step_s": float(np.mean(taken))}]


def _vectors(kind: str, K: int) -> list[Row]:
    command = [sys.executable, "-m", "benchmarks.wide", kind, str(K)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [{"part": "vectors", "covariance": kind, "streams": K} | json.loads(done.stdout)]


def measure(kind: str, K: int) -> Row:
    """Give the policy five vectors and look whether to stop after each."""
    problem = Problem(KINDS[kind](K), shift=3.0, n_anomalies=5, budget=5.0)
    policy, world = make_policy("joint", problem, seed=1), Simulator(problem, seed=1)

    def step(x: np.ndarray) -> None:
        policy.observe(x)
        policy.should_stop()

    taken, busy = [], []
    for x in world.sample(5):
        worked = time.process_time()
        taken.append(seconds(partial(step, x)))
        busy.append(time.process_time() - worked)
    times = {"first_s": taken[0], "median_s": float(np.median(taken[1:])), "processor_s": float(np.median(busy[1:]))}
    return times | {"peak_mb": peak_memory() / 2**20}


def tables(rows: list[Row]) -> list[Table]:
    """Searches as one line a posterior, vectors as one line a covariance and size."""
    groups: dict[tuple[int, str, str], list[Row]] = {}
    for row in rows:
        if row["part"] == "search":
            groups.setdefault((row["streams"], row["noise"], row["posterior"]), []).append(row)
    lines = [_line(*key, group) for key, group in groups.items()]
    searches = (
        Column("streams", "K", thousands),
        Column("noise", "noise", right=False),
        Column("posterior", "posterior", right=False),
        Column("mean", "measurements", three_digits),
        Column("error", "standard error", three_digits),
        Column("wrong", "wrong"),
        Column("step_s", "ms a step", milliseconds),
        Column("seeds", "seeds"),
    )
    vectors = (
        Column("covariance", "covariance", right=False),
        Column("streams", "K", thousands),
        Column("first_s", "first vector, ms", milliseconds),
        Column("median_s", "vector, ms", milliseconds),
        Column("processor_s", "processor time, ms", milliseconds),
        Column("peak_mb", "peak MB", three_digits),
    )
    whole = [row for row in rows if row["part"] == "vectors"]
    note = f"Until `joint` stops at alpha 0.05; processor time. At 10,000: the first {STEPS} steps."
    return [
        Table("wide_searches", "9a. Searches of very many streams", searches, lines, (note,)),
        Table("wide_vectors", "9b. Whole vectors of very many streams", vectors, whole, ("With a look at the stop.",)),
    ]


def _line(K: int, noise: str, name: str, group: list[Row]) -> Row:
    counts = np.array([row["measurements"] for row in group if "measurements" in row], dtype=float)
    line: Row = {"streams": K, "noise": noise, "posterior": name}
    line |= {"step_s": float(np.mean([row["step_s"] for row in group]))}
    if counts.size:
        spread = float(counts.std(ddof=1) / counts.size**0.5) if counts.size > 1 else None
        line |= {
            "mean": float(counts.mean()),
            "error": spread,
            "wrong": sum(row["wrong"] for row in group),
            "seeds": counts.size,
        }
    return line


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
