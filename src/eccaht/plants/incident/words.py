"""An answer in words, for a terminal of a hundred columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from eccaht.base.clock import PLAIN, Clock
from eccaht.base.presentation.text import columns, confident, counted, listed
from eccaht.plants.incident.answer import Answer, Incident, Suspect
from eccaht.plants.incident.names import shown_briefly
from eccaht.plants.incident.phrases import amount, belief, deviations, kind_of, moment, places, shortened, sized
from eccaht.plants.incident.why import disagreements, why

WIDTH = 100
LEGEND = (
    "alone: deviations from its own level before; given: from what the other sensors predict;",
    "by z, by M: place by z-score against the hour before, by Mahalanobis contribution.",
)
_HEADER = ("", "sensor", "belief", "kind", "size (95 %)", "alone", "given", "by z", "by M")
_NAMED, _OTHERS, _REASONS = 20, 4, 10  # rows of named and other sensors, and sensors whose reasons are given
_LISTED = 6  # names in the headline
_INCIDENTS = 20  # lines of incidents


def lines(answer: Answer, clock: Clock = PLAIN) -> list[str]:
    """Everything that a person should know: how the data differ from the history, then the answer in short and long."""
    answer, cut = shown_briefly(answer)
    others = [text for text in answer.cautions if text not in answer.compared]
    return [
        *_wrapped(f"CAUTION: {text}" for text in answer.compared),
        *_wrapped([headline(answer, clock)]),
        *incidents(answer, clock),
        "",
        *columns(table(answer)),
        *LEGEND,
        *_wrapped([f"Names are shown without {cut}"] if cut else []),
        "",
        *_wrapped([confidence(answer), evidence(answer, clock), runner_up(answer)]),
        *_wrapped(f"Why: {text}" for text in reasons(answer, clock)[:_REASONS]),
        *([f"Why {len(answer.named) - _REASONS} more: see --json or --html"] if len(answer.named) > _REASONS else []),
        *_wrapped(disagreements(answer.largest)),
        *_wrapped(f"CAUTION: {text}" for text in others),
        *_wrapped([answer.drill] if answer.drill else []),
    ]


def headline(answer: Answer, clock: Clock = PLAIN) -> str:
    """The verdict: which sensors are wrong, how, since when and until when."""
    if answer.verdict == "undecided":
        return f"Undecided: {'; '.join(answer.doubts) or 'the data cannot show whether a sensor is wrong'}."
    if not answer.incidents:
        what = "Nothing is wrong" + ("" if answer.sure else ", as far as these windows show")
        return f"{what}: {_stretch(answer, clock)}, and no detector reaches its threshold."
    largest, n = answer.largest, len(answer.named)
    many = f"; the largest of {len(answer.incidents)} incidents" if len(answer.incidents) > 1 else ""
    verdict = f"{n} of {counted(len(answer.sensors), 'sensor')} {_is_wrong(largest)} {when(largest, clock)}"
    return f"{verdict}: {_suspects(largest)}{many}"


def incidents(answer: Answer, clock: Clock = PLAIN) -> list[str]:
    """A line an incident, in order of time; none where there is only one."""
    if len(answer.incidents) < 2:
        return []
    found = [f"  {when(each, clock)}: {_suspects(each)}{_estimated(each)}" for each in answer.incidents[:_INCIDENTS]]
    more = len(answer.incidents) - _INCIDENTS
    shown = [f"{len(answer.incidents)} incidents in order of time:", *_wrapped(found, "  ")]
    return [*shown, f"  and {more} more: see --json"] if more > 0 else shown


def when(incident: Incident, clock: Clock = PLAIN) -> str:
    """Since when, with the interval, and until when."""
    (low, high), onset = incident.onset_interval, incident.onset
    since = moment(clock, onset)
    if low != high:
        since += f" ({moment(clock, low, onset)} to {moment(clock, high, onset)})"
    if incident.changed:
        return f"since {since}, a change that lasts"
    if incident.end is None:
        return f"since {since}, still going on at the end of the data"
    return f"from {since} until {moment(clock, incident.end, onset)}"


def table(answer: Answer, others: int = _OTHERS, width: int = WIDTH) -> list[list[str]]:
    """Header and rows: the named sensors, then the next ones; names are shortened until a line fits the width."""
    ranks, named = places(answer.largest), answer.named
    rows = [list(_HEADER)]
    for place, suspect in enumerate(answer.sensors, 1):
        if place <= min(len(named), _NAMED) or len(named) < place <= len(named) + others:
            rows.append([f"{place} {'named' if suspect.named else '-'}", *_cells(suspect, ranks)])
    if len(named) > _NAMED:
        rows.insert(_NAMED + 1, ["...", f"{len(named) - _NAMED} more named", *[""] * (len(_HEADER) - 2)])
    taken = sum(max(map(len, column)) + 2 for k, column in enumerate(zip(*rows, strict=True)) if k != 1)
    for row in rows[1:]:
        row[1] = shortened(row[1], max(8, width - taken))
    return rows


def confidence(answer: Answer) -> str:
    """How confident the answer is, or that no drill says."""
    if answer.verdict == "undecided":
        return "Confidence: none, since it is undecided whether anything is wrong."
    if answer.confidence is None:
        return "Confidence: none was estimated (see the cautions)."
    asked = confident(1.0 - answer.alpha)
    judged = f"{asked} is asked for" if answer.sure else f"not confident: {asked} is asked for"
    if not answer.incidents:
        found = f"{confident(answer.confidence)} of the faults in drills on your own history were found"
        return f"Confidence: {found}, and none was found here ({judged})."
    if answer.confidence == 0.0:
        return f"Confidence: no drill with such evidence was right ({judged})."
    claim = f"{confident(answer.confidence)} that {_claim(answer)}"
    return f"Confidence: {claim}, estimated in drills on your own history ({judged})."


def evidence(answer: Answer, clock: Clock = PLAIN) -> str:
    """By how much the detectors pass their thresholds, and what was looked at."""
    beyond = f"{amount(abs(answer.evidence))} nats {'beyond' if answer.evidence > 0.0 else 'below'} the threshold"
    rate = f"of one false alarm in {counted(round(answer.every), 'window')}"
    return f"Evidence: {beyond} {rate}. Looked at: {_stretch(answer, clock)}{clock.said}."


def runner_up(answer: Answer) -> str:
    """The strongest sensor that was not named; nothing if there is none."""
    found = next((suspect for suspect in answer.sensors if not suspect.named), None)
    if found is None:
        return ""
    title = "Runner-up" if answer.named else "Closest to being named"
    given = f"{deviations(found.reason.z_given)} deviations given the others"
    shown = f"evidence of {amount(found.evidence)} nats"
    enough = f"where {amount(found.needed)} are needed"
    if found.evidence > found.needed:
        enough = f"more than the {amount(found.needed)} that are needed, but " + (
            "it comes after one that lacks them" if answer.named else "no detector reaches its threshold"
        )
    return f"{title}: {found.sensor} (belief {belief(found.belief)}), {given}; {shown}, {enough}."


def reasons(answer: Answer, clock: Clock = PLAIN) -> list[str]:
    """Why each of the named sensors of the largest incident, the most suspect first."""
    return [why(answer.largest, suspect, clock) for suspect in answer.sensors if suspect.named]


def _is_wrong(incident: Incident) -> str:
    """The verb of a headline: what is over was, what is confident is."""
    one = len(incident.named) == 1
    if incident.changed:
        return ("has changed" if one else "have changed") if incident.sure else f"seem{'s' * one} to have changed"
    if incident.end is None:
        return ("is wrong" if one else "are wrong") if incident.sure else f"seem{'s' * one} to be wrong"
    return ("was wrong" if one else "were wrong") if incident.sure else f"seem{'s' * one} to have been wrong"


def _suspects(incident: Incident) -> str:
    suspects = [suspect for suspect in incident.sensors if suspect.named]
    named = [f"{suspect.sensor} ({kind_of(suspect)})" for suspect in suspects]
    return listed(named, _LISTED)


def _estimated(incident: Incident) -> str:
    return "" if incident.confidence is None else f", confidence {confident(incident.confidence)}"


def _claim(answer: Answer) -> str:
    """What the confidence is about: sensors that the evidence names, beside those that are seen to have moved."""
    moved = [suspect.sensor for suspect in answer.sensors if suspect.kind == "moved" and suspect.named]
    if not moved:
        return "exactly these sensors are wrong"
    return f"exactly the other named sensors are wrong, {listed(moved)} aside"


def _cells(suspect: Suspect, ranks: dict[str, dict[str, int]]) -> list[str]:
    reason = suspect.reason
    cells = [suspect.sensor, belief(suspect.belief), kind_of(suspect)]
    cells += [sized(suspect.size_raw, suspect.size_raw_interval)]
    cells += [deviations(z, "+") for z in (reason.z_alone, reason.z_given)]
    return cells + [str(ranks.get(name, {}).get(suspect.sensor, "-")) for name in ("z_local", "mahalanobis")]


def _stretch(answer: Answer, clock: Clock) -> str:
    span = f"from {moment(clock, answer.first)} to {moment(clock, answer.last, answer.first)}"
    return f"{counted(answer.n_windows, 'window')} {span}"


def _wrapped(texts: Iterable[str], indent: str = "") -> list[str]:
    wrap = textwrap.TextWrapper(WIDTH, indent, f"{indent}    ", break_on_hyphens=False)
    return [line for text in texts for line in wrap.wrap(text.strip())]
