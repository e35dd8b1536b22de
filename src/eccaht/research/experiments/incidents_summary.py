"""The records of naming sensors, one for each case and method, and what those of a collection add up to.

Means have intervals over incidents; shares of alarms and of wrong answers are counts with their trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from eccaht.base.randomness import rng_for
from eccaht.base.statistics import Estimate, bca_interval, clopper_pearson, f1_score
from eccaht.research.experiments.detection_outcomes import Detection, detection_rows
from eccaht.research.experiments.incidents_cases import (
    ALPHA,
    CHANGED_TIERS,
    NUMBERS,
    OURS,
    Judgement,
    LabelledCase,
    Tier,
)
from eccaht.research.experiments.tables import Table, cells, from_rows

OUR_METHOD = OURS
BOTH = "both"  # incidents of one and of three sensors together
_TOP = 3


@dataclass(frozen=True)
class ReplayTrial:
    """What a method made of a case.

    truth, named: the sensors that are wrong, and those that are named. first: the n that were ranked first.
    hits, hits_150: how many of the n that are wrong are among the first n, and among the first 1.5 n, rounded up.
    top_3: is any of them among the first three?
    """

    collection: str
    entity: str
    tier: Tier
    case: int
    start: int
    windows: int
    method: str
    truth: tuple[str, ...]
    first: tuple[str, ...]
    named: tuple[str, ...]
    hits: int
    hits_150: int
    top_3: bool
    confidence: float | None
    sure: bool | None

    @property
    def n(self) -> int:
        """How many sensors are wrong."""
        return len(self.truth)

    @property
    def precision(self) -> float:
        return self.hits / self.n

    @property
    def hit_rate(self) -> float:
        return self.hits_150 / self.n

    @property
    def f1(self) -> float:
        """F1 of the named sensors, with nothing given."""
        return float(f1_score(len(set(self.named) & set(self.truth)), len(self.named), self.n))

    @property
    def right(self) -> bool:
        return set(self.named) == set(self.truth)


def trial_of(collection: str, entity: str, case: LabelledCase, method: str, judgement: Judgement) -> ReplayTrial:
    names, n, truth, order = case.readings.names, len(case.truth), set(case.truth), judgement.order
    return ReplayTrial(
        collection=collection,
        entity=entity,
        tier=case.tier,
        case=case.number,
        start=case.start,
        windows=case.length,
        method=method,
        truth=tuple(names[k] for k in case.truth),
        first=tuple(names[k] for k in order[:n]),
        named=tuple(names[k] for k in order if k in judgement.named),
        hits=len(truth.intersection(order[:n])),
        hits_150=len(truth.intersection(order[: ceil(1.5 * n)])),
        top_3=not truth.isdisjoint(order[:_TOP]),
        confidence=judgement.confidence,
        sure=judgement.sure,
    )


def trials_table(trials: Sequence[ReplayTrial]) -> Table:
    """One row for each case and method."""
    return from_rows([{**cells(trial), "right": trial.right} for trial in trials])


# -- measures ------------------------------------------------------------------------------------------

Measure = Callable[[ReplayTrial], float]
MEASURES: dict[str, Measure] = {
    "precision_at_n": lambda trial: trial.precision,
    "hit_rate_150": lambda trial: trial.hit_rate,
    "rc_top_3": lambda trial: float(trial.top_3),
    "f1": lambda trial: trial.f1,
}
Estimates = dict[str, dict[str, Estimate]]  # by method and measure, or by method and number of sensors


class Count(NamedTuple):
    """How often something happened, and in how many trials."""

    happened: int
    trials: int

    @property
    def interval(self) -> tuple[float, float] | None:
        return clopper_pearson(self.happened, self.trials) if self.trials else None


@dataclass(frozen=True)
class Summary:
    """One collection.

    labelled: by method and measure. injected, replayed: precision at n, by method and number of sensors. right: by
    tier, method and number, the share of incidents whose sensors were named exactly. alarms: by method, quiet
    stretches in which something was named. sure: by method, the answers of injected and replayed incidents that
    called themselves sure, and how many of these were wrong. cases: by tier and number, how many incidents there were.
    """

    entities: int
    labelled: Estimates
    injected: Estimates
    replayed: Estimates
    right: dict[str, Estimates]
    alarms: dict[str, Count]
    sure: dict[str, Count]
    cases: dict[str, dict[str, int]]

    @property
    def incidents(self) -> dict[str, int]:
        return {tier: numbers[BOTH] for tier, numbers in self.cases.items()}


def summarise(trials: Sequence[ReplayTrial], *, seed: int = 0) -> dict[str, Summary]:
    collections = dict.fromkeys(trial.collection for trial in trials)
    return {name: _summary([trial for trial in trials if trial.collection == name], seed) for name in collections}


def _summary(trials: Sequence[ReplayTrial], seed: int) -> Summary:
    tiers: dict[Tier, dict[str, list[ReplayTrial]]] = {}
    for trial in trials:
        tiers.setdefault(trial.tier, {}).setdefault(trial.method, []).append(trial)
    precision = {tier: _by_number(tiers.get(tier, {}), MEASURES["precision_at_n"], seed) for tier in CHANGED_TIERS}
    return Summary(
        entities=len({trial.entity for trial in trials}),
        labelled=_estimates(tiers.get("labelled", {}), MEASURES, seed),
        **precision,
        right={tier: _by_number(tiers.get(tier, {}), lambda trial: float(trial.right), seed) for tier in CHANGED_TIERS},
        alarms={
            method: Count(sum(bool(trial.named) for trial in each), len(each))
            for method, each in tiers.get("quiet", {}).items()
        },
        sure=_sure([trial for trial in trials if trial.tier in CHANGED_TIERS]),
        cases={tier: _cases(next(iter(methods.values()))) for tier, methods in tiers.items()},
    )


def _cases(trials: Sequence[ReplayTrial]) -> dict[str, int]:
    numbers = {str(number): sum(trial.n == number for trial in trials) for number in NUMBERS}
    return {**numbers, BOTH: len(trials)}


def _sure(trials: Sequence[ReplayTrial]) -> dict[str, Count]:
    counts = {}
    for method in dict.fromkeys(trial.method for trial in trials if trial.sure is not None):
        sure = [trial for trial in trials if trial.method == method and trial.sure]
        counts[method] = Count(sum(not trial.right for trial in sure), len(sure))
    return counts


def _by_number(methods: Mapping[str, Sequence[ReplayTrial]], of: Measure, seed: int) -> Estimates:
    found: Estimates = {method: {} for method in methods}
    for number in (*NUMBERS, None):
        some = {method: [each for each in trials if number in (None, each.n)] for method, trials in methods.items()}
        key = BOTH if number is None else str(number)
        for method, estimates in _estimates(some, {key: of}, seed).items():
            found[method] |= estimates
    return found


def _estimates(methods: Mapping[str, Sequence[ReplayTrial]], measures: Mapping[str, Measure], seed: int) -> Estimates:
    """Means over the same incidents, all resampled with the same draws."""
    places = [(method, measure) for method, trials in methods.items() if trials for measure in measures]
    if not places:
        return {}
    x = np.array([[measures[measure](trial) for trial in methods[method]] for method, measure in places]).T
    ends = bca_interval(x, rng=rng_for(seed, "bootstrap")).T
    found: Estimates = {}
    for (method, measure), mean, (low, high) in zip(places, x.mean(axis=0), ends, strict=True):
        interval = None if len(x) == 1 else (float(low), float(high))
        found.setdefault(method, {})[measure] = Estimate(float(mean), interval)
    return found


# -- for programs and files ----------------------------------------------------------------------------


def as_entry(summary: Summary) -> dict[str, Any]:
    """For JSON: plain means, and beside them the intervals and counts."""
    alarms = summary.alarms.get(OUR_METHOD, Count(0, 0))
    wrong = summary.sure.get(OUR_METHOD, Count(0, 0))
    numbers = [str(number) for number in NUMBERS]
    estimates = {tier: getattr(summary, tier) for tier in ("labelled", "injected", "replayed")}
    return {
        "labelled": _means(summary.labelled),
        "injected": _means(summary.injected, numbers),
        "replayed": _means(summary.replayed, numbers),
        "quiet": {"alarms": alarms.happened, "stretches": alarms.trials, "promise": ALPHA},
        "sure_and_wrong": {"wrong": wrong.happened, "sure": wrong.trials},
        "both_numbers": {tier: _means(estimates[tier], [BOTH]) for tier in CHANGED_TIERS},
        "right_sets": {tier: _means(each, [*numbers, BOTH]) for tier, each in summary.right.items()},
        "alarms_by_method": {method: _count(count) for method, count in summary.alarms.items()},
        "sure_and_wrong_by_method": {method: _count(count) for method, count in summary.sure.items()},
        "intervals": {tier: _intervals(each) for tier, each in estimates.items()},
        "entities": summary.entities,
        "incidents": summary.incidents,
    }


def _means(estimates: Estimates, keys: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
    return {
        method: {what: value.mean for what, value in each.items() if keys is None or what in keys}
        for method, each in estimates.items()
    }


def _intervals(estimates: Estimates) -> dict[str, dict[str, tuple[float, float] | None]]:
    return {method: {what: value.interval for what, value in each.items()} for method, each in estimates.items()}


def _count(count: Count) -> dict[str, Any]:
    return {"count": count.happened, "trials": count.trials, "interval": count.interval}


def summary_table(summaries: Mapping[str, Summary], detection: Detection | None = None) -> Table:
    """One row for each number: collection, tier, method, what it is, mean or share, interval, incidents."""
    columns = ("collection", "tier", "method", "measure", "mean", "low", "high", "incidents")
    rows = [(name, *row) for name, summary in summaries.items() for row in _rows(summary)]
    rows += detection_rows(detection or {})
    return from_rows([dict(zip(columns, row, strict=True)) for row in rows], columns)


def _rows(summary: Summary) -> Iterator[tuple[Any, ...]]:
    for method, measures in summary.labelled.items():
        for measure, value in measures.items():
            yield "labelled", method, measure, *_cells(value), summary.incidents["labelled"]
    for tier in CHANGED_TIERS:
        for measure, estimates in (("precision_at_n", getattr(summary, tier)), ("right_sets", summary.right[tier])):
            for method, numbers in estimates.items():
                for number, value in numbers.items():
                    yield tier, method, f"{measure}, sensors: {number}", *_cells(value), summary.cases[tier][number]
    for tier, measure, counts in (
        ("quiet", "alarms", summary.alarms),
        ("injected and replayed", "sure_and_wrong", summary.sure),
    ):
        for method, count in counts.items():
            share = count.happened / count.trials if count.trials else None
            yield tier, method, measure, share, *(count.interval or (None, None)), count.trials


def _cells(value: Estimate) -> tuple[float | None, ...]:
    return value.mean, *(value.interval or (None, None))
