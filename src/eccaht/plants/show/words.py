"""An answer in words, for a terminal of a hundred columns."""

import math
import textwrap
from collections.abc import Iterable

import numpy as np

from eccaht.base.presentation.text import (
    all_shortened,
    amount,
    belief,
    columns,
    confident,
    counted,
    deviations,
    in_digits,
    joined,
    listed,
    percent,
    sized,
)
from eccaht.plants.answer import Answer, Course, Incident, Suspect
from eccaht.plants.incident.investigate import OUTSIDE

SIGNED = ("step", "drift", "moved")  # kinds with a direction
_WORDS = {"noise": "noisy", "replay": "as if replayed", "range": "out of range", "free": "own course"}
USUAL = 3.0  # deviations: a mean that deviates less looks normal
_LEAP = 6.0  # deviations of a single window, which no sound sensor reaches
_PREDICTORS = 2  # sensors that a line names
_SCATTERED = 1.5  # standard deviations: a difference that scatters by less looks normal
_OUTSIDE = 0.05  # share of windows outside a 95 % band in normal operation
WIDTH = 100
LEGEND = (
    "belief: probability that the sensor is wrong; size: beside what the other sensors predict;",
    "alone: standard deviations from its own level before; given: from what the others predict.",
)
PLACES = "by z, by M: place by z-score against the windows before, by Mahalanobis contribution."
SCALE = "Evidence says how rare readings are in normal operation: 2.3 nats more is ten times rarer."
_HEADER = ("", "sensor", "belief", "kind", "size (95 %)", "alone", "given", "by z", "by M")
_NAMED, _OTHERS, _REASONS = 20, 4, 10  # rows of named and other sensors, and sensors whose reasons are given
_PLAIN_PLACES = 2  # columns of places in plain rankings
_LISTED = 6  # names in the headline
_INCIDENTS = 20  # lines of incidents
_BEGINNING = 3  # the first third of the data stands for the history where no start was given
_IN_SECONDS = np.timedelta64(300, "s")  # a time within data that last so long needs no fractions of seconds
_UPDATE = "'eccaht calibrate --update MODEL --data FILE' (in Python model.update)"


def lines(answer: Answer) -> list[str]:
    """Everything that a person should know: the answer in short, how the data differ from the history, the answer."""
    others = [text for text in answer.cautions if text not in answer.compared]
    several, shown = incidents(answer), table(answer)
    return [
        *_wrapped([headline(answer), *undecided(answer)]),
        *_wrapped(what_to_do(answer)),
        *_wrapped(f"CAUTION: {text}" for text in answer.compared if not changed_plant(answer) or OUTSIDE not in text),
        *several[:1],
        *_wrapped(several[1:], "  "),
        "",
        *columns(shown),
        *LEGEND,
        *([PLACES] if len(shown[0]) == len(_HEADER) else []),
        "",
        *_wrapped([confidence(answer), *checks(answer), evidence(answer), runner_up(answer)]),
        *_wrapped(f"Why: {text}" for text in reasons(answer)[:_REASONS]),
        *([f"Why {len(answer.named) - _REASONS} more: see --json or --html"] if len(answer.named) > _REASONS else []),
        *_wrapped(f"CAUTION: {text}" for text in others),
        *_wrapped(reminder(answer)),
        *_wrapped([answer.drill] if answer.drill else []),
    ]


def headline(answer: Answer) -> str:
    """The verdict: which sensors are wrong, how, since when and until when."""
    if changed_plant(answer):
        return "Undecided: the plant has changed, or runs at an operating point that the history does not have."
    if answer.verdict == "undecided":
        return f"Undecided: whether a sensor is wrong is not clear from {_stretch(answer)}."
    if not answer.incidents:
        what = "Nothing is wrong" + ("" if answer.confident else ", as far as these windows show")
        return f"{what}: {_stretch(answer)}, and no detector reaches its threshold."
    many = f"; the largest of {len(answer.incidents)} incidents" if len(answer.incidents) > 1 else ""
    return f"{verdict_of(answer.largest)}{many}"


def verdict_of(incident: Incident) -> str:
    """Which sensors are wrong in one incident, how, since when and until when."""
    many = f"{len(incident.named)} of {counted(len(incident.sensors), 'sensor')}"
    return f"{many} {_is_wrong(incident)} {when(incident)}: {_suspects(incident)}"


def undecided(answer: Answer) -> list[str]:
    """What is known and what is not; nothing where the answer is decided."""
    if answer.verdict != "undecided":
        return []
    if not changed_plant(answer):
        start = (
            ""
            if answer.settings.get("start")
            else "If you know when it began, ask from there on: give it as the start (--start)."
        )
        return [*(f"Why: {doubt}." for doubt in answer.doubts), *([start] if start else [])]
    known = f"Known: these read otherwise than in the history {when(answer.largest)}: {_suspects(answer.largest)}."
    return [known, *(f"Not known: {doubt}." for doubt in answer.doubts)]


def reminder(answer: Answer) -> list[str]:
    """That a model can be brought up to date, where the plant has changed for good."""
    if not any(each.changed for each in answer.incidents) or changed_plant(answer):
        return []
    return [f"Part of this lasts. If it is normal from now on, bring the model up to date: {_UPDATE}."]


def what_to_do(answer: Answer) -> list[str]:
    """What settles an answer that is undecided because the plant has changed."""
    if not changed_plant(answer):
        return []
    until = answer.settings.get("start") or _third(answer)
    return [
        f"What to do: if all was well before {until}, or before another time, calibrate a model on these data with "
        "that time as --stop, and look at them by that model with the same time as --start.",
        f"If the plant stays like this, and nothing in these rows is wrong, let the model learn them: {_UPDATE}.",
    ]


def _third(answer: Answer) -> str:
    """The end of the first third of the data, as `--start` and `--stop` take it."""
    length = answer.last - answer.first
    time = answer.first + length // _BEGINNING
    if length > _IN_SECONDS and answer.clock.row_interval is None:
        time = time.astype("datetime64[s]").astype(answer.first.dtype)
    return answer.clock.show(time).removeprefix("row ").replace(" ", "T")


def changed_plant(answer: Answer) -> bool:
    """Is it undecided because most sensors read what the history never had?"""
    return answer.verdict == "undecided" and bool(answer.incidents)


def incidents(answer: Answer) -> list[str]:
    """How many there are, and a line each, in order of time; nothing where there is only one."""
    if len(answer.incidents) < 2:
        return []
    found = []
    for each in answer.incidents[:_INCIDENTS]:
        estimated = "" if each.confidence is None else f", confidence {confident(each.confidence)}"
        found.append(f"{when(each)}: {_suspects(each)}{estimated}")
    if (more := len(answer.incidents) - _INCIDENTS) > 0:
        found.append(f"and {more} more: see --json")
    return [f"{len(answer.incidents)} incidents in order of time:", *found]


def when(incident: Incident) -> str:
    """Since when, with the interval, and until when."""
    (low, high), onset = incident.began_interval, incident.began
    since = incident.clock.briefly(onset)
    if low != high:
        since += f" ({incident.clock.briefly(low, onset)} to {incident.clock.briefly(high, onset)})"
    if incident.ended is None:
        return f"since {since}, still going on at the end of the data"
    return f"from {since} until {incident.clock.briefly(incident.ended, onset)}"


def table(answer: Answer, others: int = _OTHERS, width: int = WIDTH) -> list[list[str]]:
    """Header and rows: the named sensors, then the next ones.

    Where a line would not fit the width, the places in plain rankings are left out, then names are shortened.
    """
    named = answer.named
    ranks = {
        name: {sensor: place for place, (sensor, _) in enumerate(ranking, 1)}
        for name, ranking in answer.largest.rankings.items()
    }
    mark = "differs" if changed_plant(answer) else "named"  # which of them are wrong is then not known
    rows = [list(_HEADER)]
    for place, suspect in enumerate([*(each for each in answer.sensors if each.named), *answer.largest.others], 1):
        if place <= min(len(named), _NAMED) or len(named) < place <= len(named) + others:
            rows.append([f"{place} {mark if suspect.named else '-'}", *_cells(suspect, ranks)])
    if len(named) > _NAMED:
        rows.insert(_NAMED + 1, ["...", f"{len(named) - _NAMED} more", *[""] * (len(_HEADER) - 2)])
    if max(map(len, columns(rows))) > width:
        rows = [row[:-_PLAIN_PLACES] for row in rows]
    taken = sum(max(map(len, column)) + 2 for k, column in enumerate(zip(*rows, strict=True)) if k != 1)
    shown = all_shortened([row[1] for row in rows], max(8, width - taken))
    return [[row[0], name, *row[2:]] for row, name in zip(rows, shown, strict=True)]


def confidence(answer: Answer) -> str:
    """How confident the answer is, or that no drill says."""
    if answer.verdict == "undecided":
        return "Confidence: none, because the answer is undecided."
    if answer.confidence is None:
        return "Confidence: none was estimated (see the cautions)."
    asked = confident(1.0 - answer.alpha)
    judged = f"{asked} is asked for" if answer.confident else f"not confident: {asked} is asked for"
    if not answer.incidents:
        found = f"drills on your own history found {confident(answer.confidence)} of their faults"
        return f"Confidence: {found}, and a fault that was missed would look the same ({judged})."
    # about the sensors that the evidence names; those that are seen to have moved were in no drill
    moved = [suspect.sensor for suspect in answer.sensors if suspect.kind == "moved" and suspect.named]
    aside = f", {listed(moved)} aside" if moved else ""
    if answer.largest.checked:
        return f"Confidence: {confident(answer.confidence)} that exactly these are wrong, given the checks ({judged})."
    share = (
        f"{confident(answer.confidence)} of the answers like this one" if answer.confidence else "no answer like this"
    )
    right = f"named exactly the sensors that were wrong{aside}"
    return f"Confidence: in drills on your own history, {share} {right} ({judged})."


def checks(answer: Answer) -> list[str]:
    """The checks that were made, and those that would settle the largest incident; nothing where it is settled."""
    found = []
    for made in answer.largest.checked if answer.incidents else ():
        is_wrong = "wrong" if made.wrong else "sound"
        found.append(f"Checked: {made.sensor} read {made.read:.4g}, by hand it is {made.value:.4g}: it is {is_wrong}.")
    units = {suspect.sensor: unit_of(suspect) for suspect in answer.sensors}
    parts = []
    for check in answer.largest.checks if answer.incidents else ():
        reads, given = (in_digits(x, units[check.sensor]) for x in (check.read, check.expected))
        parts.append(f"{check.sensor} (it reads {reads}, the others predict {given}): {percent(check.decides)}")
    if parts:
        found.append(f"To settle it, read by hand {', then '.join(parts)} of such cases are decided.")
    return found


def evidence(answer: Answer) -> str:
    """By how much the detectors pass their thresholds, and what was looked at."""
    passed = answer.evidence > 0.0
    beyond = f"{amount(abs(answer.evidence))} nats {'above' if passed else 'below'} the threshold"
    rate = f"of one false alarm in {counted(round(answer.every), 'window')}"
    alone = "" if passed or not answer.incidents else " (a sensor that is wrong by itself needs no detector)"
    return f"Evidence: {beyond} {rate}{alone}. Looked at: {_stretch(answer)}{answer.clock.said}. {SCALE}"


def runner_up(answer: Answer) -> str:
    """The most suspect sensor that was not named; nothing if there is none."""
    if not answer.largest.others:
        return ""
    found = answer.largest.others[0]
    title = "Runner-up" if answer.named else "Most suspect"
    given = f"{deviations(found.reason.z_given)} standard deviations given the others"
    lead = found.evidence - found.needed
    enough = f"evidence {amount(abs(lead))} nats {'above' if lead > 0.0 else 'below'} the threshold of naming"
    if lead > 0.0:
        lacking = "a sensor with a larger score lacks it" if answer.named else "no detector reaches its threshold"
        enough = f"{enough}, but {lacking}"
    return f"{title}: {found.sensor} (belief {belief(found.belief)}), {given}; {enough}."


def reasons(answer: Answer) -> list[str]:
    """Why each of the named sensors of the largest incident, the most suspect first."""
    return [why(answer.largest, suspect) for suspect in answer.sensors if suspect.named]


def _is_wrong(incident: Incident) -> str:
    """The verb of a headline: what is over was, what is confident is."""
    one = len(incident.named) == 1
    if incident.ended is None:
        verbs = ("is wrong", "are wrong", "to be wrong")
    else:
        verbs = ("was wrong", "were wrong", "to have been wrong")
    return verbs[0 if one else 1] if incident.confident else f"seem{'s' * one} {verbs[2]}"


def _suspects(incident: Incident) -> str:
    return listed([f"{each.sensor} ({kind_of(each)})" for each in incident.sensors if each.named], _LISTED)


def _cells(suspect: Suspect, ranks: dict[str, dict[str, int]]) -> list[str]:
    size = sized(suspect.size_raw, *suspect.size_raw_interval)
    cells = [suspect.sensor, belief(suspect.belief), kind_of(suspect), size]
    cells += [deviations(z, "+") for z in (suspect.reason.z_alone, suspect.reason.z_given)]
    return cells + [str(ranks.get(name, {}).get(suspect.sensor, "-")) for name in ("z_local", "mahalanobis")]


def _stretch(answer: Answer) -> str:
    span = f"from {answer.clock.briefly(answer.first)} to {answer.clock.briefly(answer.last, answer.first)}"
    return f"{counted(answer.n_windows, 'window')} {span}"


def _wrapped(texts: Iterable[str], indent: str = "") -> list[str]:
    wrap = textwrap.TextWrapper(WIDTH, indent, f"{indent}    ", break_on_hyphens=False)
    return [line for text in texts for line in wrap.wrap(text.strip())]


def why(incident: Incident, suspect: Suspect) -> str:
    """One sentence that says what this sensor does by itself and what the others say it should do."""
    since = suspect.began if suspect.began is not None else incident.began
    span = _span(incident, since)
    at, expected = (in_digits(x, unit_of(suspect)) for x in (suspect.reason.read, suspect.reason.expected))
    known = [name for name, _ in suspect.reason.predictors[:_PREDICTORS]]
    should = f"; given {joined(known)} it should read about {expected}" if known and expected != "-" else ""
    if suspect.kind == "silent":
        return f"{suspect.sensor} delivers nothing {span}{should}."
    if suspect.kind == "stuck":
        return f"{suspect.sensor} repeats one value, {at}, {span}{should}."
    if suspect.kind == "range":
        return f"{suspect.sensor} reads {at} {span}, beyond everything in the history{should}."
    if suspect.kind == "moved":
        usual, read = (f"{value:g}" for value in (suspect.reason.expected, suspect.reason.read))
        return f"{suspect.sensor} never moved in the history and moves now: from {usual} to {read} {span}."
    later = f" (since {incident.clock.briefly(since, incident.began)})" if since != incident.began else ""
    return f"{suspect.sensor}{later} {_alone(incident, suspect)}; {_given(incident, suspect)}."


def _span(incident: Incident, since: np.datetime64) -> str:
    if incident.ended is None or incident.changed:
        return f"since {incident.clock.briefly(since)}"
    return f"from {incident.clock.briefly(since)} to {incident.clock.briefly(incident.ended, since)}"


def _alone(incident: Incident, suspect: Suspect) -> str:
    z = suspect.reason.z_alone
    if not math.isfinite(z):
        return "cannot be judged by itself"
    if abs(z) < USUAL:
        leap = dict(incident.rankings.get("z_local", ())).get(suspect.sensor, 0.0)
        if leap > _LEAP:
            return f"leaps by {deviations(leap)} standard deviations from its level before"
        return f"looks normal by itself ({deviations(z)} standard deviations)"
    where = "above" if z > 0 else "below"
    return f"left its usual range ({deviations(z)} standard deviations {where} its level before)"


def _given(incident: Incident, suspect: Suspect) -> str:
    """What the others say: the difference that shows the fault, by its mean or by its scatter."""
    reason, known = suspect.reason, [name for name, _ in suspect.reason.predictors[:_PREDICTORS]]
    unit, found = unit_of(suspect), suspect.difference
    beside = f"it should read {in_digits(reason.expected, unit)}, not {in_digits(reason.read, unit)}"
    if abs(reason.z_given) >= USUAL and found is not None and reason.expected != reason.read:
        away = f"{deviations(found.size)} standard deviations {'high' if found.size > 0 else 'low'}"
        if not known:
            return f"by its level before it reads {away} ({beside})"
        return f"{difference_of(suspect)} reads {away} ({beside})"
    scatter = f"{difference_of(suspect)} scatters by {deviations(found.scatter)} standard deviations" if found else ""
    course = next((each for each in incident.courses if each.sensor == suspect.sensor), None)
    count, windows = (0, 0) if course is None else outside(incident, course)
    if scatter and known and found is not None and found.scatter >= _SCATTERED:
        return f"{scatter}, where 1 is usual, and is outside its band in {count} of {windows} windows"
    band = f"the band that {joined(known)} predict{'s' if len(known) == 1 else ''}" if known else "its band"
    if count > _OUTSIDE * windows:
        share = f"{percent(count / windows)}, where {percent(_OUTSIDE)} is usual"
        return f"{count} of {windows} windows of the incident are outside {band} ({share})"
    return f"window by window it no longer follows {joined(known) or 'its own past'}"


def difference_of(suspect: Suspect) -> str:
    """The difference that shows the fault, with its largest weights: PT-402 - 0.6 PT-401 - 0.3 LT-401."""
    assert suspect.difference is not None
    weights = dict(suspect.difference.weights)
    shown = [suspect.sensor]
    for name, _ in suspect.reason.predictors[:_PREDICTORS]:
        shown.append(f"{'-' if weights[name] < 0 else '+'} {abs(weights[name]):.2g} {name}")
    return " ".join(shown)


def outside(incident: Incident, course: Course) -> tuple[int, int]:
    """In how many windows of the incident a sensor was outside its band, and how many there are."""
    there = np.isfinite(course.read) & (course.starts >= incident.began)
    if incident.ended is not None:
        there &= course.starts < incident.ended
    with np.errstate(invalid="ignore"):
        beyond = (course.read < course.low) | (course.read > course.high)
    return int((beyond & there).sum()), int(there.sum())


def unit_of(suspect: Suspect) -> float:
    """What matters of a reading: the error of the size, else the size, else the reading."""
    interval = suspect.size_raw_interval
    units = (0.5 * (interval.high - interval.low), suspect.size_raw, 0.01 * suspect.reason.expected)
    return next((abs(unit) for unit in units if math.isfinite(unit) and unit), 1.0)


def kind_of(suspect: Suspect) -> str:
    """The kind of fault, with its direction where it has one; nothing for a sensor that is not named."""
    if not suspect.named:
        return ""
    word = _WORDS.get(suspect.kind, suspect.kind)
    if suspect.kind in SIGNED and suspect.size_raw and math.isfinite(suspect.size_raw):
        return f"{word} {'up' if suspect.size_raw > 0 else 'down'}"
    return word
