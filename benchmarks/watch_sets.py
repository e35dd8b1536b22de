"""`python -m benchmarks.watch_sets [--runs N]`: does `eccaht.Watch` name the right streams at an alarm, and later?

100 streams of a known covariance; steps of size 1 begin after 40 quiet windows. docs/measured/watching.md has it.
"""

from __future__ import annotations

import argparse
import copy
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from benchmarks.watch_simulated import make_world
from eccaht import Problem, Watch
from eccaht.base.randomness import rng_for

WORLDS, STREAMS, QUIET, MOST, RUNS = ("toeplitz 0.8", "factor"), 100, 40, 200, 100
SHIFTED, LATER = (1, 3), (0, 3, 10)  # streams with a step; windows after the alarm
BINS = (0.0, 0.3, 0.5, 0.7, 0.9, 1.01)  # of the stated confidence


class Naming(NamedTuple):
    """What was named so many windows after the alarm, with its stated confidence."""

    right: bool
    confidence: float


def search(watch: Watch, world: str, shifted: int, seed: int) -> dict[int, Naming]:
    """One step watched: a naming for each of LATER; empty if an alarm came before the step, or none in time."""
    noise, rng = make_world(world, STREAMS), rng_for(seed, world, f"{shifted} streams", "sets")
    root, moved = np.linalg.cholesky(noise.covariance), np.zeros(STREAMS)
    truth = np.sort(rng.choice(STREAMS, shifted, replace=False))
    moved[truth] = 1.0
    found: dict[int, Naming] = {}
    raised = None
    for t in range(QUIET + MOST):
        watch.update(root @ rng.standard_normal(STREAMS) + (moved if t >= QUIET else 0.0))
        alarm = watch.alarm  # as it is now
        if alarm is None:
            continue
        if t < QUIET:
            break
        raised = t if raised is None else raised
        if t - raised in LATER:
            found[t - raised] = Naming(np.array_equal(np.sort(alarm.decision), truth), alarm.confidence or 0.0)
        if t - raised >= LATER[-1]:
            break
    return found


def main() -> None:
    """Read the options and count."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watch_sets", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    namings: list[Naming] = []
    for world in WORLDS:
        fresh = Watch(Problem(make_world(world, STREAMS).covariance, shift=1.0, n_anomalies=(1, 10), budget=5.0))
        for shifted in SHIFTED:
            done = [search(copy.deepcopy(fresh), world, shifted, seed) for seed in range(runs)]
            namings += [each for found in done for each in found.values()]
            shares = [(sum(d[k].right for d in done if k in d), sum(k in d for d in done)) for k in LATER]
            text = ", ".join(f"{right} of {named} after {k}" for k, (right, named) in zip(LATER, shares, strict=True))
            print(f"{world}, s = {shifted}: {text}", flush=True)
    stated, right = np.array([(each.confidence, each.right) for each in namings]).T
    for low, high in pairwise(BINS):
        chosen = (stated >= low) & (stated < high)
        if chosen.any():
            print(f"stated {stated[chosen].mean():.2f}: right {right[chosen].mean():.2f} of {chosen.sum()}")


if __name__ == "__main__":
    main()
