"""What drills of a watch counted: alarms in quiet windows beside the promise, faults found, how soon, sensors named."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from eccaht.archive import check_keys
from eccaht.arrays import as_count, as_number
from eccaht.incident.counts import ALL, LAYOUT, SIGNIFICANCE, belongs, checked_number
from eccaht.incident.drilling import LENGTHS
from eccaht.statistics import chance_of_as_many_events, clopper_pearson, garwood
from eccaht.watch.drill import MOST_RUNS, WatchDrill, WatchDrilled, Watched
from eccaht.watch.drill_confidence import NamedSet

_LARGEST_WANDER = 1e6  # robust units


class QuietCounts(NamedTuple):
    """Quiet windows: how many were watched, in how many of them no alarm was on, and the alarms by their basis."""

    windows: int
    free: int
    evidence: int
    stuck: int
    silent: int

    @staticmethod
    def of(watched: Watched) -> QuietCounts:
        """Count the alarms of a watch."""
        bases = [alarm.basis for alarm in watched.alarms]
        return QuietCounts(watched.windows, watched.free, *(bases.count(b) for b in ("evidence", "stuck", "silent")))

    @property
    def alarms(self) -> int:
        """All of them."""
        return self.evidence + self.standing

    @property
    def standing(self) -> int:
        """Those of sensors that are stuck or silent."""
        return self.stuck + self.silent

    def promised(self, every: float) -> float:
        """How many alarms on evidence were promised at most in the mean; every: windows to a false alarm."""
        return self.free / every

    def keeps(self, every: float) -> bool:
        """Whether there are no more alarms on evidence than promised, but for chance (one-sided test at 5 %)."""
        return chance_of_as_many_events(self.evidence, self.promised(every)) >= SIGNIFICANCE

    def rate(self, count: int, length: float = 1.0) -> float | None:
        """Alarms in so many free windows; None if no window was free."""
        return count * length / self.free if self.free else None

    def interval(self, count: int, length: float = 1.0) -> tuple[float, float] | None:
        """The 95 % interval of that rate (Garwood)."""
        low, high = garwood(count)
        return (low * length / self.free, high * length / self.free) if self.free else None


class Naming(NamedTuple):
    """Sets that were named: how many, exactly right ones; faulty sensors, those named, those named with the right kind,
    and sound sensors that were named."""

    sets: int = 0
    right: int = 0
    faulty: int = 0
    named: int = 0
    kinds: int = 0
    falsely: int = 0

    @staticmethod
    def of(named: Iterable[tuple[WatchDrill, NamedSet]]) -> Naming:
        """Count what was named in drills."""
        return _together(map(_naming, named))

    def __bool__(self) -> bool:
        """Whether there was any."""
        return self.sets > 0


def _naming(of: tuple[WatchDrill, NamedSet]) -> Naming:
    drill, named = of
    sensors, kinds, faulty = named.sensors, named.kinds, set(drill.sensors)
    told = sum(k in faulty and kind == drill.kind for k, kind in zip(sensors, kinds, strict=True))
    hits = len(faulty & set(sensors))
    return Naming(1, int(drill.right(named)), len(faulty), hits, told, len(sensors) - hits)


def _together(namings: Iterable[Naming]) -> Naming:
    return Naming(*(sum(numbers) for numbers in zip(Naming(), *namings, strict=True)))


class WatchCell(NamedTuple):
    """Faults of one kind and range of sizes: how many, and the windows that each one found took, ascending.

    low, high: robust units, 0 for all sizes or a kind without. raised, settled: what the first alarm named, and what
    was named `drill.SETTLED` windows later.
    """

    kind: str
    low: float
    high: float
    faults: int
    delays: tuple[int, ...]
    raised: Naming
    settled: Naming

    @property
    def found(self) -> int:
        """How many were found."""
        return len(self.delays)

    @property
    def share(self) -> float | None:
        """Which share; None without faults."""
        return self.found / self.faults if self.faults else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its 95 % interval (Clopper-Pearson)."""
        return clopper_pearson(self.found, self.faults) if self.faults else None

    def within(self, windows: int) -> int:
        """How many were found within so many windows."""
        return sum(delay <= windows for delay in self.delays)

    def delay(self, share: float) -> int | None:
        """Within how many windows this share of those found was found; None if none was."""
        return self.delays[max(math.ceil(share * self.found - 1e-9), 1) - 1] if self.delays else None


@dataclass(frozen=True)
class WatchCounts:
    """What was counted.

    every: the promised mean time to a false alarm, windows. stretch: windows for which each fault was watched.
    quiet: windows without a fault. left_out: faults that could not begin or not show. cells: faults by kind and size.
    wandering: quiet windows whose levels wander otherwise; wander: by how much, robust units; wander_faults,
    wander_found: steps there.
    """

    every: float
    stretch: int
    quiet: QuietCounts
    left_out: int
    cells: tuple[WatchCell, ...]
    wandering: QuietCounts
    wander: float
    wander_faults: int
    wander_found: int

    def __post_init__(self) -> None:
        if as_number(self.every, "every") < 1.0:
            raise ValueError(f"the counts must be of a promise of at least one window, not {self.every!r}")
        if as_count(self.stretch, "stretch", least=1) > max(LENGTHS):
            raise ValueError(f"the counts must be of stretches of at most {max(LENGTHS)} windows")
        if not 0.0 <= as_number(self.wander, "wander") <= _LARGEST_WANDER:
            raise ValueError("the counts must be of a wander of a plausible size")
        for quiet in (self.quiet, self.wandering):
            _check_quiet(quiet)
        for number in (self.left_out, self.wander_faults, self.wander_found):
            checked_number(number, "a count")
        if tuple(cell[:3] for cell in self.cells) != LAYOUT:
            raise ValueError("the counts must have a cell for each kind and range of sizes")
        for cell in self.cells:
            _check_cell(cell, self.stretch)
        if self.wander_found > self.wander_faults or max(self.faults, self.wander_faults, self.left_out) > MOST_RUNS:
            raise ValueError("the counts of faults do not agree with each other")

    @staticmethod
    def of(drilled: WatchDrilled) -> WatchCounts:
        """Count drills."""
        steps = drilled.wandering.drills
        return WatchCounts(
            every=drilled.every,
            stretch=drilled.stretch,
            quiet=QuietCounts.of(drilled.plain),
            left_out=drilled.plain.left_out,
            cells=tuple(_cell(place, drilled.plain.drills) for place in LAYOUT),
            wandering=QuietCounts.of(drilled.wandering),
            wander=drilled.wander,
            wander_faults=len(steps),
            wander_found=sum(drill.found_after is not None for drill in steps),
        )

    @property
    def faults(self) -> int:
        """Faults drilled."""
        return sum(cell.faults for cell in self.cells)

    def of_kind(self, kind: str) -> WatchCell:
        """All faults of a kind, whatever their size; of kind "all", all of them."""
        chosen = [cell for cell in self.cells if kind in (cell.kind, ALL)]
        raised, settled = _together(cell.raised for cell in chosen), _together(cell.settled for cell in chosen)
        delays = sorted(delay for cell in chosen for delay in cell.delays)
        return WatchCell(kind, 0.0, 0.0, sum(cell.faults for cell in chosen), tuple(delays), raised, settled)

    def header(self) -> dict[str, Any]:
        """The counts as plain numbers, for a file."""
        numbers = {field.name: getattr(self, field.name) for field in fields(self)}
        cells = [[cell.faults, *map(list, cell[4:])] for cell in self.cells]
        return numbers | {"quiet": list(self.quiet), "wandering": list(self.wandering), "cells": cells}

    @staticmethod
    def build(header: Any) -> WatchCounts:
        """The counts that `header` describes, which a stranger may have written."""
        check_keys(header, {field.name for field in fields(WatchCounts)}, "counts of the watch")
        cells = _list_of(header["cells"], len(LAYOUT))
        built = tuple(_built(place, numbers) for place, numbers in zip(LAYOUT, cells, strict=True))
        size = len(QuietCounts._fields)
        quiet = {name: QuietCounts(*_list_of(header[name], size)) for name in ("quiet", "wandering")}
        return WatchCounts(**{**header, **quiet, "cells": built})


def _cell(place: tuple[str, float, float], drills: Sequence[WatchDrill]) -> WatchCell:
    inside = [d for d in drills if belongs(d.kind, d.size, place)]
    return WatchCell(
        *place,
        faults=len(inside),
        delays=tuple(sorted(d.found_after for d in inside if d.found_after is not None)),
        raised=Naming.of((d, d.raised) for d in inside if d.raised is not None),
        settled=Naming.of((d, d.settled) for d in inside if d.settled is not None),
    )


# -- files of strangers --------------------------------------------------------------------------------


def _built(place: tuple[str, float, float], numbers: Any) -> WatchCell:
    faults, delays, *namings = _list_of(numbers, 4)
    raised, settled = (Naming(*_list_of(each, len(Naming._fields))) for each in namings)
    return WatchCell(*place, faults, tuple(_list_of(delays, None)), raised, settled)


def _list_of(found: Any, size: int | None) -> list[Any]:
    if not isinstance(found, list) or (size is not None and len(found) != size):
        raise ValueError("its counts of the watch are damaged")
    return found


def _check_quiet(quiet: QuietCounts) -> None:
    windows, free, *alarms = (checked_number(number, "a count") for number in quiet)
    if free > windows or quiet.evidence > free or max(alarms) > windows:
        raise ValueError("the counts of quiet windows do not agree with each other")


def _check_cell(cell: WatchCell, stretch: int) -> None:
    """A fault has at least one sensor; what is found was raised; sets settle after they were raised."""
    checked_number(cell.faults, "a count")
    for delay in cell.delays:
        if as_count(delay, "a delay", least=1) > stretch:
            raise ValueError("the counts have a fault that was found after it was watched")
    for sets, right, faulty, named, kinds, falsely in (cell.raised, cell.settled):
        for number in (sets, right, faulty, named, kinds, falsely):
            checked_number(number, "a count")
        if not (right <= sets <= faulty and right <= named <= faulty and kinds <= named):
            raise ValueError(f"the counts of {cell.kind} do not agree with each other")
    good = cell.found <= cell.raised.sets <= cell.faults and cell.settled.sets <= cell.raised.sets
    if not good or list(cell.delays) != sorted(cell.delays):
        raise ValueError(f"the counts of {cell.kind} do not agree with each other")
