"""The counts of drills: faults found, how soon, how well dated and named, and alarms while nothing was wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from eccaht.base.archive import check_keys
from eccaht.base.arrays import as_count, as_number
from eccaht.base.presentation.text import counted, percent
from eccaht.base.statistics import clopper_pearson
from eccaht.plants.incident.faults import KINDS, LARGEST, SIZED, SMALLEST
from eccaht.plants.incident.trials import Quiet, Trial

BANDS = ((SMALLEST, 2.0), (2.0, 5.0), (5.0, LARGEST))  # of sizes, in robust units
HEADINGS = ("fault", "size", "drills", "found", "delay", "right set", "onset within 2", "end within 5", "sure", "wrong")
AT_ALARM = "right set at alarm"  # heading of a further column for a watch
NEAR_ONSET, NEAR_END = 2, 5  # windows
MOST = 10**9  # drills or windows that a file may hold


class Cell(NamedTuple):
    """Drills of one kind and band of sizes: counts, and the median delay in windows of those found.

    right, at_alarm: those whose set was exactly right, with hindsight and at the alarm. onset, end: those that were
    dated within NEAR_ONSET and NEAR_END windows. named: faulty sensors that were named, of `sensors`. sure, wrong:
    confident answers, of all incidents that were reported, and how many of them were not right.
    """

    kind: str
    low: float
    high: float
    drills: int
    found: int
    right: int
    at_alarm: int
    onset: int
    end: int
    sensors: int
    named: int
    sure: int
    wrong: int
    delay: float

    @property
    def share(self) -> float:
        return self.found / self.drills if self.drills else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return clopper_pearson(self.found, self.drills) if self.drills else (0.0, 1.0)


@dataclass(frozen=True)
class Counts:
    """All drills of a history. quiet: its windows without a fault. every: windows to a false alarm, as asked for."""

    cells: tuple[Cell, ...]
    quiet: Quiet
    every: float
    alpha: float

    @staticmethod
    def of(
        trials: Sequence[Trial],
        quiet: Quiet,
        every: float,
        alpha: float,
        confidences: Sequence[Sequence[float | None]] = (),
    ) -> Counts:
        """Count trials; confidences: of the answers of each, None where there is none."""
        given = confidences or [()] * len(trials)
        places = [(kind, low, high) for kind in KINDS for low, high in (BANDS if kind in SIZED else ((0.0, 0.0),))]
        cells = []
        for place in places:
            inside = [k for k, trial in enumerate(trials) if _belongs(trial, place)]
            cells.append(_cell(place, [trials[k] for k in inside], [given[k] for k in inside], alpha))
        return Counts(tuple(cell for cell in cells if cell.drills), quiet, every, alpha)

    def total(self, name: str) -> int:
        """The sum of a count over all cells."""
        return sum(int(getattr(cell, name)) for cell in self.cells)

    @property
    def drills(self) -> int:
        return self.total("drills")

    @property
    def found_share(self) -> float | None:
        """Of all faults that were found, None without drills."""
        return self.total("found") / self.drills if self.drills else None

    @property
    def sure(self) -> tuple[int, int]:
        """Confident answers, and how many of them were wrong."""
        return self.total("sure"), self.total("wrong")

    @property
    def holds(self) -> bool:
        """Whether confident answers were wrong no more often than alpha says, but for chance."""
        sure, wrong = self.sure
        return not sure or clopper_pearson(wrong, sure)[0] <= self.alpha

    @property
    def false_alarms(self) -> tuple[int, float]:
        """Alarms in the history, and how many were asked for at most."""
        return self.quiet.alarms, self.quiet.windows / self.every

    def of_kind(self, kind: str) -> tuple[Cell, ...]:
        """The cells of a kind, small sizes first."""
        return tuple(cell for cell in self.cells if cell.kind == kind)

    @property
    def share_in_alarm(self) -> float:
        return self.quiet.in_alarm / self.quiet.windows if self.quiet.windows else 0.0

    def line(self, seconds: float | None) -> str:
        """One line for people; seconds: length of a window, None where rows have no times."""
        sure, wrong = self.sure
        alarms, asked = self.false_alarms
        hours = "" if seconds is None else f"{self.quiet.windows * seconds / 3600.0:.3g} hours"
        said = f"{wrong} of {sure} confident answers wrong" if sure else "no answer confident"
        return (
            f"On your own history: {self.drills} faults drilled, {self.total('found')} found, {self.total('right')} "
            f"sets right, {said}; {counted(alarms, 'false alarm')} in {hours or counted(self.quiet.windows, 'window')} "
            f"without a fault ({asked:.2g} expected), {percent(self.share_in_alarm)} of the time in alarm"
        )

    def rows(self, *, at_alarm: bool = False) -> Iterator[tuple[str, ...]]:
        """The table, a row a cell; at_alarm: with a column more."""
        for cell in self.cells:
            size = "" if cell.high == 0.0 else f"{cell.low:g}-{cell.high:g}"
            delay = "" if not cell.found else f"{cell.delay:g}"
            shares = [_percent(count, cell.found) for count in (cell.right, cell.onset, cell.end)]
            start = (cell.kind, size, str(cell.drills), _percent(cell.found, cell.drills), delay)
            end = (_percent(cell.at_alarm, cell.found),) if at_alarm else ()
            yield (*start, *shares, str(cell.sure), str(cell.wrong), *end)

    def header(self) -> dict[str, Any]:
        quiet = [self.quiet.windows, self.quiet.alarms, self.quiet.in_alarm]
        return {"cells": [list(cell) for cell in self.cells], "quiet": quiet, "every": self.every, "alpha": self.alpha}

    @staticmethod
    def build(header: Any) -> Counts:
        """From what `header` gave; whatever is not counts is refused."""
        check_keys(header, {"cells", "quiet", "every", "alpha"}, "counts of drills")
        cells, quiet = header["cells"], header["quiet"]
        if not isinstance(cells, list) or not isinstance(quiet, list) or len(quiet) != 3:
            raise ValueError("its counts of drills are damaged")
        windows, alarms, on = (as_count(number, "a count of quiet windows", least=0) for number in quiet)
        every, alpha = (as_number(header[name], f"{name} in the counts of drills") for name in ("every", "alpha"))
        built = tuple(map(_built, cells))
        good = max(alarms, on) <= windows <= MOST and 1.0 <= every <= 1e15 and 0.0 < alpha < 1.0
        if not good or len({cell[:2] for cell in built}) != len(built):
            raise ValueError("its counts of drills are damaged")
        return Counts(built, Quiet(windows, alarms, on), every, alpha)


def _belongs(trial: Trial, place: tuple[str, float, float]) -> bool:
    kind, low, high = place
    return trial.kind == kind and (high == 0.0 or low <= trial.size < high or trial.size == high == LARGEST)


def _cell(
    place: tuple[str, float, float],
    trials: Sequence[Trial],
    confidences: Sequence[Sequence[float | None]],
    alpha: float,
) -> Cell:
    found = [trial for trial in trials if trial.found]
    sure = [
        answer
        for trial, given in zip(trials, confidences, strict=True)
        for answer, confidence in zip(trial.answers, given, strict=False)
        if confidence is not None and confidence >= 1.0 - alpha
    ]
    delays = [trial.delay for trial in found if trial.delay is not None]
    return Cell(
        *place,
        drills=len(trials),
        found=len(found),
        right=sum(trial.right for trial in found),
        at_alarm=sum(trial.right_at_alarm for trial in found),
        onset=sum(_near(trial.onset_error, NEAR_ONSET) for trial in found),
        end=sum(_near(trial.end_error, NEAR_END) for trial in found),
        sensors=sum(len(trial.truth) for trial in trials),
        named=sum(len(set(trial.named) & set(trial.truth)) for trial in found),
        sure=len(sure),
        wrong=sum(not answer.right for answer in sure),
        delay=float(np.median(delays)) if delays else 0.0,
    )


def _near(error: int | None, windows: int) -> bool:
    return error is not None and abs(error) <= windows


def _built(numbers: Any) -> Cell:
    if not isinstance(numbers, list) or len(numbers) != len(Cell._fields):
        raise ValueError("its counts of drills are damaged")
    kind, low, high, *counts, delay = numbers
    sizes = [as_number(size, "a size in the counts of drills") for size in (low, high)]
    whole = [as_count(count, "a count of drills", least=0) for count in counts]
    cell = Cell._make([kind, *sizes, *whole, as_number(delay, "a delay in the counts of drills")])
    known = kind in KINDS and ((low, high) in BANDS if kind in SIZED else not any(sizes))
    good = cell.found <= cell.drills <= MOST and max(cell.right, cell.at_alarm, cell.onset, cell.end) <= cell.found
    good = good and cell.wrong <= cell.sure <= MOST and cell.named <= cell.sensors <= MOST
    if not known or not good or not 0.0 <= cell.delay <= MOST:
        raise ValueError("its counts of drills are damaged")
    return cell


def _percent(count: int, of: int) -> str:
    return f"{100 * count / of:.0f} %" if of else ""
