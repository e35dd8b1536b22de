"""Drills of a watch as a document: every number that was counted, every fault, every alarm in quiet windows."""

from __future__ import annotations

from typing import Any

from eccaht.data.clock import Clock
from eccaht.data.windows import Windows
from eccaht.incident.counts import ALL
from eccaht.watch.drill import QuietAlarm, WatchDrill, WatchDrilled
from eccaht.watch.drill_confidence import NamedSet
from eccaht.watch.drill_counts import Naming, QuietCounts, WatchCell, WatchCounts
from eccaht.watch.drill_words import DAY, line


def document(drilled: WatchDrilled, windows: Windows) -> dict[str, Any]:
    """Values of JSON; windows: those that were watched."""
    counts, clock = WatchCounts.of(drilled), windows.clock
    seconds = None if clock.counted else windows.seconds
    plain, wandering = drilled.plain, drilled.wandering
    return {
        "line": line(counts, seconds),
        "window_seconds": seconds,
        "false_alarm_every": counts.every,
        "stretch": counts.stretch,
        "faults_left_out": counts.left_out,
        "quiet": _quiet(counts.quiet, counts.every, seconds)
        | {"alarm_list": [_alarm(alarm, clock) for alarm in plain.alarms]},
        "wandering": _quiet(counts.wandering, counts.every, seconds)
        | {
            "wander": counts.wander,
            "steps": counts.wander_faults,
            "steps_found": counts.wander_found,
            "alarm_list": [_alarm(alarm, clock) for alarm in wandering.alarms],
        },
        "all": _cell(counts.of_kind(ALL), seconds),
        "kinds": [_cell(cell, seconds) for cell in counts.cells],
        "confidence": drilled.confidence.header(),
        "faults": [_fault(drill, windows) for drill in plain.drills],
    }


def _quiet(quiet: QuietCounts, every: float, seconds: float | None) -> dict[str, Any]:
    length = 1.0 if seconds is None else DAY / seconds
    by_basis = {"evidence": quiet.evidence, "stuck": quiet.stuck, "silent": quiet.silent, ALL: quiet.alarms}
    return {
        "windows": quiet.windows,
        "windows_without_alarm": quiet.free,
        "days": None if seconds is None else quiet.windows * seconds / DAY,
        "promised": quiet.promised(every),
        "promise_holds": quiet.keeps(every),
        "rates_per": "window" if seconds is None else "day",
        "alarms": {
            basis: {"count": count, "rate": quiet.rate(count, length), "interval": quiet.interval(count, length)}
            for basis, count in by_basis.items()
        },
    }


def _cell(cell: WatchCell, seconds: float | None) -> dict[str, Any]:
    delays = {"half": cell.delay(0.5), "nine_of_ten": cell.delay(0.9)}
    minutes = {
        name: None if delay is None or seconds is None else delay * seconds / 60.0 for name, delay in delays.items()
    }
    return {
        "kind": cell.kind,
        "sizes": [cell.low, cell.high] if cell.high else None,
        "faults": cell.faults,
        "found": cell.found,
        "share": cell.share,
        "interval": cell.interval,
        "delay_windows": delays,
        "delay_minutes": minutes,
        "delays": list(cell.delays),
        "raised": _naming(cell.raised),
        "settled": _naming(cell.settled),
    }


def _naming(named: Naming) -> dict[str, Any]:
    return {
        "sets": named.sets,
        "sets_right": named.right,
        "sensors_faulty": named.faulty,
        "sensors_named": named.named,
        "sensors_falsely_named": named.falsely,
        "kinds_right": named.kinds,
    }


def _alarm(alarm: QuietAlarm, clock: Clock) -> dict[str, Any]:
    return {"time": clock.show(alarm.time), "basis": alarm.basis, "named": list(alarm.names)}


def _fault(drill: WatchDrill, windows: Windows) -> dict[str, Any]:
    return {
        "kind": drill.kind,
        "size": drill.size or None,
        "sensors": [windows.names[k] for k in drill.sensors],
        "onset": windows.clock.show(windows.starts[drill.onset]),
        "raised_after": drill.raised_after,
        "raised": _named(drill.raised, windows.names),
        "settled": _named(drill.settled, windows.names),
        "found_after": drill.found_after,
    }


def _named(named: NamedSet | None, names: tuple[str, ...]) -> dict[str, Any] | None:
    if named is None:
        return None
    belief = None if named.belief != named.belief else named.belief
    sensors = [names[k] for k in named.sensors]
    return {"sensors": sensors, "kinds": list(named.kinds), "basis": named.basis, "belief": belief}
