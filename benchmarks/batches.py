"""`python -m benchmarks.batches needed|stopped|lost|errors [--runs N] [--policy NAME]`: docs/measured/searches.md.

What it costs to ask for several measurements at once, and to lose some of their results. Searches are paired: one at a
time and in batches they face the same anomalies.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from eccaht import Problem, Simulator, families, make_policy
from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.base.statistics import clopper_pearson
from eccaht.streams.policies import Policy
from eccaht.streams.run.loop import stays_right

PROBLEM = Problem(families.toeplitz(128, rho=0.8), shift=3.0, n_anomalies=5, budget=5.0)
SMALL = Problem(families.toeplitz(32, rho=0.8), shift=1.5, n_anomalies=4, budget=3.0)
BATCH, LOST, HORIZON, ALPHA = 4, 0.2, 400, 0.05
RUNS = {"needed": 60, "stopped": 60, "lost": 60, "errors": 400}
POLICIES = {"needed": ("joint", "joint-pair", "ecc-aht"), "stopped": ("joint", "joint-pair"), "lost": ("joint",)}


class Search(NamedTuple):
    """readings: until the set was right for good, or until the policy stopped; None beyond the horizon."""

    readings: int | None
    right: bool
    asked: int  # measurements, with those whose result was lost


def readings(policy: Policy, world: Simulator, batch: int, lost: float, seed: int) -> Iterator[tuple[int, bool]]:
    """Ask for batches (0: one at a time) and give the policy the readings that were not lost.

    Yields after each measurement how many were asked for so far, and whether it was the last one of its batch.
    """
    rng, asked = rng_for(seed, "lost"), 0
    while True:
        for c in policy.ask(batch=batch) if batch else [policy.ask()]:
            asked += 1
            if rng.random() >= lost:
                policy.tell(c, world.measure(c))
            elif batch:
                policy.forget(c)
            yield asked, asked % max(batch, 1) == 0


def search(name: str, problem: Problem, seed: int, *, batch: int, lost: float = 0.0, stop: bool = False) -> Search:
    """One search: until the policy stops, which is looked at after whole batches, or its set is right and stays so."""
    policy = make_policy(name, problem, seed=seed, stopping="default" if stop else None, alpha=ALPHA)
    world, wrong, asked = Simulator(problem, seed=seed, names=[name]), 0, 0
    for asked, whole in readings(policy, world, batch, lost, seed):
        right = np.array_equal(policy.decision, world.anomalies)
        if stop and whole and policy.should_stop():
            return Search(policy.n_readings, right, asked)
        wrong = wrong if right else policy.n_readings
        if policy.n_readings >= HORIZON or (not stop and stays_right(policy, world.anomalies)):
            break
    done = not stop and wrong < policy.n_readings
    return Search(wrong + 1 if done else None, done, asked)


def compare(part: str, name: str, runs: int) -> str:
    """One line: the mean number of readings either way, over the runs that end in both, and their ratio."""
    stop, lost = part == "stopped", LOST if part == "lost" else 0.0
    pairs = [
        (search(name, PROBLEM, seed, batch=BATCH if lost else 0, stop=stop or bool(lost)),
         search(name, PROBLEM, seed, batch=BATCH, lost=lost, stop=stop or bool(lost)))
        for seed in range(runs)
    ]  # fmt: skip
    both = np.array([(a.readings, b.readings) for a, b in pairs if a.readings and b.readings], dtype=float)
    low, high = ratio_interval(both)
    ended = [sum(pair[k].readings is not None for pair in pairs) for k in (0, 1)]
    right = [sum(pair[k].right for pair in pairs) for k in (0, 1)]
    first, second = both.mean(axis=0)
    return (
        f"{part} {name}: {first:.1f} and {second:.1f} readings, ratio {second / first:.3f} [{low:.3f}, {high:.3f}]; "
        f"ended {ended[0]} and {ended[1]} of {runs}, right {right[0]} and {right[1]}"
        + _asked([b for _, b in pairs], lost)
    )


def _asked(searches: list[Search], lost: float) -> str:
    if not lost:
        return ""
    asked = np.mean([each.asked / each.readings for each in searches if each.readings])
    return f"; {asked:.2f} measurements asked for per reading"


def ratio_interval(both: Array) -> tuple[float, float]:
    """95 % bootstrap interval of the ratio of means of paired searches."""
    draws = rng_for(0, "bootstrap").integers(len(both), size=(10_000, len(both)))
    means = both[draws].mean(axis=1)
    low, high = np.quantile(means[:, 1] / means[:, 0], [0.025, 0.975])
    return float(low), float(high)


def errors(name: str, runs: int, first: int) -> str:
    """Wrong decisions among searches in batches that stopped at alpha."""
    done = [search(name, SMALL, seed, batch=BATCH, stop=True) for seed in range(first, first + runs)]
    stopped = [each for each in done if each.readings]
    wrong = sum(not each.right for each in stopped)
    low, high = clopper_pearson(wrong, len(stopped))
    mean = np.mean([each.readings for each in stopped if each.readings])
    return f"errors {name}, seeds {first} on: {wrong} of {len(stopped)} [{low:.3f}, {high:.3f}], {mean:.1f} readings"


def main() -> None:
    """Read the options and count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batches", description=__doc__)
    parser.add_argument("part", choices=RUNS)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first seed, of errors")
    parser.add_argument("--policy")
    options = parser.parse_args()
    runs = options.runs or RUNS[options.part]
    if options.part == "errors":
        print(errors(options.policy or "joint", runs, options.first))
        return
    for name in [options.policy] if options.policy else POLICIES[options.part]:
        print(compare(options.part, name, runs), flush=True)


if __name__ == "__main__":
    main()
