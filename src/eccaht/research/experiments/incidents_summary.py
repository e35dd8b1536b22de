"""The records of naming sensors, one for each case and method, and what those of a collection add up to.

Means have intervals over incidents; shares of alarms and of wrong answers are counts with their trials.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, TypeVar

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

CHANGED = " and ".join(CHANGED_TIERS)
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
    confident: bool | None

    @property
    def n(self) -> int:
        return len(self.truth)

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
        confident=judgement.confident,
    )


def trials_table(trials: Sequence[ReplayTrial]) -> Table:
    """One row for each case and method."""
    return from_rows([{**cells(trial), "right": trial.right} for trial in trials])


Measure = Callable[[ReplayTrial], float]
MEASURES: dict[str, Measure] = {
    "precision_at_n": lambda trial: trial.hits / trial.n,
    "hit_rate_150": lambda trial: trial.hits_150 / trial.n,
    "rc_top_3": lambda trial: float(trial.top_3),
    "f1": lambda trial: trial.f1,
}
_OF_CHANGED: dict[str, Measure] = {
    "precision_at_n": MEASURES["precision_at_n"],
    "right_sets": lambda trial: float(trial.right),
}
Key = TypeVar("Key")


class Number(NamedTuple):
    """A mean or share over incidents.

    sensors: how many were wrong in them, where these are told apart. happened: of a share, how often.
    """

    tier: str
    method: str
    measure: str
    sensors: str
    mean: float  # nan where there is none
    interval: tuple[float, float] | None
    incidents: int
    happened: int = 0


@dataclass(frozen=True)
class Summary:
    """One collection, and how many incidents of each tier it has.

    Of labelled incidents there are all measures, of injected and replayed ones precision at n and the share whose
    sensors were named exactly, of quiet stretches the share in which something was named. `sure_and_wrong` is the
    share of wrong ones among the answers to injected and replayed incidents that called themselves confident.
    """

    entities: int
    incidents: dict[str, int]
    numbers: tuple[Number, ...]

    def of(self, tier: str, measure: str | None = None) -> list[Number]:
        return [each for each in self.numbers if each.tier == tier and measure in (None, each.measure)]


def summarise(trials: Sequence[ReplayTrial], *, seed: int = 0) -> dict[str, Summary]:
    collections = dict.fromkeys(trial.collection for trial in trials)
    return {name: _summary([trial for trial in trials if trial.collection == name], seed) for name in collections}


def _summary(trials: Sequence[ReplayTrial], seed: int) -> Summary:
    tiers: dict[str, dict[str, list[ReplayTrial]]] = {}
    for trial in trials:
        tiers.setdefault(trial.tier, {}).setdefault(trial.method, []).append(trial)
    counts = {tier: len(next(iter(methods.values()))) for tier, methods in tiers.items()}
    numbers = [*_means(tiers, seed), *_shares(tiers.get("quiet", {}), trials)]
    return Summary(len({trial.entity for trial in trials}), counts, tuple(numbers))


def _means(tiers: Mapping[str, Mapping[str, Sequence[ReplayTrial]]], seed: int) -> Iterator[Number]:
    labelled = tiers.get("labelled", {})
    columns = {(m, measure): list(map(of, some)) for m, some in labelled.items() for measure, of in MEASURES.items()}
    for (method, measure), found in _estimates(columns, seed).items():
        yield Number("labelled", method, measure, "", *found, len(labelled[method]))
    for tier in CHANGED_TIERS:
        for measure, of in _OF_CHANGED.items():
            for number in (*NUMBERS, None):
                some = {m: [of(t) for t in each if number in (None, t.n)] for m, each in tiers.get(tier, {}).items()}
                for method, found in _estimates(some, seed).items():
                    yield Number(tier, method, measure, str(number or BOTH), *found, len(some[method]))


def _estimates(columns: Mapping[Key, Sequence[float]], seed: int) -> dict[Key, Estimate]:
    """Means over the same incidents, all resampled with the same draws."""
    x = np.array([*columns.values()]).T
    if not x.size:
        return {}
    low, high = bca_interval(x, rng=rng_for(seed, "bootstrap")).tolist()
    ends = [None] * len(low) if len(x) == 1 else zip(low, high, strict=True)
    return dict(zip(columns, map(Estimate, x.mean(axis=0).tolist(), ends), strict=True))


def _shares(quiet: Mapping[str, Sequence[ReplayTrial]], trials: Iterable[ReplayTrial]) -> Iterator[Number]:
    for method, some in quiet.items():
        yield _share("quiet", method, "alarms", [bool(trial.named) for trial in some])
    wrong: dict[str, list[bool]] = {}
    for trial in trials:
        if trial.tier in CHANGED_TIERS and trial.confident is not None:
            wrong.setdefault(trial.method, []).extend([not trial.right] * trial.confident)
    for method, each in wrong.items():
        yield _share(CHANGED, method, "sure_and_wrong", each)


def _share(tier: str, method: str, measure: str, happened: Sequence[bool]) -> Number:
    many, trials = sum(happened), len(happened)
    if not trials:
        return Number(tier, method, measure, "", np.nan, None, 0)
    return Number(tier, method, measure, "", many / trials, clopper_pearson(many, trials), trials, many)


def as_entry(summary: Summary) -> dict[str, Any]:
    """For JSON: plain means; summary.csv has their intervals too."""
    single = [str(number) for number in NUMBERS]
    alarms, wrong = summary.of("quiet", "alarms"), summary.of(CHANGED, "sure_and_wrong")
    none = _share("", OURS, "", ())
    ours, sure = (next((each for each in found if each.method == OURS), none) for found in (alarms, wrong))
    return {
        "labelled": _nested(summary.of("labelled"), "measure"),
        **{tier: _nested(summary.of(tier, "precision_at_n"), "sensors", single) for tier in CHANGED_TIERS},
        "quiet": {"alarms": ours.happened, "stretches": ours.incidents, "promise": ALPHA},
        "sure_and_wrong": {"wrong": sure.happened, "sure": sure.incidents},
        "entities": summary.entities,
        "incidents": summary.incidents,
    }


def _nested(numbers: Iterable[Number], key: str, only: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
    """Means by method and by another field."""
    found: dict[str, dict[str, float]] = {}
    for each in numbers:
        if only is None or getattr(each, key) in only:
            found.setdefault(each.method, {})[getattr(each, key)] = each.mean
    return found


def summary_table(summaries: Mapping[str, Summary], detection: Detection | None = None) -> Table:
    """One row for each number: collection, tier, method, what it is, mean or share, interval, incidents."""
    columns = ("collection", "tier", "method", "measure", "mean", "low", "high", "incidents")
    rows: list[tuple[Any, ...]] = []
    for name, summary in summaries.items():
        for each in summary.numbers:
            measure = f"{each.measure}, sensors: {each.sensors}" if each.sensors else each.measure
            ends = each.interval or (None, None)
            mean = None if np.isnan(each.mean) else each.mean
            rows.append((name, each.tier, each.method, measure, mean, *ends, each.incidents))
    rows += detection_rows(detection or {})
    return from_rows([dict(zip(columns, row, strict=True)) for row in rows], columns)
