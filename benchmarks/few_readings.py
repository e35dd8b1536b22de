"""`python -m benchmarks.few_readings DIR... [--share 0.2 ...]`: plants watched with few readings, on collections.

Each line is a collection under one rule of reading: all sensors, a share of them in turn, or the most telling ones.
Limits are counted on the history under the same rule. The full watch stands beside them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from eccaht.base.arrays import Index
from eccaht.plants.incident.describe import gaps_before
from eccaht.plants.incident.investigate import compare
from eccaht.plants.watch.active import ActiveEngine, budget_of, masked, planned
from eccaht.research.datasets.labelled import CaseReadings, find_collections
from eccaht.research.experiments.detection import Alarms, Ours, first_rows, load_task, outcome_of
from eccaht.research.experiments.detection_outcomes import Outcome, measures


class Few:
    """The active watch of a share of the sensors, as `Ours` is the full one."""

    def __init__(self, full: Ours, share: float, in_turn: bool) -> None:
        self.model, self.every = full.model, full.every
        budget = budget_of(self.model, math.ceil(share * len(self.model.names)))
        self.plan = planned(self.model, replace(budget, in_turn=in_turn))

    def __call__(self, new: CaseReadings) -> Alarms:
        windows = self.model.prepare(new.source())
        engine, missing = ActiveEngine(compare(self.model, windows)[0], self.every, self.plan), gaps_before(windows)
        state = np.zeros((3, len(windows.values)), dtype=bool)  # alarm on, a change lasts, begins
        for t, row in enumerate(windows.values):
            engine.gap(int(missing[t]))
            began = engine.step(masked(row, engine.ask())[None]).began[0]
            state[:, t] = engine.latch.on, engine.latch.settled, began
        first = first_rows(windows, new)
        on, lasts = (spread(each, first, len(new.rows)) for each in state[:2])
        return Alarms(on, on | lasts, first[state[2]])


def spread(windows: np.ndarray, first: Index, rows: int) -> np.ndarray:
    """What holds in windows, by row."""
    return np.repeat(np.append(False, windows), np.diff(np.concatenate([[0], first, [rows]])))


def counted(directory: Path, shares: Sequence[float]) -> Iterator[tuple[str, dict[str, Any], float]]:
    entities = find_collections(directory).entities
    tasks = [load_task(entity) for entity in entities]
    full = [Ours(task.history, task.rate) for task in tasks]
    rules = [("all, active", 1.0, False)]
    for each in shares:
        rules += [(f"{each:g} in turn", each, True), (f"{each:g} most telling", each, False)]

    def outcomes(name: str, watchers: Sequence[Ours | Few]) -> list[Outcome]:
        return [
            outcome_of(entity, task, recording, name, watcher(recording.readings))
            for entity, task, watcher in zip(entities, tasks, watchers, strict=True)
            for recording in task.recordings
        ]

    began = perf_counter()
    yield "all, full watch", measures(outcomes("full", full)), perf_counter() - began
    for name, share, in_turn in rules:
        began = perf_counter()
        found = outcomes(name, [Few(each, share, in_turn) for each in full])
        yield name, measures(found), perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_readings", description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--share", nargs="+", type=float, default=[0.2, 0.1])
    options = parser.parse_args()
    for directory in options.directories:
        for name, found, seconds in counted(directory, options.share):
            shown = {key: round(value, 3) if isinstance(value, float) else value for key, value in found.items()}
            line = {"collection": directory.name, "rule": name, **shown, "seconds": round(seconds, 1)}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
