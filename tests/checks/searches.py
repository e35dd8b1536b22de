"""Every policy on problems of several sizes: a digest of all its bits after each measurement.

    python -m tests.checks.searches OFFSET STEPS SIZE ...

is a process of its own, whose arrays lie where OFFSET says (see `placement`), and prints the digests as JSON.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from eccaht import Problem, Simulator, families, make_policy, policy_names
from eccaht.streams.covariance import Covariance, Dense
from eccaht.streams.policies import Policy
from tests.checks.placement import place_arrays, view_at

DENSE = 400  # the most streams of a full matrix
KINDS = ("independent", "chain", "dense")
_SLOW = {"joint": 4, "joint-pair": 2, "exact": 4}  # they take so many times fewer measurements
_FEW = 100  # streams, at most, of those that solve programs over all sets
_ALL_SETS = (
    "ecc-aht-verified",
    "two-stage",
    "chernoff",
    "controlled-sensing",
    "extrinsic-jensen-shannon",
    "track-and-stop",
    "frank-wolfe",
    "lingame",
    "rage",
    "od-linbai",
)
_ALLOCATED = 16  # malloc returns multiples of this


def problem_of(kind: str, K: int, offset: int) -> Problem:
    """A problem whose arrays were handed in as views."""
    place = np.arange(K)
    if kind == "dense":  # nearer streams are more alike; unequal variances make no two rows equal
        S = np.exp(-0.5 * ((place[:, None] - place) / 5.0) ** 2) + np.diag(0.2 + 0.1 * np.sin(place / 3.0))
        covariance: Covariance = Dense(view_at(offset, S))
    else:
        covariance = families.identity(K) if kind == "independent" else families.toeplitz(K, 0.8)
    mean, shift = np.linspace(-1.0, 1.0, K), 3.0 + 0.5 * np.cos(place)
    return Problem(covariance, shift=view_at(offset, shift), n_anomalies=2, budget=4.0, mean=view_at(offset, mean))


def possible(sizes: Sequence[int]) -> list[tuple[str, int, str]]:
    """What the catalogue does not refuse: some policies need a tree, or few sets."""
    found = []
    for kind in KINDS:
        for K in sizes if kind != "dense" else [K for K in sizes if K <= DENSE]:
            problem = problem_of(kind, K, 0)
            for name in policy_names():
                if K > _FEW and name in _ALL_SETS:
                    continue
                try:
                    make_policy(name, problem)
                except ValueError:
                    continue
                found.append((kind, K, name))
    return found


def digests(policy: Policy, world: Simulator, steps: int, offset: int) -> Iterator[str]:
    """One a measurement, of everything so far."""
    bits = hashlib.sha256()
    for step in range(steps):
        c = policy.ask()
        handed = c if step % 2 else view_at(offset, c)
        y = world.measure(handed)
        policy.tell(handed, y)
        for array in (c, np.array([y, policy.lead]), policy.scores, policy.beliefs, policy.decision):
            bits.update(np.ascontiguousarray(array).tobytes())
        bits.update(repr(policy.confidence).encode())
        yield bits.hexdigest()[:8]


def all_digests(offset: int, steps: int, *sizes: int) -> dict[str, list[str]]:
    """Of every possible search."""
    wanted = possible(sizes)
    place_arrays(offset // _ALLOCATED * _ALLOCATED)
    results, problems = {}, {pair: problem_of(*pair, offset) for pair in {(kind, K) for kind, K, _ in wanted}}
    for kind, K, name in wanted:
        problem = problems[kind, K]
        policy, world = make_policy(name, problem, seed=5, stopping=None), Simulator(problem, seed=5)
        results[f"{name}, {K} {kind}"] = list(digests(policy, world, max(2, steps // _SLOW.get(name, 1)), offset))
    return results


if __name__ == "__main__":
    with threadpool_limits(1):  # their number is another matter
        print(json.dumps(all_digests(*(int(argument) for argument in sys.argv[1:]))), flush=True)
    os._exit(0)  # arrays that are freed while Python shuts down would find no handler
