"""WaDi: how soon the attacked points are named (fig4a), and two whole pipelines by the clock (fig4b).

The model is the paper's: history of normal operation, one-minute windows, empirical covariance + 1e-6 I, shift 1,
budget 5. Each attack is replayed window by window, one measurement each, until its end; a search that has not named
the attacked points by then is censored there. Whether the points are named is judged by the truth, as in the
paper, not by a stopping rule. Runs differ in the policies' own randomness only; the data are the same.

Points that cleaning dropped, because they never moved in the history, cannot be named. An attack counts with the
points that are left, and is left out if none is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from eccaht.base.arrays import as_count, as_positive
from eccaht.plants import Model, Windows, calibrate
from eccaht.research.datasets.wadi import (
    Attack,
    Matched,
    WadiFiles,
    check_beginning,
    clock,
    match_points,
    not_sensors,
    whole_windows,
)
from eccaht.research.experiments.comparison import Records
from eccaht.research.experiments.localisation import BLIND, RecordedSearch, check_reach, localise, recorded_search
from eccaht.research.experiments.tables import Table, from_rows

POLICIES = (
    *("ecc-aht", "diagonal", "ttts-challenger", "random-sparse"),
    *("simple-difference", "base-arm-combgape", "round-robin"),
)


@dataclass(frozen=True)
class WadiSettings:
    """What the paper fixes, and how often to repeat it."""

    shift: float = 1.0
    budget: float = 5.0
    window: float = 60.0
    runs: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        as_count(self.runs, "runs", least=1)
        as_positive(self.shift, "shift")
        check_reach(self.shift, self.budget)
        if as_positive(self.window, "window") < 1.0:
            raise ValueError("a window shorter than a second holds no row of WaDi: give at least 1s")


@dataclass(frozen=True)
class Prepared:
    """An attack as it can be searched for: columns of its points, and why others have none."""

    attack: Attack
    columns: tuple[str, ...]
    unmatched: Mapping[str, str]

    @property
    def label(self) -> str:
        return f"attack {self.attack.number}"

    @property
    def without(self) -> str:
        return "; ".join(f"{point}: {why}" for point, why in self.unmatched.items())


def build_model(
    files: WadiFiles, settings: WadiSettings, *, progress: Callable[[float, str], object] | None = None
) -> Model:
    """Calibrate on the history, rows counted as seconds."""
    check_beginning(files)
    return calibrate(
        files.history_rows,
        exclude=not_sensors(files.history_rows),
        row_interval=1.0,
        window=settings.window,
        estimator="empirical",
        progress=progress,
    )


def attack_windows(model: Model, files: WadiFiles, *, seconds: float | None = None) -> Windows:
    """The attack data, scaled as the model scales, in its windows or in windows of another length."""
    own = model if seconds is None else replace(model, seconds=seconds)
    return own.prepare(files.attack_rows, missing="allow")


def prepare_attacks(model: Model, attacks: Sequence[Attack]) -> list[Prepared]:
    dropped = {column.name: column.reason for column in model.columns if not column.kept}
    prepared = []
    for attack in attacks:
        found = match_points(attack.points, model.names)
        prepared.append(Prepared(attack, found.columns, _explained(found, dropped)))
    return prepared


def _explained(found: Matched, dropped: Mapping[str, str]) -> dict[str, str]:
    """Say of a point whose column was dropped that it was, and why."""
    reasons = {}
    for point, why in found.unmatched.items():
        columns = match_points([point], list(dropped)).columns
        reasons[point] = f"{columns[0]} was dropped: {dropped[columns[0]]} in the history" if columns else why
    return reasons


@dataclass(frozen=True)
class Fig4a:
    records: dict[str, Records]
    left_out: dict[str, str]


def run_fig4a(
    model: Model,
    windows: Windows,
    prepared: Sequence[Prepared],
    names: Sequence[str],
    settings: WadiSettings,
    *,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
) -> Fig4a:
    """Replay every attack; `progress(n)` is called with the number of searches finished."""
    searches, left_out = _searches(model, windows, prepared, settings)
    if not searches:
        label, why = next(iter(left_out.items()))
        raise ValueError(f"no attack can be searched for: {label} because {why}")
    return Fig4a(localise(searches, names, seed=settings.seed, jobs=jobs, progress=progress), left_out)


def _searches(
    model: Model, windows: Windows, prepared: Sequence[Prepared], settings: WadiSettings
) -> tuple[dict[str, list[RecordedSearch]], dict[str, str]]:
    """The searches of each attack in its whole windows, one a run, and why others have none."""
    searches, left_out = {}, {}
    for each in prepared:
        rows = windows.values[whole_windows(each.attack, clock(windows.starts), windows.seconds)]
        if not each.columns or not len(rows):
            left_out[each.label] = "no whole window of the data lies within it" if each.columns else each.without
            continue
        truth = np.sort(model.places(each.columns))
        searches[each.label] = [recorded_search(model, rows, truth, settings.shift, settings.budget)] * settings.runs
    return searches, left_out


class Timed(NamedTuple):
    """Seconds from the beginning of an attack to the end of the window that names its points, one value a run.

    None where a run never does.
    """

    attack: str
    pipeline: str
    first: list[float | None]
    for_good: list[float | None]
    limit: float  # what a run that never gets there counts as: the end of the last window


def run_fig4b(
    model: Model,
    windows: Mapping[str, Windows],
    prepared: Sequence[Prepared],
    settings: WadiSettings,
    *,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
) -> list[Timed]:
    """Both pipelines on every attack; windows by pipeline.

    CombGapE knows no correlation; it is given the variances of the one-minute windows.
    """
    timed = []
    for name, own in windows.items():
        searches, _ = _searches(model, own, prepared, settings)
        method = name + BLIND * (name == "combgape")
        records = localise(searches, [method], seed=settings.seed, jobs=jobs, progress=progress) if searches else {}
        for attack in (each for each in prepared if each.label in records):
            found, wait = records[attack.label], _wait(attack.attack, own)
            first, for_good = (
                [None if time is None else wait + time * own.seconds for time in times]
                for times in found.arrivals(method)[:2]
            )
            limit = wait + own.seconds * found.hits[method].shape[1]
            timed.append(Timed(attack.label, name, first, for_good, limit))
    return timed


def _wait(attack: Attack, windows: Windows) -> float:
    """Seconds from the beginning of the attack to that of its first whole window."""
    starts = clock(windows.starts)
    first = starts[whole_windows(attack, starts, windows.seconds)[0]]
    return float((first - np.datetime64(attack.start, "us")) / np.timedelta64(1, "s"))


def pipeline_table(timed: Sequence[Timed]) -> Table:
    """One row for each attack and pipeline; a run that never gets there counts as the limit."""
    rows = [
        {
            "attack": each.attack,
            "pipeline": each.pipeline,
            "first_seconds": mean_seconds(each.first, each.limit),
            "first_censored": each.first.count(None),
            "for_good_seconds": mean_seconds(each.for_good, each.limit),
            "for_good_censored": each.for_good.count(None),
            "limit_seconds": each.limit,
            "runs": len(each.first),
        }
        for each in timed
    ]
    return from_rows(rows)


def mean_seconds(times: Sequence[float | None], limit: float) -> float:
    return float(np.mean([limit if time is None else time for time in times]))


def column_table(model: Model) -> Table:
    return from_rows([column.as_dict() for column in model.columns])


def attack_table(prepared: Sequence[Prepared]) -> Table:
    rows = [
        {
            "number": each.attack.number,
            "start": each.attack.start.isoformat(),
            "end": each.attack.end.isoformat(),
            "points": ";".join(each.attack.points),
            "columns": ";".join(each.columns),
            "n": len(each.columns),
            "unmatched": each.without,
        }
        for each in prepared
    ]
    return from_rows(rows)
