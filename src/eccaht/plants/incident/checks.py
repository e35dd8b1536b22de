"""The checks that settle which sensors are wrong: candidate sets, and the sensors to read by hand.

Candidates are the sets of at most `MOST_FAULTY` of the most suspect sensors. Given that those of a set S are wrong,
they are free (`naming.py`), and the most contradicted of the other K - |S| sensors has a rarity, which is worth a
likelihood ratio LR >= 1 for a set that names it too. By a chance of one in K of each sensor to be wrong, S has the
weight K^-|S| / LR. The named set has the probability that drills give it, its confidence; the others share the rest by
their weights.

A check says of a sensor whether it is wrong: the candidates that disagree are left out. Which sets a check tells apart
depends on S alone, so that the information in checks of sensors Q is the entropy of S & Q, and they decide where one
candidate is then as probable as a confident answer has to be.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eccaht.base.arrays import Array, as_number, as_positive
from eccaht.plants.answer import Check, Checked
from eccaht.plants.incident.describe import SEEN, Case, Courses, Predictions
from eccaht.plants.incident.faults import MOST_FAULTY
from eccaht.plants.incident.naming import likelihood_ratio, name_sensors
from eccaht.plants.model.local import Before, Local, System, evidence_of, without
from eccaht.plants.tuning import TUNING

SUSPECTS = 7  # whose sets are candidates: each more costs as many eliminations as there are pairs of them
MOST_CHECKS = 3  # that are proposed
_BEYOND = 3.0  # standard deviations of a check, beyond which a sensor that reads otherwise is wrong
_LEAST_INFORMATION = 1e-3  # nats; checks that tell nothing apart are not proposed
_WORTH_IT = 0.1  # the probability to decide, below which checks are not proposed
Set = frozenset[int]
Posterior = Mapping[Set, float]


@dataclass(frozen=True)
class Known:
    """Sensors that were read by hand, and what that showed."""

    sound: Set = frozenset()
    wrong: Set = frozenset()

    def allows(self, sensors: Set) -> bool:
        return self.wrong <= sensors and not self.sound & sensors


NOTHING_KNOWN = Known()


def posterior(case: Courses, confidence: float, known: Known = NOTHING_KNOWN) -> Posterior:
    """The probability of each candidate, the largest first; confidence: in the named set before any check."""
    local, before, rows = _windows(case)
    naming, wrong = case.found.naming, case.found.wrong
    named, certain = frozenset(naming.named), frozenset(wrong) - known.sound
    systems: tuple[System, ...] = local.systems(before, rows)
    for k in certain:
        systems = without(systems, k)
    order = _suspects(local, systems, [k for k in naming.named if k not in wrong], len(rows))
    suspects = [k for k in order if k not in certain][:SUSPECTS]
    suspects += known.wrong.difference(suspects, certain)
    if not known.wrong and known.sound.issuperset(suspects):
        suspects += [k for k in order if k not in known.sound][:SUSPECTS]
    weights = dict(_weighed(local, systems, len(rows), certain, suspects))
    weights.pop(named, None)
    total = sum(weights.values())
    found = {each: (1.0 - confidence) * weight / total for each, weight in weights.items()} | {named: confidence}
    left = {each: share for each, share in found.items() if known.allows(each)}
    total = sum(left.values()) if weights else 1.0  # which other sets there are is not known then
    return {each: left[each] / total for each in sorted(left, key=lambda each: -left[each])}


def _windows(case: Courses) -> tuple[Local, Before, Array]:
    """What names the sensors of an incident: its windows, and those before."""
    local, onset = case.normal.local, case.found.dates.onset
    assert local is not None
    rows = case.run.values[onset : case.stop][: TUNING.longest_stretch_windows]
    return local, local.before(case.run.usual[:onset]), rows


def _suspects(local: Local, systems: tuple[System, ...], named: list[int], length: int) -> list[int]:
    """All sensors: those that are named, then the others as they are contradicted before these are free, or after."""
    highest = np.zeros(systems[0].G.shape[1])
    for k in [*named, None]:
        highest = np.maximum(highest, local.rarity(evidence_of(systems).max(axis=0), length))
        systems = systems if k is None else without(systems, k)
    return [*named, *(k for k in np.argsort(-highest, kind="stable").tolist() if k not in named)]


def _weighed(
    local: Local, systems: tuple[System, ...], length: int, chosen: Set, suspects: list[int]
) -> Iterator[tuple[Set, float]]:
    """The weight of each set of `chosen`, which are free, and of suspects."""
    K = systems[0].G.shape[1]
    others = np.setdiff1d(np.arange(K), list(chosen))
    if chosen:
        left = local.rarity(evidence_of(systems).max(axis=0), length)[others].max(initial=0.0)
        yield chosen, float(np.exp(-len(chosen) * np.log(K) - np.log(likelihood_ratio(left))))
    if len(chosen) < MOST_FAULTY:
        for place, k in enumerate(suspects):
            yield from _weighed(local, without(systems, k), length, chosen | {k}, suspects[place + 1 :])


def outcomes(candidates: Posterior, checked: Set) -> dict[Set, tuple[float, float]]:
    """What checks of these sensors may show, by those that are wrong: how probable it is, and its best candidate."""
    found: dict[Set, tuple[float, float]] = {}
    for each, probability in candidates.items():
        total, best = found.get(each & checked, (0.0, 0.0))
        found[each & checked] = total + probability, max(best, probability)
    return found


def information(candidates: Posterior, checked: Set) -> float:
    """What checks of these sensors are expected to tell of the set, in nats."""
    shares = np.array([total for total, _ in outcomes(candidates, checked).values()])
    return float(-(shares * np.log(np.maximum(shares, 1e-300))).sum())


def decides(candidates: Posterior, checked: Set, alpha: float) -> float:
    """The probability that a candidate has at least 1 - alpha once these sensors are checked."""
    return sum(total for total, best in outcomes(candidates, checked).values() if best >= (1.0 - alpha) * total)


def proposed(candidates: Posterior, alpha: float, silent: Set = frozenset()) -> list[tuple[int, float]]:
    """The sensors to check, that of most information first, and how probably each decides with those before it.

    As few as decide with probability 1 - alpha, or else most often, at most MOST_CHECKS; none if these hardly ever do.
    silent: sensors whose reading a check has nothing to compare with.
    """
    left = sorted(frozenset().union(*candidates) - silent)
    checked, found, told = frozenset[int](), list[tuple[int, float]](), 0.0
    while left and len(found) < MOST_CHECKS and (not found or found[-1][1] < 1.0 - alpha):
        gained, k = max((information(candidates, checked | {k}), -k) for k in left)
        if gained < told + _LEAST_INFORMATION:
            break
        told, checked = gained, checked | {-k}
        left.remove(-k)
        found.append((-k, decides(candidates, checked, alpha)))
    most = max((share for _, share in found), default=0.0)
    return found[: [share for _, share in found].index(most) + 1] if most >= _WORTH_IT else []


# -- the checks of an incident -------------------------------------------------------------------------


def checked_in(case: Case, sensor: str, value: float, noise: float, time: np.datetime64 | None) -> Checked:
    """A sensor that was read by hand at a time in the incident, or else in its last window."""
    (k,), windows = case.model.places([sensor]).tolist(), case.windows
    t = case.stop - 1 if time is None else int(np.searchsorted(windows.starts, time, side="right")) - 1
    read = float(case.raw(k, windows.values[t, k]))
    if np.isnan(read):
        raise ValueError(f"{sensor} reads nothing in the window of the check: give another time or sensor")
    value, error = as_number(value, "the reading of a check"), as_positive(noise, "noise")
    return Checked(sensor, windows.starts[t], value, read, abs(read - value) > _BEYOND * error)


def settling(
    case: Case, confidence: float | None, checked: Sequence[Checked], alpha: float, number: Any = None
) -> tuple[float | None, Case, tuple[Check, ...]]:
    """The confidence in an incident given what was checked, the incident, and the checks that would settle it.

    confidence: before any check, None where no drill gives one; then sensors are named one by one. number: of sensors
    that are wrong, None if it is not known.
    """
    if not checked and (confidence is None or confidence >= 1.0 - alpha):
        return confidence, case, ()
    places = {case.model.places([each.sensor])[0]: each.wrong for each in checked}
    known = Known(
        frozenset(k for k, wrong in places.items() if not wrong), frozenset(k for k, wrong in places.items() if wrong)
    )
    if len(known.sound) == case.normal.size:
        raise ValueError("all sensors were found to be sound: it is the plant that has changed")
    candidates = {} if confidence is None else posterior(case, confidence, known)
    if confidence is None or not candidates:  # more sensors are wrong than in any drill
        return None, _renamed(case, _named_anew(case, known, number), known), ()
    if checked:
        sensors, confidence = next(iter(candidates.items()))
        case = _renamed(case, sensors, known)
    if confidence >= 1.0 - alpha:
        return confidence, case, ()
    silent = frozenset(np.flatnonzero(np.isnan(case.run.values[case.stop - 1])).tolist())
    return confidence, case, tuple(_check(case, *each) for each in proposed(candidates, alpha, silent))


def _check(case: Case, k: int, probability: float) -> Check:
    last = case.run.values[case.stop - 1 : case.stop]
    expected = Predictions.of(case.normal, last, case.found.naming.named).band(k)[0]
    return Check(case.model.names[k], float(case.raw(k, last[0, k])), float(case.raw(k, expected)[0]), probability)


def _named_anew(case: Case, known: Known, number: Any) -> Set:
    """The sensors that are named one by one where no drill says how probable they are."""
    wrong = sorted(case.found.wrong.keys() - known.sound | known.wrong)
    among = frozenset(range(case.normal.size)) - known.sound
    most = None if number is None else len(case.found.naming.named)
    return frozenset(name_sensors(*_windows(case), wrong=wrong, number=most, among=among).named)


def _renamed(case: Case, sensors: Set, known: Known) -> Case:
    """The incident with these sensors, each with its evidence given those named before it."""
    wrong = {k: kind for k, kind in case.found.wrong.items() if k in sensors}
    naming = name_sensors(*_windows(case), wrong=sorted(wrong), number=len(sensors), among=sensors)
    beliefs = naming.beliefs.copy()
    beliefs[list(known.wrong)], beliefs[list(known.sound)] = SEEN, 0.0
    return replace(case, found=replace(case.found, naming=replace(naming, beliefs=beliefs), wrong=wrong))
