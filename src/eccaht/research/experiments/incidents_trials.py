"""One flat record for each case and method: what was wrong, what was ranked first, what was named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from eccaht.base.statistics import f1_score
from eccaht.research.experiments.incidents_cases import LabelledCase, Tier
from eccaht.research.experiments.incidents_methods import Judgement
from eccaht.research.experiments.tables import Table, from_rows

_TOP = 3
_SENSORS = ("truth", "named", "first")


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
        """The share of the n that are wrong among the first n."""
        return self.hits / self.n

    @property
    def hit_rate(self) -> float:
        """The share of them among the first 1.5 n."""
        return self.hits_150 / self.n

    @property
    def f1(self) -> float:
        """F1 of the named sensors, with nothing given."""
        return float(f1_score(len(set(self.named) & set(self.truth)), len(self.named), self.n))

    @property
    def right(self) -> bool:
        """Are exactly the wrong sensors named?"""
        return set(self.named) == set(self.truth)


def trial_of(collection: str, entity: str, case: LabelledCase, method: str, judgement: Judgement) -> ReplayTrial:
    names, n, truth = case.readings.names, len(case.truth), set(case.truth)

    def called(sensors: Sequence[int]) -> tuple[str, ...]:
        return tuple(names[k] for k in sensors)

    order = judgement.order
    return ReplayTrial(
        collection=collection,
        entity=entity,
        tier=case.tier,
        case=case.number,
        start=case.start,
        windows=case.length,
        method=method,
        truth=called(case.truth),
        first=called(order[:n]),
        named=called([k for k in order if k in judgement.named]),
        hits=len(truth.intersection(order[:n])),
        hits_150=len(truth.intersection(order[: ceil(1.5 * n)])),
        top_3=not truth.isdisjoint(order[:_TOP]),
        confidence=judgement.confidence,
        sure=judgement.sure,
    )


def as_row(trial: ReplayTrial) -> dict[str, Any]:
    """For tables and JSON: lists of sensors as texts."""
    return asdict(trial) | {key: ";".join(getattr(trial, key)) for key in _SENSORS}


def from_row(row: dict[str, Any]) -> ReplayTrial:
    return ReplayTrial(**row | {key: tuple(row[key].split(";")) if row[key] else () for key in _SENSORS})


def trials_table(trials: Sequence[ReplayTrial]) -> Table:
    """One row for each case and method."""
    return from_rows([{**as_row(trial), "right": trial.right} for trial in trials])
