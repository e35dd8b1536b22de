"""`python -m benchmarks.quiet [DIR...]`: how often is the engine wrong, and what does it find? One table.

Simulated plants, 12 sensors each: half of a sensor's variance is the course of its section, the rest its own, both
autoregressive with t5 noise. Their histories have 200 to 10,000 windows and autocorrelations from 0 to 0.98; a window
is a minute. Of the collections in DIR all that lies outside of incidents counts. Options of the engine are the default
ones, but for the false-alarm rate of collections, which is that of `eccaht incidents`.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from eccaht.base.arrays import Array
from eccaht.base.randomness import rng_for
from eccaht.base.statistics import clopper_pearson, poisson_interval
from eccaht.plants import Model, Windows, calibrate_with_windows, investigate_incident
from eccaht.plants.example import write_example
from eccaht.plants.incident.alarms import Engine, Run, runs_of
from eccaht.plants.incident.drill import RUNS, drill_trials
from eccaht.plants.incident.trials import FEWEST_WINDOWS
from eccaht.research.datasets.labelled import find_collections
from eccaht.research.experiments.detection import Labelled, Ours, load_task, outcome_of
from eccaht.research.experiments.incidents_cases import OURS

PLANTS, SECTIONS, IN_SECTION = 20, 3, 4
HISTORY, MEMORY, BURN_IN = (200, 10_000), 0.98, 500
WATCHED = 32  # lengths of the history
NOISE, LEAD, WITHIN, TIMES = 4.0, 100, 20, 20  # times as large, after so many windows; found within; incidents a plant
HOURS, STRETCHES = (1, 4, 24), 5  # of each length, in each plant or recording
Counts = defaultdict[str, float]


def courses(rng: np.random.Generator, memory: float, rows: int, copies: int) -> tuple[Array, Array]:
    """What sections and sensors do by themselves, both (rows, copies, K), of unit variance."""
    sensors = SECTIONS * IN_SECTION
    white = rng.standard_t(5, (rows + BURN_IN, copies, SECTIONS + sensors)) * np.sqrt(0.6 * (1.0 - memory**2))
    found = lfilter([1.0], [1.0, -memory], white, axis=0)[BURN_IN:]
    return np.repeat(found[..., :SECTIONS], IN_SECTION, axis=2), found[..., SECTIONS:]


def readings(rng: np.random.Generator, memory: float, rows: int, copies: int) -> Array:
    """Rows of plants that do nothing unusual, (rows, copies, K)."""
    return np.asarray(sum(courses(rng, memory, rows, copies)))


def summed(counts: Sequence[Counts]) -> Counts:
    found = Counts(float)
    for each in counts:
        for name, count in each.items():
            found[name] += count
    return found


def count_plant(number: int, drills: int, seed: int) -> Counts:
    """All counts of one simulated plant."""
    rows = int(np.geomspace(*HISTORY, PLANTS)[number % PLANTS])
    memory = MEMORY * (7 * number % PLANTS) / (PLANTS - 1)  # short and long ones at all lengths
    rng = rng_for(seed, "quiet", str(number))
    model, windows = calibrate_with_windows(readings(rng, memory, rows, 1)[:, 0], window="1rows")
    quiet = _watched(model, readings(rng, memory, rows, WATCHED))
    counted = Counts(float, windows=WATCHED * rows, asked=WATCHED * rows / model.usual_rate)
    counted["alarms"] = sum(len(run.alarms) for run in quiet)
    counted["in alarm"] = sum(_in_alarm(run) for run in quiet)
    for hours in HOURS:
        for _ in range(STRETCHES):
            counted[f"{hours} h: {model.identify(readings(rng, memory, 60 * hours, 1)[:, 0]).verdict}"] += 1
            counted[f"{hours} h, asked"] += 60 * hours / model.usual_rate
    shared, own = courses(rng, memory, LEAD + WITHIN, TIMES)
    own[LEAD:, :, 0] *= NOISE
    for run in _watched(model, shared + own):
        if not any(begun < LEAD and (over is None or over > LEAD) for begun, over, _ in run.alarms):
            counted["noise"] += 1
            counted["noise found"] += any(begun >= LEAD for begun, _, _ in run.alarms)
    return summed([counted, _drilled(model, windows, drills, seed)])


def _watched(model: Model, rows: Array) -> list[Run]:
    """Plants side by side, (T, N, K), each by the same model."""
    assert model.normal is not None
    values = (rows - model.center) / model.scale
    return runs_of(Engine(model.normal, model.usual_rate, rows.shape[1]), values, np.zeros(rows.shape[:2], np.intp))


def _in_alarm(run: Run) -> int:
    return sum((len(run.values) if over is None else over) - begun for begun, over, _ in run.alarms)


def _drilled(model: Model, windows: Windows, drills: int, seed: int) -> Counts:
    """Answers of drills: each half of the drills is judged by the confidence that the other shows."""
    drilled, trials = drill_trials(model, windows, runs=drills, seed=seed)
    confident, wrong = drilled.counts.confident
    right = sum(answer.right for trial in trials for answer in trial.answers)
    return Counts(float, {"right": right, "confident": confident, "confident, wrong": wrong})


def count_collection(directory: Path, drills: int, seed: int) -> Iterator[tuple[str, Counts]]:
    """The counts of each recording of a collection, or of several."""
    for entity in find_collections(directory).entities:
        task = load_task(entity)
        ours = Ours(task.history, task.rate)
        model, windows = calibrate_with_windows(task.history.source())
        if len(windows.values) >= FEWEST_WINDOWS:
            yield entity.collection, _drilled(model, windows, drills, seed)
        for recording in task.recordings:
            found = outcome_of(entity, task, recording, OURS, ours(recording.readings))
            rows = found.rows - found.incident_rows
            counted = {"windows": rows, "alarms": found.false_alarms, "in alarm": found.alarm_in_quiet}
            hour = task.rows_a_day / 24.0 / max(model.usual_rows, 1.0)
            stretches = _stretches(model, recording, hour)
            yield entity.collection, summed([Counts(float, counted, asked=rows * task.rate), stretches])


def _stretches(model: Model, recording: Labelled, hour: float) -> Counts:
    """What is said of stretches without an incident within an hour; hour: windows."""
    counted, windows = Counts(float), model.prepare(recording.readings.source())
    T, part = len(windows.values), len(windows.values) / len(recording.readings.rows)
    near = np.zeros(T + 1, dtype=bool)
    for start, stop in recording.incidents:
        near[max(0, int(start * part - hour)) : int(stop * part + hour) + 1] = True
    for hours in HOURS:
        length = round(hours * hour)
        starts = [s for s in range(0, T - length, max(length, 1)) if length and not near[s : s + length].any()]
        for place in np.unique(np.linspace(0, len(starts) - 1, min(STRETCHES, len(starts))).astype(int)).tolist():
            first = starts[place]
            part_of = windows.between(windows.starts[first], windows.starts[first + length])
            counted[f"{hours} h: {investigate_incident(model, part_of).verdict}"] += 1
            counted[f"{hours} h, asked"] += length / model.usual_rate
    return counted


def count_example(drills: int, seed: int) -> Counts:
    """Replays that are found in drills on the plant of `eccaht example`."""
    with tempfile.TemporaryDirectory() as place:
        model, windows = calibrate_with_windows(write_example(Path(place), seed)[0])
    cells = drill_trials(model, windows, runs=drills, seed=seed)[0].counts.of_kind("replay")
    drilled, found = (sum(getattr(cell, name) for cell in cells) for name in ("drills", "found"))
    return Counts(float, {"replays": drilled, "replays found": found})


def rows_of(name: str, plants: Sequence[Counts]) -> Iterator[tuple[str, ...]]:
    """The rows of the table for some plants, each with an exact interval of 95 %."""
    every = summed(plants)
    if every["windows"]:
        alarms, asked = int(every["alarms"]), every["asked"]
        low, high = (end / asked for end in poisson_interval(alarms))
        yield (
            name,
            "false alarms, of those asked for",
            f"{alarms} of {asked:.3g}",
            f"{low:.2f} to {high:.2f}",
            "at most 2",
        )
        worst = max(each["in alarm"] / max(each["windows"], 1.0) for each in plants)
        share = every["in alarm"] / every["windows"]
        yield name, "quiet time in alarm", f"{share:.2%}", f"at most {worst:.1%} in one", "at most 3%"
    for hours in HOURS:
        said = [every[f"{hours} h: {verdict}"] for verdict in ("nothing", "undecided", "wrong")]
        yield from _share(name, f'{hours} h without a fault: "nothing"', said[0], sum(said), "at least 95%")
        asked = every[f"{hours} h, asked"]
        wrong = f'{hours} h without a fault: "wrong"; {asked:.2g} false alarms asked for'
        yield from _share(name, wrong, said[2], sum(said), "at most 1%")
    noisy = f"noise {NOISE:g} times as large, found in {WITHIN} windows"
    yield from _share(name, noisy, every["noise found"], every["noise"], "at least 90%")
    yield from _share(name, "replays found in drills", every["replays found"], every["replays"], "at least 60%")
    stated, mistaken = every["confident"], every["confident, wrong"]
    yield from _share(name, "right answers of drills, confident", stated - mistaken, every["right"], "at least 50%")
    yield from _share(name, "confident answers of drills, wrong", mistaken, stated, "at most 5%")


def _share(name: str, what: str, count: float, of: float, wanted: str) -> Iterator[tuple[str, ...]]:
    if of:
        low, high = clopper_pearson(int(count), int(of))
        yield name, what, f"{count:.0f} of {of:.0f}", f"{low:.1%} to {high:.1%}", wanted


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quiet", description=__doc__)
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--plants", type=int, default=PLANTS)
    parser.add_argument("--drills", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    asked = options.drills, options.seed
    found = {"simulated": [count_plant(number, *asked) for number in range(options.plants)]}
    found["example"] = [count_example(*asked)] if options.plants else []
    for directory in options.directories:
        for name, counted in count_collection(directory, *asked):
            found.setdefault(name, []).append(counted)
    print("| data | counted | number | interval | wanted |\n|---|---|---|---|---|")
    for name, plants in found.items():
        for row in rows_of(name, plants):
            print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
