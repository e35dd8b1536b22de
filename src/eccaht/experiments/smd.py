"""Server data: known shifts put into real normal rows (tier 1), and labelled incidents (tier 2).

Tier 1. Scaling, mean and covariance come from the first half of the training rows. A run draws rows of the second half
without replacement, in random order, and moves n random metrics by `shift` robust units. The random order
keeps the law of a row, its correlations and its heavy tails, and takes away the dependence between successive rows,
which no policy here models. What changed between the halves stays in.

Tier 2. Calibrated on all training rows; the rows of a labelled segment are read in the order of time. The policies
assume the labelled number of metrics, each moved up by `shift`, which is often wrong in sign and size. Beside
them: the ranking of all metrics by the distance of the segment's mean from the median in interquartile ranges. It
sees every metric in every row, which no policy does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from eccaht.arrays import Array, as_count
from eccaht.covariance import effective_rank
from eccaht.datasets.smd import Entity, Segment, calibrate_rows, kept_places, read_entity, scaled_rows
from eccaht.experiments.comparison import Records
from eccaht.experiments.localisation import RecordedSearch, check_reach, localise
from eccaht.experiments.tables import Table, from_rows
from eccaht.model.model import Model
from eccaht.problem import Problem
from eccaht.randomness import rng_for
from eccaht.statistics import Estimate, estimate

# the methods that are compared unless others are named
POLICIES = ("joint", "joint-diagonal", "ecc-aht", "diagonal", "random-sparse", "round-robin")
Z_SCORE, CHANCE = "z-score of all", "chance"


@dataclass(frozen=True)
class Settings:
    """What is common to all searches."""

    numbers: tuple[int, ...] = (1, 3)  # of shifted metrics, tier 1
    shift: float = 1.0
    budget: float = 5.0
    horizon: int = 100
    runs: int = 10
    seed: int = 0
    estimator: str = "ledoit-wolf"
    per_row: int = 1  # measurements of a row, tier 2

    @property
    def repeats(self) -> int:
        """Runs of a segment in tier 2: they differ in the policies' own randomness only, so fewer tell enough."""
        return max(1, self.runs // 5)

    def __post_init__(self) -> None:
        for name, least in {"horizon": 1, "runs": 1, "seed": 0, "per_row": 1}.items():
            as_count(getattr(self, name), name, least=least)
        if not self.numbers or len(set(self.numbers)) != len(self.numbers):
            raise ValueError("give each number of anomalies once")
        for number in self.numbers:
            as_count(number, "the number of anomalies", least=1)
        check_reach(self.shift, self.budget)


# -- tier 1 --------------------------------------------------------------------------------------------


class Correlated(NamedTuple):
    """How correlated the metrics are: how many vary, effective rank of their correlations, and the median over
    metrics of the largest |correlation| with another.
    """

    metrics: int
    effective_rank: float
    closest: float


@dataclass(frozen=True)
class Tier1:
    """Records by number of shifted metrics and entity, and what is known of the entities."""

    records: dict[int, dict[str, Records]]
    entities: dict[str, Correlated]


def run_tier1(
    entities: Sequence[Entity],
    names: Sequence[str],
    settings: Settings,
    *,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
) -> Tier1:
    """Search for injected shifts; `progress(n)` is called with the number of searches finished."""
    searches: dict[str, list[RecordedSearch]] = {}
    keys: dict[int, dict[str, str]] = {n: {} for n in settings.numbers}
    known = {}
    for entity in entities:
        train, _ = read_entity(entity)
        half = len(train) // 2
        model = _calibrated(entity, train[:half], settings)
        known[entity.label] = correlated(model)
        for n in settings.numbers:
            keys[n][entity.label] = key = f"{entity.label}, {n} shifted"
            searches[key] = injected(model, train[half:], n, settings, entity.label)
    records = localise(searches, names, seed=settings.seed, jobs=jobs, progress=progress)
    return Tier1({n: {label: records[key] for label, key in each.items()} for n, each in keys.items()}, known)


def correlated(model: Model) -> Correlated:
    """Describe the correlations of a model."""
    S = model.covariance.dense()
    R = S / np.sqrt(np.outer(S.diagonal(), S.diagonal()))
    closest = np.abs(R - np.diag(R.diagonal())).max(axis=1)
    return Correlated(len(R), effective_rank(R), float(np.median(closest)))


def injected(model: Model, rows: Array, n: int, settings: Settings, label: str) -> list[RecordedSearch]:
    """One search a run: random rows in random order, n random metrics moved."""
    if len(rows) < settings.horizon:
        raise ValueError(f"{label} has {len(rows)} rows in its second half, fewer than the horizon {settings.horizon}")
    problem, scaled = _problem(model, n, settings), scaled_rows(model, rows)
    searches = []
    for run in range(settings.runs):
        rng = rng_for((settings.seed, run), "smd", label)
        truth = np.sort(rng.choice(problem.size, n, replace=False))
        drawn = scaled[rng.choice(len(rows), settings.horizon, replace=False)]
        drawn[:, truth] += settings.shift
        searches.append(RecordedSearch(problem, drawn, truth))
    return searches


# -- tier 2 --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tier2:
    """By entity: the precision at n of each method, and of the two that are no policy, one value a segment.

    rows: lengths of the segments; skipped: segments without a usable truth, and why.
    """

    precision: dict[str, dict[str, Array]]
    rows: dict[str, list[int]]
    skipped: dict[str, list[str]]


def run_tier2(
    entities: Sequence[Entity],
    names: Sequence[str],
    settings: Settings,
    *,
    jobs: int = 1,
    progress: Callable[[int], object] = lambda _: None,
) -> Tier2:
    """Search in the labelled segments; `progress(n)` is called with the number of searches finished."""
    searches: dict[str, list[RecordedSearch]] = {}
    belongs: dict[str, list[str]] = {}
    skipped: dict[str, list[str]] = {}
    for entity in entities:
        train, test = read_entity(entity)
        model = _calibrated(entity, train, settings)
        belongs[entity.label], skipped[entity.label] = [], []
        for k, segment in enumerate(entity.segments):
            search = labelled(model, test, segment, settings)
            if isinstance(search, str):
                skipped[entity.label].append(f"segment {k} of rows {segment.start} to {segment.stop - 1}: {search}")
                continue
            belongs[entity.label].append(f"{entity.label} segment {k}")
            searches[f"{entity.label} segment {k}"] = [search] * settings.repeats
    records = localise(searches, names, seed=settings.seed, jobs=jobs, progress=progress)
    precision = {
        label: _precision([(searches[key][0], records[key]) for key in keys], names) for label, keys in belongs.items()
    }
    rows = {label: [len(searches[key][0].rows) for key in keys] for label, keys in belongs.items()}
    return Tier2(precision, rows, skipped)


def labelled(model: Model, test: Array, segment: Segment, settings: Settings) -> RecordedSearch | str:
    """The search of a labelled segment, or why there is none."""
    truth = kept_places(model, segment.metrics)
    if truth.size == 0:
        return "all its metrics are constant in the training rows"
    if truth.size == len(model.names):
        return "every metric is labelled"
    rows = scaled_rows(model, test[segment.start : segment.stop][: settings.horizon])
    return RecordedSearch(_problem(model, truth.size, settings), rows, truth, settings.per_row)


def z_score_hits(search: RecordedSearch) -> int:
    """How many of the truth are among the n metrics whose mean is farthest from the median, in robust units."""
    far = np.abs(search.rows.mean(axis=0))
    named = np.argsort(-far, kind="stable")[: search.truth.size]
    return int(np.isin(named, search.truth).sum())


def _precision(cells: Sequence[tuple[RecordedSearch, Records]], names: Sequence[str]) -> dict[str, Array]:
    precisions = {name: np.array([(r.hits[name][:, -1] / s.truth.size).mean() for s, r in cells]) for name in names}
    precisions[Z_SCORE] = np.array([z_score_hits(s) / s.truth.size for s, _ in cells])
    precisions[CHANCE] = np.array([s.truth.size / s.problem.size for s, _ in cells])
    return precisions


def precision_over(tier: Tier2, labels: Sequence[str], *, seed: int) -> dict[str, Estimate]:
    """Mean precision over all segments of some entities, with an interval over segments."""
    parts: list[Mapping[str, Array]] = [tier.precision[label] for label in labels if tier.rows[label]]
    if not parts:
        return {}
    pooled = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name: estimate(values, rng=rng_for(seed, "bootstrap")) for name, values in pooled.items()}


def precision_table(tier: Tier2) -> Table:
    """One row for each segment and method."""
    rows = [
        {"entity": label, "segment": k, "rows": length, "policy": name, "precision": float(values[k])}
        for label, methods in tier.precision.items()
        for k, length in enumerate(tier.rows[label])
        for name, values in methods.items()
    ]
    return from_rows(rows)


# -- both ----------------------------------------------------------------------------------------------


def _calibrated(entity: Entity, rows: Array, settings: Settings) -> Model:
    try:
        return calibrate_rows(rows, estimator=settings.estimator)
    except ValueError as error:
        raise ValueError(f"{entity.label}: {error}") from None


def _problem(model: Model, n: int, settings: Settings) -> Problem:
    return model.problem(shift=settings.shift, n_anomalies=n, budget=settings.budget)
