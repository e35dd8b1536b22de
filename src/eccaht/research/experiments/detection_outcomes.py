"""One flat record for each recording and method, and what the records of a collection add up to."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from eccaht.base.arrays import Array
from eccaht.base.statistics import f1_score, poisson_interval
from eccaht.research.datasets.labelled import Kind
from eccaht.research.experiments.tables import Table, cells, from_rows

WITHIN: dict[Kind, float] = {"skab": 60.0, "sockshop": 5.0}  # seconds that a right date is off at most
EQUAL = "at_equal_rates"
Measures = dict[str, Any]  # by name: a number, None where there is none, or numbers by recording
Detection = dict[str, dict[str, Measures]]  # by collection and method
WINDOW = 60.0  # seconds
_HIT, _FALSE, _MISSED = 1.0, -0.11, -1.0


@dataclass(frozen=True)
class Outcome:
    """What the alarms of a method made of a recording.

    rate: of false alarms per row, as given to the method. at: has it the threshold for this rate, or the one at which
    as many false alarms were measured as of our engine? on_in_incidents, on_in_quiet: rows in which an alarm is on, or
    what it began lasts as a change; alarm_in_quiet: an alarm itself. lengths, delays, begun: of each incident its rows,
    the rows until one of these was the case, None if none was, and whether an alarm began in it. false_alarms: those
    that began outside of incidents. changes: change points; nab_points: what beginnings and ends of alarms earn as
    detections of them. Of methods that answer more than alarms: dated: seconds from the true beginning, and from the
    true end, to the beginning that is given; None if none is. named, places: of each incident the share of its n
    altered sensors among the first n, and the place of the first of them, None if it has none. headline: is the sensor
    that was at fault among those that are named?
    """

    collection: str
    kind: Kind
    entity: str
    recording: str
    method: str
    at: Literal["given", "measured"]
    rate: float
    rows_a_day: float
    rows: int
    incident_rows: int
    on_in_incidents: int
    on_in_quiet: int
    alarm_in_quiet: int
    alarms: int
    false_alarms: int
    lengths: tuple[int, ...]
    delays: tuple[int | None, ...]
    begun: tuple[bool, ...]
    changes: int
    nab_points: float
    dated: tuple[float, ...] | None = None
    named: tuple[float, ...] = ()
    places: tuple[int | None, ...] = ()
    headline: bool | None = None


def outcomes_table(outcomes: Sequence[Outcome]) -> Table:
    """One row for each recording and method."""
    return from_rows([cells(outcome) for outcome in outcomes])


def summarise_detection(outcomes: Sequence[Outcome]) -> Detection:
    """The measures at the given rate, and below `at_equal_rates` those at the rate measured of our engine."""
    found: dict[str, dict[str, dict[str, list[Outcome]]]] = {}
    for each in outcomes:
        found.setdefault(each.collection, {}).setdefault(each.method, {}).setdefault(each.at, []).append(each)
    return {
        name: {
            method: measures(at["given"]) | {EQUAL: measures(at.get("measured", at["given"]))}
            for method, at in methods.items()
        }
        for name, methods in found.items()
    }


class Score(NamedTuple):
    """A measure by which the methods of a collection compare."""

    key: str
    title: str


OWN_SCORES = (Score("S", "S"), Score("f1", "F1"), Score("flagged_mean", "rows"))


def score_of(methods: dict[str, Measures]) -> Score:
    first = next(iter(methods.values()))
    usual = "found" if "alarms_on_quiet_days" in first else "begun"  # faults of following days have one alarm
    return next((score for score in OWN_SCORES if score.key in first), Score(usual, usual))


def ranked_at_equal_rates(methods: dict[str, Measures]) -> list[tuple[str, float]]:
    """The methods of a collection with their scores, the best first."""
    key = score_of(methods).key
    found = {name: each[EQUAL][key] for name, each in methods.items()}
    return sorted(((name, value) for name, value in found.items() if value is not None), key=lambda item: -item[1])


def measures(outcomes: Sequence[Outcome]) -> Measures:
    """All measures of one method on one collection: those of every kind, and those of its own."""
    kind = outcomes[0].kind
    return _common(outcomes) | (_OWN[kind](outcomes) if kind in _OWN else {}) | _answers(outcomes)


def _answers(outcomes: Sequence[Outcome]) -> Measures:
    """Those of methods that date incidents and rank sensors: none of others."""
    found: Measures = {}
    if dated := [each.dated for each in outcomes if each.dated is not None]:
        within = WITHIN[outcomes[0].kind]
        found[f"dated_within_{within:g}s"] = sum(abs(beginning) <= within for beginning, _ in dated)
        found["dated_at_end"] = sum(abs(end) <= within for _, end in dated)
    if named := [share for each in outcomes for share in each.named]:
        found["altered_at_n"] = float(np.mean(named))
        found["first_place"] = float(np.mean([place for each in outcomes for place in each.places]))
    if roots := [each for each in outcomes if each.headline is not None]:
        places = [place for each in roots for place in each.places]
        for most in (1, 3, 5):
            found[f"root_in_{most}"] = sum(place is not None and place <= most for place in places) / len(roots)
        found["root_in_headline"] = sum(bool(each.headline) for each in roots) / len(roots)
    return found


def _common(outcomes: Sequence[Outcome]) -> Measures:
    delays = [delay for each in outcomes for delay in each.delays]
    seen = [delay for delay in delays if delay is not None]
    quiet = _sum(outcomes, "rows") - _sum(outcomes, "incident_rows")
    days = sum((each.rows - each.incident_rows) / each.rows_a_day for each in outcomes)
    false = _sum(outcomes, "false_alarms")
    given = sum(each.rate * (each.rows - each.incident_rows) for each in outcomes)
    return {
        "incidents": len(delays),
        "found": _share(len(seen), len(delays)),
        "begun": _share(sum(sum(each.begun) for each in outcomes), len(delays)),
        "median_delay_rows": float(np.median(seen)) if seen else None,
        "false_alarms": false,
        "given_false_alarms": given,
        "quiet_days": days,
        "false_alarms_a_day": _share(false, days),
        "false_alarms_a_day_interval": [end / days for end in poisson_interval(false)] if days else None,
        "false_alarms_per_1000_rows": _share(1000 * false, quiet),
        "quiet_time_in_alarm": _share(_sum(outcomes, "alarm_in_quiet"), quiet),
        "given_false_alarms_a_day": _share(given, days),
    }


def _batadal(outcomes: Sequence[Outcome]) -> Measures:
    """S = (S_TTD + S_CM)/2, S_CM = (TPR + TNR)/2 by hours, S_TTD = 1 - mean share of an attack until it is found."""
    late = [
        1.0 if delay is None else delay / length
        for each in outcomes
        for delay, length in zip(each.delays, each.lengths, strict=True)
    ]
    hits, attacked = _sum(outcomes, "on_in_incidents"), _sum(outcomes, "incident_rows")
    tpr = hits / attacked
    tnr = 1.0 - _sum(outcomes, "on_in_quiet") / (_sum(outcomes, "rows") - attacked)
    ttd, cm = 1.0 - float(np.mean(late)), (tpr + tnr) / 2.0
    return {"S": (ttd + cm) / 2.0, "S_TTD": ttd, "S_CM": cm, "TPR": tpr, "TNR": tnr}


def _skab(outcomes: Sequence[Outcome]) -> Measures:
    """By rows, pooled over files; and the NAB score of change points."""
    hits, wrong = _sum(outcomes, "on_in_incidents"), _sum(outcomes, "on_in_quiet")
    anomalous, changes = _sum(outcomes, "incident_rows"), _sum(outcomes, "changes")
    return {
        "f1": float(f1_score(hits, hits + wrong, anomalous)) if wrong + anomalous else None,
        "false_alarm_rate": _share(wrong, _sum(outcomes, "rows") - anomalous),
        "missed_alarm_rate": _share(anomalous - hits, anomalous),
        "files": len(outcomes),
        "files_found": sum(each.on_in_incidents > 0 for each in outcomes),
        "nab": nab_score(sum(each.nab_points for each in outcomes), changes),
    }


def _tep(outcomes: Sequence[Outcome]) -> Measures:
    """The share of rows in alarm after row 160 of each fault, and in the recording without a fault."""
    flagged = {each.recording: each.on_in_incidents / each.incident_rows for each in outcomes if each.lengths}
    quiet = [each for each in outcomes if not each.lengths]
    return {
        "flagged": flagged,
        "flagged_mean": float(np.mean(list(flagged.values()))),
        "flagged_normal_test": _share(_sum(quiet, "on_in_quiet"), _sum(quiet, "rows")),
    }


def _hvac(outcomes: Sequence[Outcome]) -> Measures:
    """Incidents are days."""
    return {
        "fault_days_found": sum(delay is not None for each in outcomes for delay in each.delays),
        "alarms": _sum(outcomes, "alarms"),
        "alarms_on_quiet_days": _sum(outcomes, "false_alarms"),
    }


_OWN: dict[Kind, Callable[[Sequence[Outcome]], Measures]] = {
    "batadal": _batadal,
    "skab": _skab,
    "tep": _tep,
    "hvac": _hvac,
}


def _sum(outcomes: Sequence[Outcome], name: str) -> int:
    return sum(int(getattr(each, name)) for each in outcomes)


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def detection_rows(detection: Detection) -> Iterator[tuple[Any, ...]]:
    """Collection, tier, method, measure, value, interval, incidents: rows of the summary's table."""
    for collection, methods in detection.items():
        for method, each in methods.items():
            for measure in _flat(each):
                yield collection, "detection", method, *measure, each["incidents"]


def _flat(found: Measures, prefix: str = "") -> Iterator[tuple[str, float | None, float | None, float | None]]:
    for measure, value in found.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{measure}, ")
        elif measure != "incidents" and not isinstance(value, list):
            low, high = found.get(f"{measure}_interval") or (None, None)
            yield f"{prefix}{measure}", value, low, high


def nab_points(detections: Array, changes: Array) -> float:
    """What detections of change points earn and cost (Lavin and Ahmad 2015, standard profile); seconds, increasing.

    Each change point opens a window of 60 s. The first detection in it earns what a sigmoid has left, from 1 at once to
    -0.11 at the end of the window; further ones in it count nothing, a window without any costs 1, a detection outside
    of all windows 0.11. A window that begins before the one before has ended begins there. SKAB takes every beginning
    and every end of an alarm as a detection.
    """
    points, outside, last = 0.0, np.ones(len(detections), dtype=bool), -np.inf
    for change in changes:
        start, stop = max(float(change), last), float(change) + WINDOW
        inside = (detections >= start) & (detections <= stop)
        points += _earned((detections[inside][0] - start) / (stop - start)) if inside.any() else _MISSED
        outside &= ~inside
        last = stop
    return float(points + _FALSE * outside.sum())


def _earned(place: float) -> float:
    """By the place of the first detection in the window, from 0 to 1."""
    half = (_HIT - _FALSE) / 2.0
    return float(_FALSE + half * (1.0 - np.tanh(np.pi * (place - 0.5)) / np.tanh(np.pi / 2.0)))


def nab_score(points: float, changes: int) -> float | None:
    """Scaled so that a method without detections has 0 and a perfect one 100; None where there is no change point."""
    return 100.0 * (points - _MISSED * changes) / ((_HIT - _MISSED) * changes) if changes else None
