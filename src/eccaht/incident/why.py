"""Why these sensors, in words, and where plain rankings would have named others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from eccaht.data.clock import PLAIN, Clock
from eccaht.incident.answer import Answer, Course, Suspect
from eccaht.incident.phrases import deviations, in_digits, joined, moment, ordinal, places
from eccaht.presentation.text import percent

USUAL = 3.0  # deviations: a mean that deviates less looks normal
RANKINGS = {"z_local": "z-score against the hour before", "mahalanobis": "Mahalanobis contribution"}
_SAME = "the same sensors come first."
_PREDICTORS = 2  # sensors that a line names
_MOST = 3  # sensors that a line names for one reason
_OUTSIDE = 0.05  # share of windows outside a 95 % band in normal operation


def why(answer: Answer, suspect: Suspect, clock: Clock = PLAIN) -> str:
    """One sentence that says what this sensor does by itself and what the others say it should do."""
    since = suspect.since if suspect.since is not None else answer.onset
    moved = f" since {moment(clock, since)}" if since is not None else ""
    if suspect.kind == "silent":
        return f"{suspect.sensor} delivers nothing{moved}{_other_readings(suspect)}."
    if suspect.kind == "stuck":
        at = in_digits(suspect.reason.read, unit_of(suspect))
        return f"{suspect.sensor} repeats one value, {at},{moved}{_other_readings(suspect)}."
    if suspect.kind == "moved":
        usual, read = (f"{value:g}" for value in (suspect.reason.expected, suspect.reason.read))
        return f"{suspect.sensor} never moved in the history and moves now: from {usual} to {read}{moved}."
    later = f" (since {moment(clock, since, answer.onset)})" if since is not None and since != answer.onset else ""
    return f"{suspect.sensor}{later} {_alone(suspect)}; {_given(answer, suspect)}."


def outside(answer: Answer, course: Course) -> tuple[int, int]:
    """In how many windows since the onset a sensor was outside its band, and how many there are."""
    after = np.isfinite(course.read) & (True if answer.onset is None else course.starts >= answer.onset)
    with np.errstate(invalid="ignore"):
        beyond = (course.read < course.low) | (course.read > course.high)
    return int((beyond & after).sum()), int(after.sum())


def disagreements(answer: Answer) -> list[str]:
    """Whom each plain ranking would have named instead, and why; one line where all agree."""
    told = [(RANKINGS[name], _disagreement(answer, name)) for name in RANKINGS if answer.rankings.get(name)]
    if len(told) > 1 and all(text == _SAME for _, text in told):
        return [f"By {' and by '.join(ranking for ranking, _ in told)} {_SAME}"]
    return [f"By {ranking} {text}" for ranking, text in told]


def _alone(suspect: Suspect) -> str:
    z = suspect.reason.z_alone
    if not math.isfinite(z):
        return "cannot be judged by itself"
    if abs(z) < USUAL:
        return f"looks normal by itself ({deviations(z)} deviations)"
    return f"left its usual range ({deviations(z)} deviations {'above' if z > 0 else 'below'} its level before)"


def _given(answer: Answer, suspect: Suspect) -> str:
    """What the others say, by the mean since the onset or, where that fits them, by single windows."""
    reason, told = suspect.reason, [name for name, _ in suspect.reason.predictors[:_PREDICTORS]]
    lack = reason.expected - reason.read
    if abs(reason.z_given) >= USUAL and math.isfinite(lack) and lack:
        unit = unit_of(suspect)
        by = f"{in_digits(abs(lack), unit)} {'higher' if lack > 0 else 'lower'}"
        beside = f"{in_digits(reason.expected, unit)}, not {in_digits(reason.read, unit)}"
        given = f"given {joined(told)}" if told else "by its level before"
        return f"{given} it should read {by} ({beside}: {deviations(reason.z_given)} deviations)"
    band = f"the band that {joined(told)} predict{'s' if len(told) == 1 else ''}" if told else "its band"
    course = next((each for each in answer.courses if each.sensor == suspect.sensor), None)
    count, windows = (0, 0) if course is None else outside(answer, course)
    if count > _OUTSIDE * windows:
        share = f"{percent(count / windows)}, where {percent(_OUTSIDE)} is usual"
        return f"{count} of {windows} windows since the onset are outside {band} ({share})"
    return f"window by window it no longer follows {joined(told) or 'its own past'}"


def _other_readings(suspect: Suspect) -> str:
    expected, told = suspect.reason.expected, [name for name, _ in suspect.reason.predictors[:_PREDICTORS]]
    if not math.isfinite(expected) or not told:
        return ""
    return f"; given {joined(told)} it should read about {in_digits(expected, unit_of(suspect))}"


def unit_of(suspect: Suspect) -> float:
    """What matters of a reading: the error of the size, else the size, else the reading."""
    interval = suspect.size_raw_interval
    units = (0.5 * (interval.high - interval.low), suspect.size_raw, 0.01 * suspect.reason.expected)
    return next((abs(unit) for unit in units if math.isfinite(unit) and unit), 1.0)


def _disagreement(answer: Answer, name: str) -> str:
    place = places(answer)[name]
    named = [sensor for sensor in answer.named if sensor in place]  # what was constant in the history has no place
    first = [sensor for sensor, _ in answer.rankings[name]][: max(len(named), 1)]
    if not named:
        return f"{first[0]} comes first; some sensor always does."
    missed, taken = [k for k in named if k not in first], [k for k in first if k not in named]
    if not missed and not taken:
        return _SAME
    suspects = {suspect.sensor: suspect for suspect in answer.sensors}
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


def _grouped(told: Iterable[tuple[str, int, str, str]]) -> str:
    """Sensors with their places and numbers, those with the same reason together."""
    groups: dict[str, list[str]] = {}
    for sensor, place, number, reason in told:
        beside = ", ".join(filter(None, (ordinal(place), number)))
        groups.setdefault(reason, []).append(f"{sensor} ({beside})")
    return "; ".join(f"{_some(sensors)}, {reason}" for reason, sensors in groups.items())


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST
    return joined([*texts[:_MOST], f"{more} more"] if more > 0 else texts)
