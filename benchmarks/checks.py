"""What checks settle: drills in simulated plants whose answers are not confident, and the checks that they propose.

Faults are drilled as `eccaht drill` does, each half of a history judged by a fit to the other. A check tells whether
the sensor is among the faulty ones. Confidence is fitted to the other half of the drills. docs/measured/plants.md has
the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table
from eccaht.base.statistics import clopper_pearson
from eccaht.plants import calibrate_with_windows
from eccaht.plants.example import write_example
from eccaht.plants.incident.checks import MOST_CHECKS, Known, posterior, proposed
from eccaht.plants.incident.confidence import DrilledConfidence, clues_of, fitted
from eccaht.plants.incident.describe import Courses, gaps_before
from eccaht.plants.incident.faults import MOST_FAULTY
from eccaht.plants.incident.naming import incidents_of
from eccaht.plants.incident.trials import Judge, alarmed_before, first_alarm, halves_of, plans_of, run_plans

RUNS, QUICK_RUNS, PLANTS, AT_ONCE = 1000, 100, 2, 64
ALPHA = 0.05
KINDS = {"short memory": "step", "changing load": "replay"}


class Drill:
    """A fault that was found: its incident, its clues, and which sensors are faulty."""

    def __init__(self, case: Courses, truth: Sequence[int]) -> None:
        found = case.found
        self.case, self.truth, self.right = case, frozenset(truth), found.sensors == frozenset(truth)
        self.clues = clues_of(found.naming, case.kinds, found.weight, case.stop - found.dates.onset)
        self.standing = found.stands_still


def jobs(quick: bool) -> list[Job]:
    """One job a plant."""
    runs = QUICK_RUNS if quick else RUNS
    seeds = range(1 if quick else PLANTS)
    return [
        Job(f"{name}, plant {seed}, {runs} drills", partial(_plant, name, seed, runs))
        for name in KINDS
        for seed in seeds
    ]


def tables(rows: list[Row]) -> list[Table]:
    """One line a kind of plant, and one for the checks that were asked for: one, up to two, up to three."""
    columns = (
        Column("plant", "plants", right=False),
        Column("checks", "checks"),
        Column("undecided", "not confident"),
        Column("proposed", "with checks"),
        Column("decided", "decided"),
        Column("expected", "expected", lambda value: f"{value:.0f}"),
        Column("right", "right"),
        Column("interval", "95 %"),
    )
    return [Table("checks", "Answers that are not confident, after checks", columns, [*_lines(rows)])]


def _lines(rows: list[Row]) -> Iterator[Row]:
    for name in KINDS:
        total = Counter[str]()
        for row in rows:
            if row["plant"] == name:
                total += Counter({key: value for key, value in row.items() if key not in ("plant", "seed")})
        for number in range(1, MOST_CHECKS + 1):
            decided, right = total[f"decided {number}"], total[f"right {number}"]
            low, high = clopper_pearson(right, decided) if decided else (0.0, 1.0)
            shown = {"decided": decided, "right": right, "interval": f"{low:.2f} to {high:.2f}"}
            yield {"plant": name, "checks": number, "expected": total[f"expected {number}"], **shown} | {
                "undecided": total["undecided"],
                "proposed": total["proposed"],
            }


def _plant(name: str, seed: int, runs: int) -> list[Row]:
    with TemporaryDirectory() as directory:
        history = write_example(Path(directory), seed, KINDS[name])[0]
        model, windows = calibrate_with_windows(history)
    judges = halves_of(windows.values, gaps_before(windows), model.longest_gaps)
    drills = [drill for j, judge in enumerate(judges) for drill in _drilled(judge, range(j, runs, 2), seed)]
    counted = Counter[str]()
    for half in (0, 1):
        parts = [
            fitted([drill.clues for drill in of], [drill.right for drill in of])
            for of in _groups(drills[1 - half :: 2])
        ]
        for drill in drills[half::2]:
            counted += _counts(drill, parts[drill.standing])
    return [{"plant": name, "seed": seed, **counted}]


def _groups(drills: Sequence[Drill]) -> Iterator[list[Drill]]:
    for standing in (False, True):
        yield [drill for drill in drills if drill.standing == standing]


def _drilled(judge: Judge, numbers: Sequence[int], seed: int) -> Iterator[Drill]:
    for first in range(0, len(numbers), AT_ONCE):
        plans = plans_of(judge, numbers[first : first + AT_ONCE], seed)
        for run, plan in zip(run_plans(judge, judge_every(judge), plans), plans, strict=True):
            if alarmed_before(run, plan) or first_alarm(run, plan) is None:
                continue
            stop = len(run.values)
            overlapping = [
                each
                for each in incidents_of(judge.normal, run)
                if each.dates.onset < plan.latest
                and (stop if each.dates.end is None else each.dates.end) > plan.start
                and len(each.sensors) <= MOST_FAULTY
            ]
            if overlapping:
                found = max(overlapping, key=lambda each: each.weight)
                yield Drill(Courses(judge.normal, run, found), plan.fault.sensors)


def judge_every(judge: Judge) -> float:
    return 3.0 * 2 * len(judge.values)


def _counts(drill: Drill, part: DrilledConfidence | None) -> Counter[str]:
    found = Counter(found=1)
    confidence = None if part is None else part.counted(drill.clues)
    if confidence is None:
        return found
    if confidence >= 1.0 - ALPHA:
        return found + Counter(confident=1, wrong=int(not drill.right))
    found += Counter(undecided=1, undecided_right=int(drill.right))
    known, candidates, expected = Known(), posterior(drill.case, confidence), 0.0
    checks = proposed(candidates, ALPHA)
    found += Counter(proposed=int(len(checks) > 0))
    for number in range(1, MOST_CHECKS + 1):
        if number <= len(checks):
            k, expected = checks[number - 1]
            wrong = frozenset({k}) & drill.truth
            known = Known(known.sound | ({k} - wrong), known.wrong | wrong)
            candidates = posterior(drill.case, confidence, known)
        best, share = next(iter(candidates.items()))
        found += Counter({f"expected {number}": expected})
        if share >= 1.0 - ALPHA:
            found += Counter({f"decided {number}": 1, f"right {number}": int(best == drill.truth)})
    return found
