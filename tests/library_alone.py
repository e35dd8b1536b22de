"""What `pip install eccaht` gives: every policy searches, saves and goes on with numpy and scipy alone.

A script and not a test: `make build` runs it in an environment that holds nothing else, tests/base/test_extras.py in a
process that cannot import the rest.
"""

import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path

import numpy as np

from eccaht import (
    Problem,
    Simulator,
    UnknownShift,
    __version__,
    effective_rank,
    families,
    load_policy,
    make_policy,
    pair_design,
    policy_names,
    search,
)
from eccaht.streams.limits import gamma_star

OPTIONAL = ("polars", "sklearn", "matplotlib", "typer", "rich", "joblib", "threadpoolctl", "distributed", "wntr")


def search_twice(name: str, directory: Path) -> str:
    """Look for two of sixteen streams, half of it with the policy as it was saved."""
    noise = families.identity(16) if name == "hds" else families.toeplitz(16, rho=0.6)
    problem = Problem(noise, shift=3.0, n_anomalies=2, budget=4.0)
    world = Simulator(problem, seed=1)
    policy = make_policy(name, problem, seed=2, stopping=None)
    search(policy, world.measure, max_measurements=20)
    policy.save(directory / "half")
    result = search(load_policy(directory / "half"), world.measure, max_measurements=80)
    assert result.n_measurements == 80
    assert np.array_equal(result.anomalies, world.anomalies), (name, result.anomalies, world.anomalies)
    return f"{name} {result.anomalies.tolist()}"


def whole_vectors() -> str:
    """Read all streams at once, neither the number of anomalies nor their sizes known."""
    problem = Problem(families.toeplitz(16, rho=0.6), shift=UnknownShift(3.0), n_anomalies=(0, 3), budget=4.0)
    world = Simulator(problem, seed=1, anomalies=[3, 12], shifts=[4.0, -4.0])
    policy = make_policy("joint", problem, seed=2, stopping=None)
    for row in world.sample(20):
        policy.observe(row)
    assert policy.decision.tolist() == [3, 12]
    return f"whole vectors {policy.decision.tolist()}, fit {policy.fit:.2f}"


def main() -> None:
    """Run it all and say what was done, and with what."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        found = [search_twice(name, Path(directory)) for name in policy_names() if name != "oracle-design"]
    print(*found, whole_vectors(), sep="\n")
    problem = Problem(families.toeplitz(16, rho=0.6), shift=3.0, n_anomalies=2, budget=4.0)
    print(f"pair design: {pair_design(problem, 3, 12).information:.3f} nats a reading")
    print(f"effective rank: {effective_rank(problem.covariance):.2f}, Gamma*: {gamma_star(problem, [3, 12]).lower:.3f}")
    package = files("eccaht")
    assert all(package.joinpath(name).is_file() for name in ("py.typed", "research/datasets/wadi_attacks.csv"))
    assert not [name for name in OPTIONAL if sys.modules.get(name)]
    took = time.perf_counter() - began
    print(f"eccaht {__version__} in {package}, numpy {np.__version__}: {len(found)} policies in {took:.1f} s")


if __name__ == "__main__":
    main()
