"""What drills counted: right sets, sensors found, sure answers that were wrong, alarms in quiet stretches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from eccaht.archive import check_keys
from eccaht.arrays import as_count, as_number, check_alpha
from eccaht.incident.drilling import Drill
from eccaht.incident.faults import KINDS, LARGEST, SIZED, SMALLEST
from eccaht.incident.promise import Promise
from eccaht.presentation.text import counted, percent, rounded
from eccaht.statistics import chance_of_as_many, clopper_pearson

BINS = ((SMALLEST, 2.0), (2.0, 3.0), (3.0, 5.0), (5.0, LARGEST))  # sizes of faults, robust units
HEADINGS = ("fault", "size", "drilled", "sets right", "sensors found", "share", "95 % interval")
SIGNIFICANCE = 0.05  # of the test whether the promise holds
_MOST = 10**9  # of anything counted: a file with more is damaged
_TALLY = 4  # numbers of a cell
ALL = "all"
_WHOLE = ("sure", "sure_and_wrong", "falsely_named", "quiet", "alarms", "quiet_windows")
LAYOUT = tuple((kind, *sizes) for kind in KINDS for sizes in (BINS if kind in SIZED else ((0.0, 0.0),)))


class Cell(NamedTuple):
    """Drills of one kind and range of sizes: how many, sets right, faulty sensors and how many of them were found.

    low, high: robust units, 0 for all sizes or a kind without.
    """

    kind: str
    low: float
    high: float
    faults: int
    right: int
    present: int
    found: int

    @property
    def share(self) -> float | None:
        """The share of the faulty sensors that was found; None without drills."""
        return self.found / self.present if self.present else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its 95 % interval (Clopper-Pearson), as if sensors that fail together were found one by one."""
        return clopper_pearson(self.found, self.present) if self.present else None

    def row(self) -> tuple[str, ...]:
        """The cell as a line of the table."""
        sizes = f"{self.low:g}-{self.high:g}" if self.high else ""
        counts = (str(self.faults), str(self.right), f"{self.found}/{self.present}")
        if self.share is None or self.interval is None:
            return self.kind, sizes, *counts, "-", "-"
        low, high = self.interval
        return self.kind, sizes, *counts, f"{self.share:.2f}", f"{low:.2f} to {high:.2f}"


@dataclass(frozen=True)
class Counts:
    """What was counted on drills that nothing was fitted to.

    alpha: the promise: sure answers, those with a confidence of at least 1 - alpha, are wrong at most so often.
    factor: on the evidence, which makes confidences honest: the one that is kept, fitted to all drills.
    sure, sure_and_wrong: of all drills, quiet ones included. falsely_named: sensors named beside the faulty ones.
    quiet, alarms, quiet_windows: stretches without a fault, alarms in them, and their windows.
    cells: faults by kind and size, one a range of sizes for kinds that have some.
    """

    alpha: float
    factor: float
    sure: int
    sure_and_wrong: int
    falsely_named: int
    quiet: int
    alarms: int
    quiet_windows: int
    cells: tuple[Cell, ...]

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        if not 0.0 < as_number(self.factor, "factor") <= 1.0:
            raise ValueError(f"the factor on the evidence must lie between 0 and 1, not {self.factor!r}")
        for name in _WHOLE:
            checked_number(getattr(self, name), name.replace("_", " "))
        if tuple(cell[:3] for cell in self.cells) != LAYOUT:
            raise ValueError("the counts must have a cell for each kind and range of sizes")
        for cell in self.cells:
            faults, right, present, found = (checked_number(number, "a count") for number in cell[3:])
            if not (right <= faults <= present and right <= found <= present):  # a fault has at least one sensor
                raise ValueError(f"the counts of {cell.kind} do not agree with each other")
        wrong = min(self.sure, self.faults - self.right + self.quiet)
        good = self.sure <= self.faults + self.quiet and self.sure_and_wrong <= wrong
        if not good or self.alarms > self.quiet or self.quiet > self.quiet_windows:
            raise ValueError("the counts do not agree with each other")

    @property
    def faults(self) -> int:
        """Faults drilled."""
        return sum(cell.faults for cell in self.cells)

    @property
    def right(self) -> int:
        """Faults of which exactly the faulty sensors were named."""
        return sum(cell.right for cell in self.cells)

    @property
    def present(self) -> int:
        """Faulty sensors in all drills."""
        return sum(cell.present for cell in self.cells)

    @property
    def found(self) -> int:
        """Faulty sensors that were named."""
        return sum(cell.found for cell in self.cells)

    @property
    def holds(self) -> bool:
        """Whether so many sure answers are wrong as the promise allows, but for chance (one-sided test at 5 %)."""
        return not self.sure or chance_of_as_many(self.sure_and_wrong, self.sure, self.alpha) >= SIGNIFICANCE

    def of_kind(self, kind: str) -> Cell:
        """All faults of a kind, whatever their size; of kind "all", all of them."""
        chosen = [cell for cell in self.cells if kind in (cell.kind, ALL)]
        return Cell(kind, 0.0, 0.0, *(sum(numbers) for numbers in zip(*(cell[3:] for cell in chosen), strict=True)))

    def line(self, seconds: float | None) -> str:
        """What was counted in one line; seconds: length of a window, None where windows have none."""
        sets = f"{counted(self.faults, 'fault')} drilled, {counted(self.right, 'set')} right"
        if not self.sure:
            sure = "no answer sure"
        else:
            share = percent(self.sure_and_wrong / self.sure)
            sure = f"{self.sure_and_wrong} of {counted(self.sure, 'sure answer')} wrong ({share})"
        unit = "window" if seconds is None else "hour"
        time = self.quiet_windows if seconds is None else self.quiet_windows * seconds / 3600.0
        quiet = f"{counted(self.alarms, 'alarm')} in {_amount(time)} quiet {unit}{'' if time == 1 else 's'}"
        return f"On your own history: {sets}, {sure}; {quiet}"

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The table: each kind and range of sizes, then all faults together; HEADINGS stand above it."""
        for kind in KINDS:
            yield from (cell.row() for cell in self.cells if cell.kind == kind)
        yield self.of_kind(ALL).row()

    def header(self) -> dict[str, Any]:
        """The counts as plain numbers, for a file."""
        numbers: dict[str, Any] = {name: getattr(self, name) for name in _WHOLE}
        return {"alpha": self.alpha, "factor": self.factor, **numbers, "cells": [list(cell[3:]) for cell in self.cells]}

    @staticmethod
    def build(header: Any) -> Counts:
        """The counts that `header` describes, which a stranger may have written."""
        check_keys(header, {field.name for field in fields(Counts)}, "counts of drills")
        cells = header["cells"]
        good = isinstance(cells, list) and len(cells) == len(LAYOUT)
        if not good or not all(isinstance(numbers, list) and len(numbers) == _TALLY for numbers in cells):
            raise ValueError("its counts of drills are damaged")
        built = tuple(Cell(*place, *numbers) for place, numbers in zip(LAYOUT, cells, strict=True))
        return Counts(**{**header, "cells": built})


def count(drills: Sequence[Drill], promise: Promise, alpha: float) -> Counts:
    """Count the drills whose part is "count", which the promise was not fitted to."""
    counted_on = [drill for drill in drills if drill.part == "count"]
    quiet, faulty = ([drill for drill in counted_on if drill.quiet is wanted] for wanted in (True, False))
    sure = [drill for drill in counted_on if promise.confidence(drill) >= 1.0 - check_alpha(alpha)]
    return Counts(
        alpha=alpha,
        factor=promise.factor,
        sure=len(sure),
        sure_and_wrong=sum(not drill.right for drill in sure),
        falsely_named=sum(drill.falsely_named for drill in faulty),
        quiet=len(quiet),
        alarms=sum(drill.alarm for drill in quiet),
        quiet_windows=sum(drill.length for drill in quiet),
        cells=tuple(_cell(place, faulty) for place in LAYOUT),
    )


def _cell(place: tuple[str, float, float], drills: Sequence[Drill]) -> Cell:
    inside = [drill for drill in drills if belongs(drill.kind, drill.size, place)]
    right, present = sum(d.right for d in inside), sum(len(d.sensors) for d in inside)
    return Cell(*place, len(inside), right, present, sum(d.found for d in inside))


def belongs(kind: str, size: float, place: tuple[str, float, float]) -> bool:
    """Whether a fault is counted in this cell of LAYOUT; the largest size belongs to the last range."""
    return kind == place[0] and (place[1] <= size < place[2] or size == place[2] in (0.0, LARGEST))


def checked_number(number: Any, what: str) -> int:
    """A count that a file may hold."""
    if as_count(number, what, least=0) > _MOST:
        raise ValueError(f"{what} must be at most {_MOST}")
    return int(number)


def _amount(number: float) -> str:
    """A length of time with two digits at least, so that a short one is not shown as none."""
    return rounded(number) if number >= 1.0 else f"{number:.2g}"
