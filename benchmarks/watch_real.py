"""Recorded collections: incidents found, how soon, and false alarms a day, at the same promise for all rules.

Rows are in the order of time: a rule is fitted on the first half of the training rows; its threshold is the lowest with
at most one alarm a day, and at most 5 % of the windows beyond it, in the second half; then it watches the test. An
alarm begins with a window beyond the threshold, no other having been beyond it for an hour. A labelled incident is
found if one of its windows is beyond the threshold and the alarm began in this or another incident. Alarms that begin
in quiet windows are false; the four hours after an incident are not counted as quiet. The watcher of a model takes part
twice: so, and at the threshold that it counts for itself on the first half, at a promise of one false alarm a day.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import watch_plant
from benchmarks.jobs import Row
from benchmarks.watch_rules import RULES, Flags, Make, beyond
from eccaht.arrays import Array, Index
from eccaht.datasets.labelled import Entity, Segment, calibrate_rows, read_entity, scaled_rows

HOUR = {"smd": 60, "asd": 12}  # rows of an hour; other collections are taken to have a row a minute
MOST_FLAGGED = 0.05  # of the windows from which a threshold is taken
AFTERWARDS = 4  # hours after an incident whose alarms count as neither

Statistic = Callable[[Array], Array]  # rows (T, K) as recorded -> statistics (T, m)
Fit = Callable[[Array], Statistic]  # from the rows to learn from


def by_rule(make: Make) -> Fit:
    """A rule on rows in robust units, told their Ledoit-Wolf covariance; metrics that do not vary are left out."""

    def fit(history: Array) -> Statistic:
        model = calibrate_rows(history)
        rule = make(model.covariance.dense())

        def statistic(rows: Array) -> Array:
            rule.start(1)
            return np.concatenate([rule.update(row[None]) for row in scaled_rows(model, rows) - model.mean])

        return statistic

    return fit


WATCHERS: dict[str, Fit] = {name: by_rule(make) for name, make in RULES.items() if "rising" not in name}
WATCHERS[watch_plant.NAME] = lambda history: _column(watch_plant.statistic(history))
OWN = watch_plant.OWN  # brings its own threshold


def _column(statistic: Callable[[Array], Array]) -> Statistic:
    return lambda rows: statistic(rows)[:, None]


def watch(entity: Entity, name: str) -> list[Row]:
    """One row: what was found of how many incidents, the delays in minutes, and false alarms."""
    train, test = read_entity(entity)
    hour = HOUR.get(entity.collection, 60)
    day, half = 24 * hour, len(train) // 2
    if name == OWN:
        flagged = watch_plant.in_alarm(train[:half], day)(test) > 0.5
    else:
        statistic = WATCHERS[name](train[:half])
        thresholds = lowest_thresholds(statistic(train[half:]), hour, (len(train) - half) / day)
        flagged = beyond(statistic(test), thresholds)
    begins, quiet = alarms(flagged, hour), _quiet(len(test), entity.segments, AFTERWARDS * hour)
    delays = [delay for segment in entity.segments if (delay := _delay(segment, flagged, begins, entity)) is not None]
    return [
        {
            "collection": entity.collection,
            "entity": entity.name,
            "watcher": name,
            "incidents": len(entity.segments),
            "found": len(delays),
            "minutes": [60.0 / hour * delay for delay in delays],
            "false": int(quiet[begins].sum()),
            "days": float(quiet.sum() / day),
            "flagged": float(flagged[quiet].sum() / day),
        }
    ]


def _delay(segment: Segment, flagged: Flags, begins: Index, entity: Entity) -> int | None:
    """Windows of the incident before the first flagged one; None if none is, or of an alarm that began elsewhere."""
    found = np.flatnonzero(flagged[segment.start : segment.stop])
    if not found.size:
        return None
    begin = begins[begins <= segment.start + found[0]][-1]
    known = any(other.start <= begin < other.stop for other in entity.segments)
    return int(found[0]) if known else None


def alarms(flagged: Flags, gap: int) -> Index:
    """Where alarms begin: flagged windows without a flagged one among the `gap` windows before.

    >>> alarms(np.array([True, False, True, False, False, True]), 2)
    array([0, 5])
    """
    places = np.flatnonzero(flagged)
    return places[np.diff(places, prepend=-gap - 1) > gap]


def lowest_thresholds(statistics: Array, gap: int, most: float) -> Array:
    """Thresholds, (m,), with at most so many alarms in all: each statistic alone has the same number of them."""
    choices = np.column_stack([_lowest(column, gap, int(most)) for column in statistics.T])
    good = (thresholds for thresholds in choices[::-1] if alarms(beyond(statistics, thresholds), gap).size <= most)
    return np.asarray(next(good))


def _lowest(statistic: Array, gap: int, most: int) -> Array:
    """The lowest thresholds with at most 0, 1, ... `most` alarms, at them and at all higher ones; (most + 1,).

    A statistic that changes slowly never has many alarms, only long ones: hence the limit on windows as well.
    """
    falling = np.argsort(-statistic, kind="stable")
    flagged = np.zeros(statistic.size, dtype=bool)
    found = [float(np.nextafter(statistic[falling[0]], np.inf))]
    for place, after in zip(falling, [*statistic[falling[1:]], -np.inf], strict=True):
        flagged[place] = True
        if statistic[place] > after and (count := alarms(flagged, gap).size) >= len(found):
            found += [found[-1]] * (count - len(found))
            found.append(float(statistic[place]))
        elif statistic[place] > after:
            found[-1] = float(statistic[place])
        if len(found) > most + 1 or flagged.sum() >= MOST_FLAGGED * statistic.size:
            break
    return np.array([*found, *found[-1:] * most][: most + 1])


def _quiet(rows: int, segments: tuple[Segment, ...], afterwards: int) -> Flags:
    quiet = np.ones(rows, dtype=bool)
    for segment in segments:
        quiet[segment.start : segment.stop + afterwards] = False
    return quiet
