"""Drills of a watch in words: a line, a table, and what to know about both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from eccaht.data.durations import show_duration
from eccaht.incident.counts import ALL
from eccaht.incident.faults import KINDS
from eccaht.presentation.text import counted, lasting, percent, rounded
from eccaht.watch.drill_confidence import SETTLED
from eccaht.watch.drill_counts import Naming, QuietCounts, WatchCell, WatchCounts
from eccaht.watch.history import Rule

SOON = 10  # windows
DAY = 86400.0
HEADINGS = ("fault", "size", "drilled", "found", "share", "95 % interval", f"in {SOON} windows", "half in", "90 % in",
            "sets right", "later")  # fmt: skip
_FEW = 1.0  # promised alarms below which none at all says little about the promise


def line(counts: WatchCounts, seconds: float | None) -> str:
    """All in one line; seconds: length of a window, None where windows have none."""
    quiet, every = counts.quiet, counts.of_kind(ALL)
    alarms = f"{counted(quiet.evidence, 'alarm')} where {_amount(quiet.promised(counts.every))} were promised at most"
    standing = f", {quiet.standing} more of sensors stuck or silent" if quiet.standing else ""
    faults = f"of {counted(every.faults, 'fault')} {every.found} {'was' if every.found == 1 else 'were'} found"
    half = every.delay(0.5)
    soon = "" if half is None else f", half of them within {_time(half, seconds)}"
    return f"Watched {_length(quiet.windows, seconds)}: {alarms}{standing}; {faults}{soon}"


def history_line(rule: Rule, every: float) -> str:
    """What the history itself says of a watch that was not drilled."""
    basis = "lies within what was counted there" if rule.basis(every) == "counted" else "is extrapolated from that"
    return (
        f"The watch was not drilled. Its rule was counted on {counted(rule.passes.windows, 'window')} of the history,"
        f" each judged by what the rest of it shows; one false alarm in {every:.6g} windows {basis}."
    )


def rows(counts: WatchCounts) -> Iterator[tuple[str, ...]]:
    """The table: each kind and range of sizes, then all faults together; HEADINGS stand above it."""
    for kind in KINDS:
        yield from (_row(cell) for cell in counts.cells if cell.kind == kind)
    yield _row(counts.of_kind(ALL))


def remarks(counts: WatchCounts, seconds: float | None) -> Iterator[str]:
    """What to know about them."""
    window = "" if seconds is None else f" of {show_duration(seconds)}"
    yield (
        f"size: in robust units; each fault was watched for {counts.stretch} windows{window}; half in, 90 % in: windows"
        " that so many of those found took, from the onset up to and with the one that raised the alarm."
    )
    yield f"sets right: exactly the faulty sensors were named, by the first alarm and {SETTLED} windows later."
    yield _promise(counts, seconds)
    if counts.quiet.standing:
        yield _standing(counts.quiet, seconds)
    if counts.quiet.free < counts.quiet.windows:
        share = percent(1.0 - counts.quiet.free / counts.quiet.windows)
        yield f"An alarm was on in {share} of the quiet windows."
    if counts.of_kind(ALL).raised:
        yield _naming("The first alarms named", counts, "raised")
    if counts.of_kind(ALL).settled:
        yield _naming(f"{SETTLED} windows later named were", counts, "settled")
    yield _wandering(counts)
    if counts.left_out:
        yield f"{counted(counts.left_out, 'fault')} could not be drilled: an alarm was on, or no sensor could show it."


def _row(cell: WatchCell) -> tuple[str, ...]:
    sizes = f"{cell.low:g}-{cell.high:g}" if cell.high else ""
    if cell.share is None or cell.interval is None:
        return cell.kind, sizes, "0", "0", *("-",) * (len(HEADINGS) - 4)
    low, high = cell.interval
    delays = ("-" if delay is None else str(delay) for delay in (cell.delay(0.5), cell.delay(0.9)))
    sets = (f"{named.right}/{named.sets}" for named in (cell.raised, cell.settled))
    shares = (f"{cell.share:.2f}", f"{low:.2f} to {high:.2f}", f"{cell.within(SOON) / cell.faults:.2f}")
    return cell.kind, sizes, str(cell.faults), str(cell.found), *shares, *delays, *sets


def _promise(counts: WatchCounts, seconds: float | None) -> str:
    quiet, every = counts.quiet, counts.every
    promised = f"promised: at most {_rate(1.0 / every, seconds)}"
    if not quiet.keeps(every):
        promised = f"{promised}; this is more than chance explains"
    elif quiet.promised(every) < _FEW:
        promised = f"{promised}; the quiet data are too short to check so rare a promise"
    return f"Alarms on evidence: {_counted_rate(quiet, quiet.evidence, seconds)}; {promised}."


def _standing(quiet: QuietCounts, seconds: float | None) -> str:
    apart = f"Sensors that were stuck raised {counted(quiet.stuck, 'alarm')}, silent ones {quiet.silent}"
    return f"{apart}, which no promise covers; all together: {_counted_rate(quiet, quiet.alarms, seconds)}."


def _counted_rate(quiet: QuietCounts, count: int, seconds: float | None) -> str:
    interval = quiet.interval(count)
    if interval is None:
        return "no window was free of an alarm"
    low, high = (_rate(end, seconds, unit=False) for end in interval)
    return f"{count}, {_rate(count / quiet.free, seconds)} (95 % interval {low} to {high})"


def _naming(who: str, counts: WatchCounts, when: Literal["raised", "settled"]) -> str:
    named: Naming = getattr(counts.of_kind(ALL), when)
    sensors = f"{named.named} of {counted(named.faulty, 'faulty sensor')} and {counted(named.falsely, 'sound one')}"
    return f"{who} {sensors}, the kind right for {named.kinds} of them."


def _wandering(counts: WatchCounts) -> str:
    quiet, steps = counts.wandering, counts.of_kind("step")
    kept = "" if quiet.keeps(counts.every) else ", more than chance explains"
    return (
        f"With the slow wander of all levels ({counts.wander:.2g} robust units) as it is at another time: "
        f"{counted(quiet.evidence, 'alarm')} on evidence where {_amount(quiet.promised(counts.every))} were promised at"
        f" most{kept}; {counts.wander_found} of {counted(counts.wander_faults, 'step')} found, {steps.found} of"
        f" {steps.faults} without."
    )


def _length(windows: int, seconds: float | None) -> str:
    """Quiet windows as a length of time."""
    if seconds is None:
        return f"{windows} quiet window{'' if windows == 1 else 's'}"
    unit, length = ("day", DAY) if windows * seconds >= DAY else ("hour", 3600.0)
    amount = _amount(windows * seconds / length)
    return f"{amount} quiet {unit}{'' if amount == '1' else 's'}"


def _time(windows: int, seconds: float | None) -> str:
    return counted(windows, "window") if seconds is None else lasting(windows * seconds)


def _rate(per_window: float, seconds: float | None, *, unit: bool = True) -> str:
    """Alarms a day, or in a thousand windows where these have no length."""
    length, what = (1000.0, "in 1000 windows") if seconds is None else (DAY / seconds, "a day")
    number = length * per_window
    shown = f"{number:.0f}" if number >= 99.5 else f"{number:.2g}"
    return f"{shown} {what}" if unit else shown


def _amount(number: float) -> str:
    """With two digits at least, so that a little is not shown as none."""
    return rounded(number) if number >= 1.0 or number == 0.0 else f"{number:.2g}"
