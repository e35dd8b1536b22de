"""What the records of the bench say of each collection: means with intervals over incidents, and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from eccaht.base.randomness import rng_for
from eccaht.base.statistics import Estimate, bca_interval, clopper_pearson
from eccaht.research.experiments.detection_outcomes import Detection, detection_rows
from eccaht.research.experiments.incidents_cases import NUMBERS, Tier
from eccaht.research.experiments.incidents_methods import ALPHA, OURS
from eccaht.research.experiments.incidents_trials import ReplayTrial
from eccaht.research.experiments.tables import Table, from_rows

OUR_METHOD = OURS
BOTH = "both"  # incidents of one and of three sensors together
MEASURES: dict[str, Callable[[ReplayTrial], float]] = {
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
    """By collection, in the order of the records."""
    collections = dict.fromkeys(trial.collection for trial in trials)
    return {name: _summary([trial for trial in trials if trial.collection == name], seed) for name in collections}


def _summary(trials: Sequence[ReplayTrial], seed: int) -> Summary:
    tiers: dict[Tier, dict[str, list[ReplayTrial]]] = {}
    for trial in trials:
        tiers.setdefault(trial.tier, {}).setdefault(trial.method, []).append(trial)
    changed = [trial for trial in trials if trial.tier in ("injected", "replayed")]
    return Summary(
        entities=len({trial.entity for trial in trials}),
        labelled=_labelled(tiers.get("labelled", {}), seed),
        injected=_by_number(tiers.get("injected", {}), MEASURES["precision_at_n"], seed),
        replayed=_by_number(tiers.get("replayed", {}), MEASURES["precision_at_n"], seed),
        right={
            tier: _by_number(tiers.get(tier, {}), lambda trial: float(trial.right), seed)
            for tier in ("injected", "replayed")
        },
        alarms={
            method: Count(sum(bool(trial.named) for trial in each), len(each))
            for method, each in tiers.get("quiet", {}).items()
        },
        sure=_sure(changed),
        cases={tier: _cases(next(iter(methods.values()))) for tier, methods in tiers.items()},
    )


def _cases(trials: Sequence[ReplayTrial]) -> dict[str, int]:
    numbers = {str(number): sum(trial.n == number for trial in trials) for number in NUMBERS}
    return {**numbers, BOTH: len(trials)}


def _labelled(methods: Mapping[str, Sequence[ReplayTrial]], seed: int) -> Estimates:
    values = {
        (method, measure): [of(trial) for trial in trials]
        for method, trials in methods.items()
        for measure, of in MEASURES.items()
    }
    return _nested(_estimates(values, seed))


def _by_number(
    methods: Mapping[str, Sequence[ReplayTrial]], of: Callable[[ReplayTrial], float], seed: int
) -> Estimates:
    found: dict[tuple[str, str], Estimate] = {}
    for number in (*NUMBERS, None):
        values = {
            (method, BOTH if number is None else str(number)): [
                of(trial) for trial in trials if number in (None, trial.n)
            ]
            for method, trials in methods.items()
        }
        found |= _estimates({key: each for key, each in values.items() if each}, seed)
    return _nested(found)


def _sure(trials: Sequence[ReplayTrial]) -> dict[str, Count]:
    counts = {}
    for method in dict.fromkeys(trial.method for trial in trials if trial.sure is not None):
        sure = [trial for trial in trials if trial.method == method and trial.sure]
        counts[method] = Count(sum(not trial.right for trial in sure), len(sure))
    return counts


def _estimates(values: Mapping[tuple[str, str], Sequence[float]], seed: int) -> dict[tuple[str, str], Estimate]:
    """Means over the same incidents, all resampled with the same draws."""
    if not values:
        return {}
    x = np.array(list(values.values())).T
    ends = bca_interval(x, rng=rng_for(seed, "bootstrap")).T
    return {
        key: Estimate(float(mean), None if len(x) == 1 else (float(low), float(high)))
        for key, mean, (low, high) in zip(values, x.mean(axis=0), ends, strict=True)
    }


def _nested(flat: Mapping[tuple[str, str], Estimate]) -> Estimates:
    nested: Estimates = {}
    for (method, what), value in flat.items():
        nested.setdefault(method, {})[what] = value
    return nested


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
        "both_numbers": {tier: _means(estimates[tier], [BOTH]) for tier in ("injected", "replayed")},
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
    for tier in ("injected", "replayed"):
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
