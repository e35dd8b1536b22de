"""`python -m benchmarks.estimates`: errors of searches with an estimated covariance, as docs/measured/estimated.csv.

Every search estimates mean and covariance from vectors of its own. A file that is there is gone on with: 400 searches a
line take about an hour of one core.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.confidence import _noise
from eccaht import Problem
from eccaht.base.statistics import clopper_pearson
from eccaht.research.experiments.error_counts import Truth, count_errors, summarise

FILE = Path(__file__).parents[1] / "docs" / "measured" / "estimated.csv"
K, ALPHA, HORIZON = 32, 0.05, 1000
NOISES = ("toeplitz", "factor", "block", "equicorrelation", "kronecker", "identity")
RULES = {
    "joint": "posterior",
    "ecc-aht": "gap",
    "ecc-aht-verified": "own",
    "track-and-stop": "own",
    "two-stage": "own",
}
VECTORS = (None, K + 5, 2 * K, 5 * K, 20 * K)  # None: the true covariance
KEY = ("policy", "tails", "noise", "vectors")
COLUMNS = (*KEY, "rule", "stopped", "wrong", "share", "low", "high", "never_stopped", "readings")


def row(policy: str, tails: float | None, noise: str, vectors: int | None, searches: int) -> dict[str, object]:
    """One line: the errors of a policy's rule at ALPHA."""
    problem = Problem(_noise(noise, K), shift=2.0, n_anomalies=2, budget=4.0)
    rule, truth = RULES[policy], Truth(vectors=vectors, tails=tails)
    how = {"stopping": rule, "alphas": [ALPHA], "runs": searches, "horizon": HORIZON, "truth": truth}
    (level,) = summarise(count_errors(problem, policy=policy, **how))  # type: ignore[arg-type]
    low, high = level.interval or (0.0, 1.0)
    counted = (rule, level.stopped, level.errors, f"{level.share or 0.0:.4f}", f"{low:.4f}", f"{high:.4f}")
    values = (policy, tails, noise, vectors, *counted, level.never_stopped, f"{level.measurements.mean:.1f}")
    return dict(zip(COLUMNS, values, strict=True))


def tables(lines: list[dict[str, str]]) -> Iterator[str]:
    """A row for each policy and kind of noise: wrong sets over all noises, the worst one, and readings."""
    yield "| policy | noise | " + " | ".join("known" if m is None else f"{m} vectors" for m in VECTORS) + " |"
    yield "|---" * (2 + len(VECTORS)) + "|"
    for policy, tails in product(RULES, ("", "5.0")):
        cells = []
        for vectors in VECTORS:
            here = [
                line
                for line in lines
                if (line["policy"], line["tails"]) == (policy, tails) and line["vectors"] == str(vectors or "")
            ]
            if not here:
                cells.append("–")
                continue
            wrong, stopped = (sum(int(line[name]) for line in here) for name in ("wrong", "stopped"))
            low, high = clopper_pearson(wrong, stopped)
            worst = max(here, key=lambda line: float(line["share"]))
            known = {
                line["noise"]: float(line["readings"])
                for line in lines
                if (line["policy"], line["tails"], line["vectors"]) == (policy, tails, "")
            }
            ratio = np.mean([float(line["readings"]) / known[line["noise"]] for line in here])
            share = f"{wrong} of {stopped:,} [{100 * low:.1f}, {100 * high:.1f}]"
            cells.append(f"{share}; {worst['wrong']} {worst['noise']}; {ratio:.2f}")
        yield f"| `{policy}` | {'t5' if tails else 'Gaussian'} | " + " | ".join(cells) + " |"


def main() -> None:
    """Add the lines that the file lacks, and print the table of the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=400)
    parser.add_argument("--out", type=Path, default=FILE)
    given = parser.parse_args()
    known = list(csv.DictReader(given.out.open())) if given.out.exists() else []
    done = {tuple(line[name] for name in KEY) for line in known}
    with given.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not known:
            writer.writeheader()
        for case in product(RULES, (None, 5.0), NOISES, VECTORS):
            if tuple("" if part is None else str(part) for part in case) not in done:
                writer.writerow(row(*case, given.searches))
                file.flush()
    print(*tables(list(csv.DictReader(given.out.open()))), sep="\n")


if __name__ == "__main__":
    main()
