"""Why these sensors, in words, and where plain rankings would have named others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from eccaht.base.clock import PLAIN, Clock
from eccaht.base.presentation.text import percent
from eccaht.plants.incident.answer import Course, Incident, Suspect
from eccaht.plants.incident.phrases import deviations, in_digits, joined, moment, ordinal, places

USUAL = 3.0  # deviations: a mean that deviates less looks normal
RANKINGS = {"z_local": "z-score against the hour before", "mahalanobis": "Mahalanobis contribution"}
_SAME = "the same sensors come first."
_PREDICTORS = 2  # sensors that a line names
_MOST = 3  # sensors that a line names for one reason
_OUTSIDE = 0.05  # share of windows outside a 95 % band in normal operation


def why(incident: Incident, suspect: Suspect, clock: Clock = PLAIN) -> str:
    """One sentence that says what this sensor does by itself and what the others say it should do."""
    since = suspect.since if suspect.since is not None else incident.onset
    span = _span(incident, since, clock)
    if suspect.kind == "silent":
        return f"{suspect.sensor} delivers nothing {span}{_other_readings(suspect)}."
    at = in_digits(suspect.reason.read, unit_of(suspect))
    if suspect.kind == "stuck":
        return f"{suspect.sensor} repeats one value, {at}, {span}{_other_readings(suspect)}."
    if suspect.kind == "range":
        return f"{suspect.sensor} reads {at} {span}, beyond everything in the history{_other_readings(suspect)}."
    if suspect.kind == "moved":
        usual, read = (f"{value:g}" for value in (suspect.reason.expected, suspect.reason.read))
        return f"{suspect.sensor} never moved in the history and moves now: from {usual} to {read} {span}."
    later = f" (since {moment(clock, since, incident.onset)})" if since != incident.onset else ""
    return f"{suspect.sensor}{later} {_alone(suspect)}; {_given(incident, suspect)}."


def _span(incident: Incident, since: np.datetime64, clock: Clock) -> str:
    if incident.end is None or incident.changed:
        return f"since {moment(clock, since)}"
    return f"from {moment(clock, since)} to {moment(clock, incident.end, since)}"


def outside(incident: Incident, course: Course) -> tuple[int, int]:
    """In how many windows of the incident a sensor was outside its band, and how many there are."""
    there = np.isfinite(course.read) & (course.starts >= incident.onset)
    if incident.end is not None:
        there &= course.starts < incident.end
    with np.errstate(invalid="ignore"):
        beyond = (course.read < course.low) | (course.read > course.high)
    return int((beyond & there).sum()), int(there.sum())


def disagreements(incident: Incident) -> list[str]:
    """The sensors that each plain ranking would have named instead, and why; one line where all agree."""
    found = [(RANKINGS[name], _disagreement(incident, name)) for name in RANKINGS if incident.rankings.get(name)]
    if len(found) > 1 and all(text == _SAME for _, text in found):
        return [f"By {' and by '.join(ranking for ranking, _ in found)} {_SAME}"]
    return [f"By {ranking} {text}" for ranking, text in found]


def _alone(suspect: Suspect) -> str:
    z = suspect.reason.z_alone
    if not math.isfinite(z):
        return "cannot be judged by itself"
    if abs(z) < USUAL:
        return f"looks normal by itself ({deviations(z)} deviations)"
    return f"left its usual range ({deviations(z)} deviations {'above' if z > 0 else 'below'} its level before)"


def _given(incident: Incident, suspect: Suspect) -> str:
    """What the others say, by the mean since the onset or, where that fits them, by single windows."""
    reason, known = suspect.reason, [name for name, _ in suspect.reason.predictors[:_PREDICTORS]]
    lack = reason.expected - reason.read
    if abs(reason.z_given) >= USUAL and math.isfinite(lack) and lack:
        unit = unit_of(suspect)
        by = f"{in_digits(abs(lack), unit)} {'higher' if lack > 0 else 'lower'}"
        beside = f"{in_digits(reason.expected, unit)}, not {in_digits(reason.read, unit)}"
        given = f"given {joined(known)}" if known else "by its level before"
        return f"{given} it should read {by} ({beside}: {deviations(reason.z_given)} deviations)"
    band = f"the band that {joined(known)} predict{'s' if len(known) == 1 else ''}" if known else "its band"
    course = next((each for each in incident.courses if each.sensor == suspect.sensor), None)
    count, windows = (0, 0) if course is None else outside(incident, course)
    if count > _OUTSIDE * windows:
        share = f"{percent(count / windows)}, where {percent(_OUTSIDE)} is usual"
        return f"{count} of {windows} windows of the incident are outside {band} ({share})"
    return f"window by window it no longer follows {joined(known) or 'its own past'}"


def _other_readings(suspect: Suspect) -> str:
    expected, known = suspect.reason.expected, [name for name, _ in suspect.reason.predictors[:_PREDICTORS]]
    if not math.isfinite(expected) or not known:
        return ""
    return f"; given {joined(known)} it should read about {in_digits(expected, unit_of(suspect))}"


def unit_of(suspect: Suspect) -> float:
    """What matters of a reading: the error of the size, else the size, else the reading."""
    interval = suspect.size_raw_interval
    units = (0.5 * (interval.high - interval.low), suspect.size_raw, 0.01 * suspect.reason.expected)
    return next((abs(unit) for unit in units if math.isfinite(unit) and unit), 1.0)


def _disagreement(incident: Incident, name: str) -> str:
    place = places(incident)[name]
    named = [sensor for sensor in incident.named if sensor in place]  # what was constant in the history has no place
    first = [sensor for sensor, _ in incident.rankings[name]][: max(len(named), 1)]
    if not named:
        return f"{first[0]} comes first; some sensor always does."
    missed, taken = [k for k in named if k not in first], [k for k in first if k not in named]
    if not missed and not taken:
        return _SAME
    suspects = {suspect.sensor: suspect for suspect in incident.sensors}
    misses = _grouped((k, place[k], *_missed(suspects[k], name)) for k in missed)
    takes = _grouped((k, place[k], *_taken(suspects[k])) for k in taken if k in suspects)
    return f"one would miss {misses}" + (f"; and name {takes}." if takes else ".")


def _missed(suspect: Suspect, ranking: str) -> tuple[str, str]:
    """A number beside a sensor that a ranking misses, and why it does."""
    if not math.isfinite(suspect.reason.z_alone):
        return "", "without readings"
    if ranking == "mahalanobis":
        return "", "its deviation shared out among correlated sensors"
    alone = f"{deviations(suspect.reason.z_alone)} alone"
    return alone, "looking normal alone" if abs(suspect.reason.z_alone) < USUAL else "behind larger single deviations"


def _taken(suspect: Suspect) -> tuple[str, str]:
    """A number beside a sensor that a ranking wrongly takes, and why it is not named."""
    if abs(suspect.reason.z_given) < USUAL:
        return f"{deviations(suspect.reason.z_given)} given the others", "doing what the others predict"
    return f"{suspect.evidence:+.1f} evidence", "adding too little evidence"


def _grouped(found: Iterable[tuple[str, int, str, str]]) -> str:
    """Sensors with their places and numbers, those with the same reason together."""
    groups: dict[str, list[str]] = {}
    for sensor, place, number, reason in found:
        beside = ", ".join(filter(None, (ordinal(place), number)))
        groups.setdefault(reason, []).append(f"{sensor} ({beside})")
    return "; ".join(f"{_some(sensors)}, {reason}" for reason, sensors in groups.items())


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST
    return joined([*texts[:_MOST], f"{more} more"] if more > 0 else texts)
