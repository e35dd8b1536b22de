"""A recording, investigated: windows in, an answer out, with nothing to guess."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from eccaht.base.arrays import Array, check_alpha
from eccaht.base.clock import Clock
from eccaht.base.presentation.text import listed, percent
from eccaht.plants.answer import Answer, Checked, Incident, Interval, Reason, Suspect, Verdict
from eccaht.plants.data.windows import Moved, Windows, coarser
from eccaht.plants.incident.alarms import Run, run_engine
from eccaht.plants.incident.checks import checked_in, settling
from eccaht.plants.incident.counts import Drilled, kept
from eccaht.plants.incident.describe import SEEN, Case, gaps_before, incident_of
from eccaht.plants.incident.faults import MOST_FAULTY
from eccaht.plants.incident.naming import DatedIncident, incidents_of, stretch_of, unnamed
from eccaht.plants.model.model import Model
from eccaht.plants.model.residuals import Normal
from eccaht.plants.tuning import TUNING

MANY = 0.5  # share of the sensors; where more are named, it may be the plant that changed
_FASTER, _SLOWER = 0.67, 1.5  # of the history's interval between rows
_OUTSIDE = 0.5  # share of the windows outside of everything in the history that is another operating point
_MORE_GAPS = 0.05  # of the readings, beyond what the history had
OUTSIDE = "lie outside of everything in the history"
_SHOWN = 5  # names in a line
SHORT_HISTORY = 100  # windows: fewer cannot say what is rare
_SUSPICIOUS = 0.03  # share of quiet stretches in which a detector comes as close to its threshold
_SPREADS = 4.0  # of a column whose readings are uniform are a little less than its range
_EMPTY = 0.2  # share of windows without any reading
_FAR_OUTSIDE = 0.5  # of a sensor's range in the history; operating points that are new lie nearer


def compare(model: Model, windows: Windows, first: int = 0, last: int | None = None) -> tuple[Normal, list[str]]:
    """Normal operation for data like these, and one line for each way in which they are unlike the history."""
    assert model.normal is not None
    normal, found = resolved(model, windows.decimals)
    return normal, [*found, *_unlike(model, windows, windows.values[first:last])]


def resolved(model: Model, decimals: dict[str, int | None] | None) -> tuple[Normal, list[str]]:
    """Normal operation of readings with so many decimals, and what to say of it; decimals: by sensor."""
    assert model.normal is not None
    history = model.reading.get("decimals") or {}
    if not decimals or not history:
        return model.normal, []
    known = {name: history[name] for name in model.names if name in history and name in decimals}
    compared = coarser(
        known, {name: decimals[name] for name in known}, dict(zip(model.names, model.scale, strict=True))
    )
    if not compared:
        return model.normal, []
    steps = np.zeros(len(model.names))
    for name in compared:
        places = decimals[name]
        k = model.names.index(name)
        steps[k] = 0.0 if places is None else 10.0**-places / model.scale[k]
    rows = max(model.usual_rows, 1.0)  # means of many rows are rounded less
    line = (
        f"the new data are rounded more than the history ({listed(compared, _SHOWN)}): what rounding adds is "
        "taken as usual; calibrate on a history with the same decimals to be exact"
    )
    return model.normal.rounded(steps / np.sqrt(rows)), [line]


def _unlike(model: Model, windows: Windows, values: Array) -> Iterator[str]:
    """How the interval between rows, the range and the gaps of these windows, (T, K), differ from the history."""
    usual, now, counted = float(model.reading.get("interval") or 0.0), windows.interval, model.clock.counted
    if now is not None and usual and not counted and not _FASTER < now / usual < _SLOWER:
        length = model.clock.length
        yield (
            f"rows are {length(now)} apart, in the history {length(usual)}: means of windows vary "
            "otherwise than in the history; calibrate on rows of the same interval"
        )
    if away := outside_of(model, values):
        yield (
            f"most readings of {listed(away, _SHOWN)} {OUTSIDE}: a fault, or an operating point that the history does "
            "not have; in that case add these rows to it ('eccaht calibrate --update')"
        )
    missing = np.isnan(values).mean(axis=0)
    imputed = np.array([column.imputed for column in model.columns if column.kept])
    more = [name for name, share, was in zip(model.names, missing, imputed, strict=True) if share > was + _MORE_GAPS]
    if more:
        yield f"more readings are missing than in the history ({listed(more, _SHOWN)}): what is missing is not judged"


def outside_of(model: Model, values: Array, beyond: float = 0.0) -> list[str]:
    """Sensors whose readings, (T, K), lie outside of everything in the history most of the time.

    beyond: by at least how much, as a share of the sensor's range in the history.
    """
    assert model.normal is not None
    low, high = model.normal.low, model.normal.high
    margin = beyond * (high - low)
    outside = ((values < low - margin) | (values > high + margin)).sum(axis=0)  # never for NaN
    present = np.maximum((~np.isnan(values)).sum(axis=0), 1)
    return [name for name, share in zip(model.names, outside / present, strict=True) if share > _OUTSIDE]


def elsewhere_of(model: Model, incidents: Sequence[Incident], windows: Windows, first: int, last: int) -> str:
    """Why most of the sensors are named: the plant is where the history never was, from the first window on.

    Drills put faults into a few sensors of a plant that runs as in the history, so they say nothing of this. "" where
    the data begin as the history was, or fewer sensors are named.
    """
    sensors, away = len(model.names), outside_of(model, windows.values[first:last])
    begun = [each for each in incidents if each.began_interval[0] <= windows.starts[0]]
    if not begun or len(away) <= MANY * sensors or max(len(each.named) for each in begun) <= MANY * sensors:
        return ""
    return (
        f"which sensors are wrong: {len(away)} of {sensors} read outside of everything in the history from the first "
        "window on, and no drill was like that"
    )


Number = int | tuple[int, int] | None


@dataclass(frozen=True)
class _Question:
    """What was asked of windows [first, last); lacking: sensors of the model without a column in the data."""

    first: int
    last: int
    number: Number
    least: float | None
    alpha: float
    located: bool
    lacking: tuple[str, ...]


def investigate_incident(
    model: Model,
    windows: Windows,
    start: int | None = None,
    stop: int | None = None,
    *,
    locate: bool = True,
    number: Number = None,
    least: float | None = None,
    alpha: float = 0.05,
    every: float | None = None,
    moved: Sequence[Moved] = (),
) -> Answer:
    """Find the incidents in windows [start, stop): when each began and ended, which sensors are wrong, how and why.

    windows: of the sensors of the model, in its order; those before `start` say what was normal just before. Sensors
    that are left out are integrated out. locate: False: the stretch itself is one incident. number: how many sensors
    are wrong, or at least and at most, if that is known. least: the smallest deviation that matters, in robust units.
    alpha: 1 less the confidence of a confident answer. every: windows to a false alarm; what the history can carry if
    not given. moved: columns that never changed in the history and do now, see `Windows.moved`.
    """
    whole, model = model, _of_windows(model, windows)
    first, last = start or 0, len(windows.values) if stop is None else min(stop, len(windows.values))
    if last <= first:
        limited = start is not None or stop is not None
        raise ValueError(
            f"there is no window to look at: {'move the start or the stop' if limited else 'the data have no rows'}"
        )
    every = model.usual_rate if every is None else every
    lacking = tuple(name for name in whole.names if name not in model.names)
    asked = _Question(first, last, _others(number, len(moved)), least, check_alpha(alpha), not locate, lacking)
    normal, compared = compare(model, windows, first, last)
    seen = replace(windows, values=windows.values[:last], starts=windows.starts[:last])
    run = run_engine(normal, seen.values, every, gaps=model.longest_gaps, missing=gaps_before(seen))
    found = _found(normal, run, asked)
    drilled = kept(whole)
    uncounted = tuple(_uncounted(drilled, asked, model))
    drills = None if uncounted else drilled
    cases = [_large(Case(normal, run, each, model, seen), least) for each in found]
    incidents = [_answered(case, drills, asked) for case in cases if case.found.naming.named]
    evidence = float(run.passed[first:last].max())
    near = last - first + TUNING.cluster_gap_windows  # where a peak is whose cluster reaches into the stretch
    expected = _alarm_rate(every, drilled) * near * float(np.exp(-evidence))
    looked_at = incident_of(Case(normal, run, _unnamed(normal, run, asked, expected), model, seen), None, False)
    if moved:
        unchanged = model.n_windows / (model.n_windows + last - first)  # if it is as likely to change in each window
        incidents = _with_moved(incidents, moved, looked_at, min(unchanged, SEEN))
    if elsewhere := elsewhere_of(model, incidents, windows, first, last):
        unlike: dict[str, Any] = {"confidence": None, "confident": False, "checks": (), "judge": None}
        incidents = [replace(each, **unlike) for each in incidents]  # no drill was like this
        doubts = [elsewhere]
    else:
        quiet_so_far = not found and not incidents
        doubts = list(_doubts(model, run.values[first:], evidence, expected, looked_at)) if quiet_so_far else []
    verdict: Verdict = "undecided" if doubts else "wrong" if incidents else "nothing"
    return Answer(
        verdict=verdict,
        incidents=tuple(incidents),
        looked_at=looked_at,
        first=windows.starts[first],
        last=windows.starts[last - 1],
        n_windows=last - first,
        evidence=evidence,
        alpha=asked.alpha,
        every=every,
        quiet=None if drills is None or verdict != "nothing" else drills.counts.found_share,
        doubts=tuple(doubts),
        cautions=(*compared, *uncounted, *_cautions(incidents, drills is not None, len(model.names), elsewhere)),
        compared=tuple(compared),
        drill="" if drilled is None else drilled.counts.line(model.timed_seconds),
        clock=windows.clock,
    )


def _of_windows(model: Model, windows: Windows) -> Model:
    if model.normal is None or model.normal.local is None:
        raise ValueError("the model does not say what is normal: calibrate on a history of at least 40 windows")
    if windows.names == model.names:
        return model
    part = model.of(windows.names)
    if windows.names != part.names:
        raise ValueError("the windows must have the sensors of the model, in its order: use model.prepare")
    return part


def _found(normal: Normal, run: Run, asked: _Question) -> list[DatedIncident]:
    """The incidents that lie in the stretch, at least in part; with a given number each names so many."""
    if asked.located:
        return [stretch_of(normal, run, asked.first, asked.last, _within(asked.number, None))]
    found = [each for each in incidents_of(normal, run) if (each.dates.end or asked.last) > asked.first]
    if asked.number is None:
        return found
    if not found and _within(asked.number, 0):
        found = [stretch_of(normal, run, asked.first, asked.last)]
    return [_renumbered(normal, run, each, asked) for each in found]


def _others(number: Number, moved: int) -> Number:
    """The number of sensors that are wrong besides columns that moved."""
    if number is None or isinstance(number, int):
        return None if number is None else max(number - moved, 0)
    return max(number[0] - moved, 0), max(number[1] - moved, 0)


def _renumbered(normal: Normal, run: Run, found: DatedIncident, asked: _Question) -> DatedIncident:
    number = _within(asked.number, len(found.naming.named))
    if number == len(found.naming.named):
        return found
    stop = asked.last if found.dates.end is None else found.dates.end
    again = stretch_of(normal, run, found.dates.onset, stop, number)
    return replace(again, dates=found.dates, changed=found.changed)


def _within(number: Number, named: int | None) -> int | None:
    """The number of sensors to name: a range moves it to its nearest end."""
    if number is None or isinstance(number, int):
        return number
    return number[0] if named is None else min(max(named, number[0]), number[1])


def _large(case: Case, least: float | None) -> Case:
    """The incident without sensors whose deviation from what the others predict is below what matters."""
    if least is None:
        return case
    naming, wrong = case.found.naming, case.found.wrong
    sizes = {suspect.sensor: abs(suspect.size) for suspect in incident_of(case, None, False).sensors}
    named = tuple(k for k in naming.named if k in wrong or sizes[case.model.names[k]] >= least)
    order = (*named, *(k for k in naming.order if k not in named))
    return replace(case, found=replace(case.found, naming=replace(naming, named=named, order=order)))


def _answered(case: Case, drilled: Drilled | None, asked: _Question, checked: tuple[Checked, ...] = ()) -> Incident:
    """An incident as it is given the checks that were made, with those that would settle it."""
    windows = case.stop - case.found.dates.onset
    confidence = None if drilled is None else drilled.confidence(case.found, case.kinds, windows)
    settled, shown, checks = settling(case, confidence, checked, asked.alpha, asked.number)
    return incident_of(
        shown,
        settled,
        settled is not None and settled >= 1.0 - asked.alpha,
        checks=checks,
        checked=checked,
        judge=partial(_with_check, case, drilled, asked, checked),
    )


def _with_check(
    case: Case, drilled: Drilled | None, asked: _Question, checked: tuple[Checked, ...], sensor: str, *reading: Any
) -> Incident:
    found = checked_in(case, sensor, *reading)
    return _answered(case, drilled, asked, (*(each for each in checked if each.sensor != sensor), found))


def _unnamed(normal: Normal, run: Run, asked: _Question, expected: float) -> DatedIncident:
    """The whole stretch with no sensor named; expected: as `_doubts` takes it."""
    found = stretch_of(normal, run, asked.first, asked.last, number=0)
    return replace(found, naming=unnamed(found.naming, -float(np.expm1(-expected))), wrong={})


def _with_moved(
    incidents: list[Incident], moved: Sequence[Moved], looked_at: Incident, belief: float
) -> list[Incident]:
    """The incidents with columns that never changed in the history and do now, each in the one that it falls into.

    Those that fall into none are one more, which weighs nothing: no evidence says how much they mean. belief: in each.
    """
    joined = list(incidents)
    for column in sorted(moved, key=lambda each: each.since):
        lasting = [k for k, each in enumerate(joined) if each.lasts(column.since)]
        if not lasting:
            began = (column.since, column.since)
            alone = replace(looked_at, began=column.since, began_interval=began, ended=None, weight=0.0, courses=())
            joined.append(alone)
            lasting = [len(joined) - 1]
        place = min(lasting, key=lambda k: abs(joined[k].began - column.since))
        joined[place] = _beside(joined[place], _moved(column, looked_at.clock, belief))
    return sorted(joined, key=lambda incident: incident.began)


def _beside(incident: Incident, suspect: Suspect) -> Incident:
    """The incident with a column that moved, also after a check."""
    sensors, judge = incident.sensors, incident.judge
    above = next((k for k, each in enumerate(sensors) if not _comes_before(each, suspect)), len(sensors))
    again = None if judge is None else lambda *check: _beside(judge(*check), suspect)
    return replace(incident, sensors=(*sensors[:above], suspect, *sensors[above:]), judge=again)


def _comes_before(sensor: Suspect, moved: Suspect) -> bool:
    """Of sensors out of range the farthest comes first."""
    if not sensor.named:
        return False
    if sensor.kind == moved.kind == "range":
        return abs(sensor.reason.z_alone) >= abs(moved.reason.z_alone)
    return sensor.belief >= moved.belief


def _moved(column: Moved, clock: Clock, belief: float) -> Suspect:
    """A column that is no sensor and reads what it never did: no evidence weighs it, it is seen."""
    by, unknown = column.read - column.usual, float("nan")
    ranges = by / column.width if column.width else unknown
    return Suspect(
        sensor=column.name,
        named=True,
        belief=SEEN if column.width else belief,
        evidence=unknown,
        needed=unknown,
        kind="range" if column.width else "moved",
        size=unknown,
        size_raw=by,
        size_raw_interval=Interval(by, by),
        reason=Reason(_SPREADS * ranges, unknown, (), column.read, column.usual),
        began=column.since,
        clock=clock,
    )


def _alarm_rate(every: float, drilled: Drilled | None) -> float:
    """False alarms a window: those that are asked for, or those of drills on the history if they were more."""
    measured = 0.0 if drilled is None else drilled.counts.quiet.alarms / max(drilled.counts.quiet.windows, 1)
    return max(1.0 / every, measured)


def _doubts(model: Model, values: Array, evidence: float, expected: float, looked_at: Incident) -> Iterator[str]:
    """Why it is not certain that nothing is wrong in windows without an alarm, (T, K), each with what would decide.

    evidence: of the detectors; expected: how many such peaks so many quiet windows show.
    """
    if expected < _SUSPICIOUS:
        suspect = looked_at.others[0]
        yield (
            f"a detector came within {max(-evidence, 0.0):.1f} nats of its threshold, which "
            f"{percent(expected)} of quiet stretches as long show; {suspect.sensor} is the most suspect, and a longer "
            "recording would decide"
        )
    empty = float(np.isnan(values).all(axis=1).mean())
    if empty > _EMPTY:
        yield f"{percent(empty)} of the windows hold no reading at all; look at what records the data"
    assert model.normal is not None
    low, high = model.normal.low, model.normal.high
    far = np.any((values < 2.0 * low - high) | (values > 2.0 * high - low), axis=0).tolist()
    mostly = outside_of(model, values, _FAR_OUTSIDE)
    away = [name for name, once in zip(model.names, far, strict=True) if once or name in mostly]
    if away:
        yield (
            f"readings of {listed(away)} lie outside of everything in the history; look at the sensor, or calibrate on "
            "a history that has this operating point"
        )


def _uncounted(drilled: Drilled | None, asked: _Question, model: Model) -> Iterator[str]:
    """Why no drill has counted how often such an answer is right; nothing where drills have."""
    none = "no confidence was estimated"
    if drilled is None:
        why = (
            "the history is too short for them"
            if model.n_windows < SHORT_HISTORY
            else "drill the model, as 'eccaht calibrate' does"
        )
        yield f"no drills, so how often such an answer is right is not known: {why}"
        return
    if not drilled.counts.holds:
        yield f"in drills on the history confident answers were wrong too often, so {none}"
    if asked.lacking:
        yield f"drills were run with all sensors; without {listed(asked.lacking)} {none}"
    if asked.number is not None or asked.least is not None:
        yield f"drills were run without a given number or smallest size, with which {none}"


def _cautions(incidents: Sequence[Incident], drilled: bool, sensors: int, elsewhere: str) -> Iterator[str]:
    if elsewhere:
        return  # which says more
    largest = max(incidents, key=lambda incident: incident.weight, default=None)
    if drilled and largest is not None and largest.confidence is None:
        more = len(largest.named) > MOST_FAULTY
        few = f"drills have at most {MOST_FAULTY} wrong sensors" if more else "drills have too few answers of this kind"
        yield f"{few}, so no confidence was estimated"
    for incident in incidents:
        if len(incident.named) > MANY * sensors:
            many = f"{len(incident.named)} of {sensors} sensors are named"
            yield f"{many}: it may be the plant that changed, not its sensors"
            return
