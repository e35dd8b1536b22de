"""`python -m benchmarks.tuning DIR... --out OUT`: halve and double each number of `Tuning`, and count on collections.

Each count runs by itself and is kept in OUT, so that what was interrupted goes on. The table has a row for each number
and factor, with what changes beside the usual numbers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from eccaht.plants import tuning

FACTORS = (0.5, 2.0)
MEASURES = {  # of each kind of collection
    "batadal": ("S",),
    "skab": ("f1", "false_alarm_rate"),
    "servers": ("begun", "false_alarms_a_day"),
    "tep": ("flagged_mean", "flagged_normal_test"),
}
Counted = dict[str, float | None]


def changed(name: str, factor: float) -> float:
    """The number times the factor; whole numbers stay whole and at least 1, and the window of levels odd."""
    usual = getattr(tuning.TUNING, name)
    value = usual * factor
    if isinstance(usual, int):
        value = max(int(value), 1)
    return value | 1 if name == "level_windows" else value


def count(directories: Sequence[Path], name: str, factor: float) -> Counted:
    """Count all collections with one number changed, which must happen before the engine is imported."""
    if name:
        values: dict[str, Any] = {name: changed(name, factor)}
        tuning.TUNING = replace(tuning.TUNING, **values)
    from eccaht.research.datasets.labelled import find_collections
    from eccaht.research.experiments.detection import Ours, load_task, outcome_of
    from eccaht.research.experiments.detection_outcomes import measures
    from eccaht.research.experiments.incidents_cases import OURS

    counted: Counted = {}
    for directory in directories:
        found, outcomes = find_collections(directory), []
        for entity in found.entities:
            task = load_task(entity)
            watcher = Ours(task.history, task.rate)
            outcomes += [outcome_of(entity, task, each, OURS, watcher(each.readings)) for each in task.recordings]
        found_measures = measures(outcomes)
        for measure in MEASURES[outcomes[0].kind]:
            counted[f"{directory.name} {measure}"] = found_measures.get(measure)
    return counted


def kept(out: Path, directories: Sequence[Path], name: str, factor: float) -> Counted | str:
    """What was counted before, or is counted now by a process of its own; a text where the number is refused."""
    path = out / (f"{name}-{factor:g}.json" if name else "usual.json")
    if not path.exists():
        command = [sys.executable, "-m", "benchmarks.tuning", *map(str, directories), "--one", name, str(factor)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
        path.write_text(lines[-1] if done.returncode == 0 else json.dumps(lines[-1] if lines else "failed"))
    known: Counted | str = json.loads(path.read_text())
    return known


def rows(out: Path, directories: Sequence[Path], names: Sequence[str]) -> Iterator[list[str]]:
    usual = kept(out, directories, "", 1.0)
    assert not isinstance(usual, str), usual
    yield ["number", "value", *usual]
    yield ["(usual)", "", *(_shown(value) for value in usual.values())]
    for name in names:
        for factor in FACTORS:
            counted, value = kept(out, directories, name, factor), f"{changed(name, factor):g}"
            if isinstance(counted, str):
                yield [name, value, counted, *[""] * (len(usual) - 1)]
                continue
            pairs = [(counted[measure], usual[measure]) for measure in usual]
            yield [name, value, *("=" if new == old else _shown(new) for new, old in pairs)]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--out", type=Path, default=Path("tuning"))
    parser.add_argument("--only", nargs="+", metavar="NUMBER", help="some of the numbers")
    parser.add_argument("--one", nargs=2, metavar=("NUMBER", "FACTOR"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(count(options.directories, options.one[0], float(options.one[1]))))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.only or [field.name for field in fields(tuning.Tuning)]
    lines = []
    for place, row in enumerate(rows(options.out, options.directories, names)):
        lines.append(f"| {' | '.join(row)} |" + ("\n" + "|---" * len(row) + "|" if place == 0 else ""))
        print(lines[-1], flush=True)
    (options.out / "tuning.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
