"""Part 6: steps of joint by numpy and by compiled loops, and late steps beside early ones, each in its own process.

`python -m benchmarks.loops STREAMS ANOMALIES BUDGET SEED` prints the processor time of each step as one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table, milliseconds, times
from eccaht import Problem, Simulator, families, make_policy

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = ((128, 5, 5.0), (1000, 10, 10.0))  # streams, anomalies, budget; toeplitz 0.8, shift 3
WAYS = {"numpy": "0", "compiled": "1"}
SEEDS, QUICK_SEEDS = 4, 1
MOST = 400  # steps of a search
END = 20  # steps at either end of a search


def jobs(quick: bool) -> list[Job]:
    """One job a setting and seed, in which the ways take turns; without numba there is numpy alone."""
    settings = SETTINGS[:1] if quick else SETTINGS
    seeds = range(QUICK_SEEDS if quick else SEEDS)
    return [Job(f"loops, K = {K}, seed {s}", partial(_compare, K, n, b, s)) for K, n, b in settings for s in seeds]


def _compare(K: int, n: int, budget: float, seed: int) -> list[Row]:
    ways = [way for way in WAYS if way == "numpy" or find_spec("numba")]
    taken = {way: _apart(WAYS[way], K, n, budget, seed) for way in ways}
    base = taken["numpy"]
    return [{"streams": K, "anomalies": n, "way": way} | _row(steps, base) for way, steps in taken.items()]


def _apart(compiled: str, *setting: float) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.loops", *map(str, setting)]
    environment = os.environ | {"ECCAHT_COMPILED": compiled}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return [float(step) for step in json.loads(done.stdout)]


def _row(steps: list[float], base: list[float]) -> Row:
    """Both ways make the same search, so that step is compared with step."""
    if len(steps) != len(base):
        raise ValueError(
            "numpy and the compiled loops made different searches: run tests/streams/posterior/test_loops.py"
        )
    ends = {"early_s": float(np.median(steps[:END])), "late_s": float(np.median(steps[-END:]))}
    return ends | {"step_s": float(np.mean(steps)), "ratio": sum(steps) / sum(base), "steps": len(steps)}


def measure(K: int, n: int, budget: float, seed: int) -> list[float]:
    """Time the steps of a search; two others before it load and compile."""
    problem = Problem(families.toeplitz(K, 0.8), shift=3.0, n_anomalies=n, budget=budget)
    for other in (1000, 1001):
        _search(problem, seed + other)
    return _search(problem, seed)


def _search(problem: Problem, seed: int) -> list[float]:
    policy, world = make_policy("joint", problem, seed=seed), Simulator(problem, seed=seed)
    taken: list[float] = []
    while not policy.should_stop() and len(taken) < MOST:
        start = time.process_time()
        c = policy.ask()
        policy.tell(c, world.measure(c))
        policy.should_stop()
        taken.append(time.process_time() - start)
    return taken


def tables(rows: list[Row]) -> list[Table]:
    """One line a size and way, medians over the searches."""
    groups: dict[tuple[int, int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["streams"], row["anomalies"], row["way"]), []).append(row)
    columns = (
        Column("streams", "K"),
        Column("anomalies", "n"),
        Column("way", "by", right=False),
        Column("step_s", "ms a step", milliseconds),
        Column("ratio", "over numpy", times),
        Column("early_s", f"first {END}, ms", milliseconds),
        Column("late_s", f"last {END}, ms", milliseconds),
        Column("growth", "last over first", times),
        Column("steps", "steps"),
    )
    notes = ("Processor time of ask, measure, tell and should_stop; medians over searches that end by themselves.",)
    lines = [_line(*key, group) for key, group in groups.items()]
    return [Table("loops", "6. Steps of joint: compiled loops, and late steps", columns, lines, notes)]


def _line(K: int, n: int, way: str, group: list[Row]) -> Row:
    middle = {key: float(np.median([row[key] for row in group])) for key in ("step_s", "ratio", "early_s", "late_s")}
    growth = float(np.median([row["late_s"] / row["early_s"] for row in group]))
    found = {"streams": K, "anomalies": n, "way": way, "growth": growth, "steps": sum(row["steps"] for row in group)}
    return found | middle


if __name__ == "__main__":
    streams, anomalies, budget, seed = sys.argv[1:]
    print(json.dumps(measure(int(streams), int(anomalies), float(budget), int(seed))))
