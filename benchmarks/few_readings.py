"""`python -m benchmarks.few_readings DIR... [--share 0.2 ...]`: plants watched with few readings, on collections.

Each line is a collection under one rule of reading: all sensors, a share of them in turn, or the most telling ones.
Thresholds are counted on the history under the same rule. The full watch stands beside them.
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

from eccaht.plants import calibrate_with_windows
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident.alarms import run_engine
from eccaht.plants.incident.describe import gaps_before
from eccaht.plants.incident.investigate import compare
from eccaht.plants.model.model import Model
from eccaht.plants.watch.active import ActiveEngine, ReadingPlan, budget_of, masked, planned
from eccaht.research.datasets.labelled import Entity, find_collections, read_sheet
from eccaht.research.experiments.detection import Alarms, Labelled, Task, load_task, outcome_of
from eccaht.research.experiments.detection_outcomes import Outcome, measures


def alarms_of(model: Model, windows: Windows, every: float, plan: ReadingPlan | None) -> list[tuple[int, int]]:
    """The windows in which alarms begin and are over."""
    normal, missing, stop = compare(model, windows)[0], gaps_before(windows), len(windows.values)
    if plan is None:
        run = run_engine(normal, windows.values, every, gaps=model.longest_gaps, missing=missing)
        return [(begun, stop if over is None else over) for begun, over, _ in run.alarms]
    engine, found = ActiveEngine(normal, every, plan), list[tuple[int, int]]()
    for t, row in enumerate(windows.values):
        engine.gap(int(missing[t]))
        shown = engine.step(masked(row, engine.ask())[None])
        if shown.began[0]:
            found.append((t, stop))
        if shown.ended[0]:
            found[-1] = (found[-1][0], t)
    return found


def watched(model: Model, recording: Labelled, every: float, plan: ReadingPlan | None) -> Alarms:
    """The rows of a recording in which an alarm is on, and with which it begins."""
    rows, windows = recording.readings, model.prepare(recording.readings.source())
    if rows.times is None:
        first = np.floor(np.arange(len(windows.values)) * len(rows.rows) / len(windows.values)).astype(np.intp)
    else:
        first = np.searchsorted(rows.times, windows.starts)
    on, begins = np.zeros(len(rows.rows), dtype=bool), []
    for begun, over in alarms_of(model, windows, every, plan):
        on[first[begun] : None if over >= len(first) else first[over]] = True
        begins.append(first[begun])
    return Alarms(on, on, np.array(begins, dtype=np.intp))


def collections(directory: Path) -> list[tuple[Entity, Task]]:
    """The entities of a collection; an air handler (`hvac`) has days with faults as incidents."""
    if (directory / "test.csv.gz").is_file():
        return [_air_handler(directory)]
    return [(entity, load_task(entity)) for entity in find_collections(directory).entities]


def _air_handler(directory: Path) -> tuple[Entity, Task]:
    history = read_sheet(directory / "history.csv.gz")
    test = read_sheet(directory / "test.csv.gz", history.names)
    assert test.times is not None
    days = test.times.astype("datetime64[D]").astype(str)
    bad = json.loads((directory / "truth.json").read_text())["bad"]
    spans = [np.flatnonzero(days == day) for day in bad]
    incidents = tuple((int(span[0]), int(span[-1]) + 1) for span in spans if span.size)
    task = Task("servers", history, 1.0 / 1440, 1440, (Labelled("test", test, incidents),))
    files = directory / "history.csv.gz", (directory / "test.csv.gz",)
    return Entity(directory.name, directory.name, "servers", *files), task


def counted(directory: Path, shares: Sequence[float]) -> Iterator[tuple[str, dict[str, Any], float]]:
    rules: list[tuple[str, float | None, bool]] = [("full watch", None, False), ("1 active", 1.0, False)]
    for each in shares:
        rules += [(f"{each:g} in turn", each, True), (f"{each:g} most telling", each, False)]
    tasks = collections(directory)
    models = [calibrate_with_windows(task.history.source())[0] for _, task in tasks]
    for name, share, in_turn in rules:
        outcomes: list[Outcome] = []
        began = perf_counter()
        for (entity, task), model in zip(tasks, models, strict=True):
            every, plan = max(1.0 / (task.rate * max(model.usual_rows, 1.0)), 1.0), None
            if share is not None:
                budget = budget_of(model, math.ceil(share * len(model.names)))
                plan = planned(model, replace(budget, in_turn=in_turn))
            for recording in task.recordings:
                alarms = watched(model, recording, every, plan)
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
            line = {"collection": directory.name, "rule": name, **shown, "seconds": round(seconds, 1)}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
