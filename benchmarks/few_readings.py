"""`python -m benchmarks.few_readings DIR... [--share 0.2 ...]`: plants watched with few readings, on collections.

Each line is a collection under one rule of reading: all sensors, a share of them in turn, or the most telling ones.
Thresholds are counted on the history under the same rule. The full watch stands beside them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

from eccaht.base.arrays import Index
from eccaht.plants import calibrate_with_windows
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.alarms import run_engine
from eccaht.plants.incident.describe import gaps_before
from eccaht.plants.incident.investigate import compare
from eccaht.plants.model.model import Model
from eccaht.plants.watch import active
from eccaht.plants.watch.active import ActiveEngine, ReadingPlan, masked, planned
from eccaht.research.datasets.labelled import find_collections
from eccaht.research.experiments.detection import Alarms, Labelled, load_task, outcome_of
from eccaht.research.experiments.detection_outcomes import Outcome, measures

SHOWN = (
    "found",
    "begun",
    "false_alarms_a_day",
    "time_in_quiet",
    "S",
    "tpr",
    "tnr",
    "flagged_mean",
    "flagged_normal_test",
)


class InTurn(ActiveEngine):
    """The next sensors in turn, whatever was read."""

    def _chosen(self) -> Index:
        K = len(self._age)
        many = min(int(self.plan.readings), K)
        at = int(self._saved)
        self._saved = float((at + many) % K)
        return (at + np.arange(many)) % K


ENGINES = {"in turn": InTurn, "most telling": ActiveEngine}


def alarms_of(
    model: Model, windows: Windows, every: float, plan: ReadingPlan | None, engine_of: type[ActiveEngine]
) -> list[tuple[int, int]]:
    """The windows in which alarms begin and are over."""
    missing = gaps_before(windows)
    if plan is None:
        normal, _ = compare(model, windows)
        run = run_engine(normal, windows.values, every, gaps=model.longest_gaps, missing=missing)
        return [(begun, len(windows.values) if over is None else over) for begun, over, _ in run.alarms]
    normal, _ = compare(model, windows)
    engine, found = engine_of(normal, every, plan), list[tuple[int, int]]()
    for t, row in enumerate(windows.values):
        engine.gap(int(missing[t]))
        shown = engine.step(masked(row, engine.ask())[None])
        if shown.began[0]:
            found.append((t, len(windows.values)))
        if shown.ended[0]:
            found[-1] = (found[-1][0], t)
    return found


def watched(
    model: Model, recording: Labelled, every: float, plan: ReadingPlan | None, engine_of: type[ActiveEngine]
) -> Alarms:
    windows = model.prepare(recording.readings.source())
    rows = recording.readings
    if rows.times is None:
        first = np.floor(np.arange(len(windows.values)) * len(rows.rows) / len(windows.values)).astype(np.intp)
    else:
        first = np.searchsorted(rows.times, windows.starts)
    on, begins = np.zeros(len(rows.rows), dtype=bool), []
    for begun, over in alarms_of(model, windows, every, plan, engine_of):
        on[first[begun] : None if over >= len(first) else first[over]] = True
        begins.append(first[begun])
    return Alarms(on, on, np.array(begins, dtype=np.intp))


def counted(directory: Path, shares: list[float]) -> Iterator[tuple[str, dict[str, float | None], float]]:
    rules: list[tuple[str, float | None, type[ActiveEngine]]] = [
        ("full watch", None, ActiveEngine),
        ("all", 1.0, ActiveEngine),
    ]
    rules += [(f"{share:g} {name}", share, engine) for share in shares for name, engine in ENGINES.items()]
    tasks = [(entity, load_task(entity)) for entity in find_collections(directory).entities]
    models = [calibrate_with_windows(task.history.source())[0] for _, task in tasks]
    for name, share, engine in rules:
        outcomes: list[Outcome] = []
        began = perf_counter()
        for (entity, task), model in zip(tasks, models, strict=True):
            every = max(1.0 / (task.rate * max(model.usual_rows, 1.0)), 1.0)
            plan = None
            if share is not None:
                active.ActiveEngine = engine  # type: ignore[misc]
                plan = planned(model, math.ceil(share * len(model.names)))
            for recording in task.recordings:
                alarms = watched(model, recording, every, plan, engine)
                outcomes.append(outcome_of(entity, task, recording, name, alarms))
        yield name, measures(outcomes), perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.few_readings", description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--share", nargs="+", type=float, default=[0.2, 0.1])
    options = parser.parse_args()
    for directory in options.directories:
        for name, found, seconds in counted(directory, options.share):
            shown = {key: round(value, 3) if isinstance(value, float) else value for key, value in found.items()}
            print(
                json.dumps({"collection": directory.name, "rule": name, **shown, "seconds": round(seconds, 1)}),
                flush=True,
            )


if __name__ == "__main__":
    main()
