"""An answer in words, for a terminal of a hundred columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from eccaht.data.clock import PLAIN, Clock
from eccaht.incident.answer import Answer, Suspect
from eccaht.incident.names import shown_briefly
from eccaht.incident.phrases import amount, deviations, kind_of, moment, places, shortened, sized
from eccaht.incident.why import disagreements, why
from eccaht.presentation.text import columns, confident, counted, listed

WIDTH = 100
LEGEND = (
    "alone: deviations from its own level before; given: from what the other sensors predict;",
    "by z, by M: place by z-score against the hour before, by Mahalanobis contribution.",
)
_HEADER = ("", "sensor", "belief", "kind", "size (95 %)", "alone", "given", "by z", "by M")
_NAMED, _OTHERS, _REASONS = 20, 4, 10  # rows of named and other sensors, and sensors whose reasons are told
_LISTED = 6  # names in the headline


def lines(answer: Answer, clock: Clock = PLAIN) -> list[str]:
    """Everything that a person should know, the most important first."""
    answer, cut = shown_briefly(answer)
    return [
        *_wrapped([headline(answer, clock)]),
        "",
        *columns(table(answer)),
        *LEGEND,
        *_wrapped([f"Names are shown without {cut}"] if cut else []),
        "",
        *_wrapped([confidence(answer), evidence(answer, clock), runner_up(answer)]),
        *_wrapped(f"Why: {text}" for text in reasons(answer, clock)[:_REASONS]),
        *([f"Why {len(answer.named) - _REASONS} more: see --json or --html"] if len(answer.named) > _REASONS else []),
        *_wrapped(disagreements(answer)),
        *_wrapped(f"CAUTION: {text}" for text in answer.cautions),
        *_wrapped([answer.drill] if answer.drill else []),
    ]


def headline(answer: Answer, clock: Clock = PLAIN) -> str:
    """Which sensors are wrong, how, and since when."""
    n, total = len(answer.named), len(answer.sensors)
    if not n:
        what = "Nothing is wrong" + ("" if answer.sure else ", as far as these windows tell")
        return f"{what}: {_stretch(answer, clock)}, and no set of sensors reaches the evidence that is needed."
    seem = ("is" if n == 1 else "are") if answer.sure else "seems to be" if n == 1 else "seem to be"
    suspects = [suspect for suspect in answer.sensors if suspect.named]
    named = [f"{suspect.sensor} ({kind_of(suspect)})" for suspect in suspects[:_LISTED]]
    more = f" and {n - _LISTED} more" if n > _LISTED else ""
    return f"{n} of {counted(total, 'sensor')} {seem} wrong{onset(answer, clock)}: {', '.join(named)}{more}"


def onset(answer: Answer, clock: Clock = PLAIN) -> str:
    """Since when, with the interval."""
    if answer.onset is None:
        return ""
    since = f" since {moment(clock, answer.onset)}"
    if answer.onset_interval is None or answer.onset_interval[0] == answer.onset_interval[1]:
        return since
    low, high = (moment(clock, end, answer.onset) for end in answer.onset_interval)
    return f"{since} ({low} to {high})"


def table(answer: Answer, others: int = _OTHERS, width: int = WIDTH) -> list[list[str]]:
    """Header and rows: the named sensors, then the next ones; names are shortened until a line fits the width."""
    ranks, named = places(answer), answer.named
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
    """How sure it is, or that nobody can say."""
    what = _claim(answer)
    if answer.confidence is None:
        model = f"{confident(answer.posterior)} that {what}"
        return f"Confidence: none was counted (see the cautions). The model by itself says {model}."
    asked = confident(1.0 - answer.alpha)
    reached = answer.confidence >= 1.0 - answer.alpha
    doubt = "but see the cautions" if reached else f"not sure: {asked} is asked for"
    judged = f"{asked} is asked for" if answer.sure else doubt
    if answer.confidence == 0.0:
        none = "no drill with such evidence was right" if answer.named else "no drill that named nothing was right"
        return f"Confidence: {none} ({judged})."
    told = ", which were told where to look" if answer.searched else ""
    return f"Confidence: {confident(answer.confidence)} that {what}, counted in drills{told} ({judged})."


def _claim(answer: Answer) -> str:
    """What the confidence is about: sensors that the evidence names, beside those that are seen to have moved."""
    moved = [suspect.sensor for suspect in answer.sensors if suspect.kind == "moved" and suspect.named]
    if not moved:
        return "exactly these sensors are wrong" if answer.named else "nothing is wrong"
    others = "exactly the other named sensors are" if len(answer.named) > len(moved) else "nothing else is"
    return f"{others} wrong, {listed(moved)} aside"


def evidence(answer: Answer, clock: Clock = PLAIN) -> str:
    """How much the readings speak for the named sensors, and how much is needed."""
    found = f"{amount(answer.evidence)} (-log of the share of quiet stretches as unusual); {amount(answer.threshold)}"
    return f"Evidence: {found} is needed. Looked at: {_stretch(answer, clock)}{clock.said}."


def runner_up(answer: Answer) -> str:
    """The strongest sensor that was not named; nothing if there is none."""
    found = next((suspect for suspect in answer.sensors if suspect.sensor == answer.runner_up), None)
    if found is None:
        return ""
    title = "Runner-up" if answer.named else "Closest to being named"
    given = f"{deviations(found.reason.z_given)} deviations given the others"
    needed = f"where {amount(found.needed)} are needed"
    if found.evidence > found.needed:
        why_not = "too little to tell it from chance" if answer.named else "but the windows as a whole are not unusual"
        needed = f"more than the {amount(found.needed)} that are needed, {why_not}"
    gain = f"naming it would add {amount(found.evidence)} nats of evidence, {needed}"
    return f"{title}: {found.sensor} (belief {found.belief:.3f}), {given}; {gain}."


def reasons(answer: Answer, clock: Clock = PLAIN) -> list[str]:
    """Why each of the named sensors, the most suspect first."""
    return [why(answer, suspect, clock) for suspect in answer.sensors if suspect.named]


def _cells(suspect: Suspect, ranks: dict[str, dict[str, int]]) -> list[str]:
    reason = suspect.reason
    cells = [suspect.sensor, f"{suspect.belief:.3f}", kind_of(suspect)]
    cells += [sized(suspect.size_raw, suspect.size_raw_interval)]
    cells += [deviations(z, "+") for z in (reason.z_alone, reason.z_given)]
    return cells + [str(ranks.get(name, {}).get(suspect.sensor, "-")) for name in ("z_local", "mahalanobis")]


def _stretch(answer: Answer, clock: Clock) -> str:
    span = f"from {moment(clock, answer.first)} to {moment(clock, answer.last, answer.first)}"
    return f"{counted(answer.n_windows, 'window')} {span}"


def _wrapped(texts: list[str] | Iterator[str]) -> list[str]:
    return [
        line for text in texts for line in textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    ]
