"""`python -m benchmarks.sums [--plants N]`: searches by weighted sums on plants of `eccaht example --seed 0, 1, ...`.

Each plant is calibrated without drills, which these searches do not use. Its incident from 08:00 on is searched with
the options of each row of docs/measured/plants.md; the two hours before are normal.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eccaht.cli.main import run

PLANTS, ONSET = 20, "2024-03-07T08:00"
WRONG, NORMAL = ("--start", ONSET), ("--stop", ONSET)
ROWS: tuple[tuple[str, Sequence[str]], ...] = (
    ("--anomalies 3 --shift 1", WRONG),
    ("--anomalies 3 --shift 1 --policy ecc-aht", WRONG),
    ("--anomalies 3 --shift unknown:1", WRONG),
    ("--anomalies 3 --shift unknown:1:positive", WRONG),
    ("--anomalies 0-5 --shift 1", WRONG),
    ("--anomalies 0-5 --shift 1", NORMAL),
    ("--anomalies 3 --shift 1 --vectors", WRONG),
    ("--anomalies 0-5 --shift 1 --vectors", WRONG),
    ("--anomalies 0-5 --shift 1 --vectors", NORMAL),
    ("--anomalies 2 --shift 1", WRONG),
    ("--anomalies 4 --shift 1", WRONG),
)


def answer(*arguments: str) -> dict[str, Any]:
    """The JSON document that a command prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        if run([*arguments, "--json"]) != 0:
            raise RuntimeError(" ".join(arguments))
    document: dict[str, Any] = json.loads(printed.getvalue())
    return document


def searched(folder: Path, options: str, stretch: Sequence[str]) -> tuple[bool, bool, int, list[bool]]:
    """Whether it stopped, whether its set is right, its measurements, and which intervals hold the true size."""
    truth = set(json.loads((folder / "truth.json").read_text())["anomalies"]) if stretch == WRONG else set()
    found = answer(
        *("identify", "--sums", "--max-measurements", "120", "--model", str(folder / "plant.model")),
        *("--data", str(folder / "incident.csv"), *stretch, *options.split()),
    )
    named, search = found["named"], found["search"]
    held = [each["size_low"] <= 1.0 <= each["size_high"] for each in named if each["sensor"] in truth]
    return search["reason"] == "stopped", {each["sensor"] for each in named} == truth, search["measurements"], held


def main() -> None:
    """Read the options and search."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sums", description=__doc__)
    parser.add_argument("--plants", type=int, default=PLANTS)
    plants = parser.parse_args().plants
    counts: list[list[tuple[bool, bool, int, list[bool]]]] = [[] for _ in ROWS]
    for seed in range(plants):
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home)
            answer("example", "--seed", str(seed), "--out", home)
            history, model = str(folder / "history.csv"), str(folder / "plant.model")
            answer("calibrate", history, "--exclude", "P-101 mode", "--no-drill", "--out", model)
            for rows, (options, stretch) in zip(counts, ROWS, strict=True):
                rows.append(searched(folder, options, stretch))
    for rows, (options, stretch) in zip(counts, ROWS, strict=True):
        stopped, right, taken, held = zip(*rows, strict=True)
        sizes = [each for one in held for each in one]
        times = f"{min(taken)} to {max(taken)}, mean {np.mean(taken):.1f}"
        where = " (normal)" if stretch == NORMAL else ""
        print(f"{options}{where}: stopped {sum(stopped)}, right {sum(right)} of {plants}; {times}", end="; ")
        print(f"sizes held {sum(sizes)} of {len(sizes)}")


if __name__ == "__main__":
    main()
