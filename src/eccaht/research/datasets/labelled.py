"""Labelled collections: recordings with a truth for each sensor, in a common layout.

SMD (Su et al. 2019) and ASD (Li et al. 2021) come in it: servers, whose metrics are the sensors. A collection is a
directory with `train/E.csv.gz` and `test/E.csv.gz` for each entity E (rows are times, columns are metrics, no header)
and `truth.json`: {entity: [{start, stop, dims}]}, metrics from 0, rows of the test from start up to, not including,
stop.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eccaht.base.arrays import Array, Index
from eccaht.plants.data.source import Arrays, read_table
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model


class Segment(NamedTuple):
    """Labelled rows of the test, and the metrics that are anomalous there."""

    start: int
    stop: int
    metrics: tuple[int, ...]


@dataclass(frozen=True)
class Entity:
    """One machine or application."""

    collection: str
    name: str
    train: Path
    test: Path
    segments: tuple[Segment, ...]

    @property
    def truth(self) -> Path:
        """The file that says which segments are anomalous."""
        return self.train.parent.parent / "truth.json"

    @property
    def files(self) -> tuple[Path, ...]:
        return self.train, self.test, self.truth

    @property
    def label(self) -> str:
        return f"{self.collection}/{self.name}"


def find_entities(directory: Path) -> list[Entity]:
    """Read the layout of a collection, or of all collections directly below a directory."""
    if not directory.is_dir():
        raise ValueError(f"{directory} is not a directory: give one that holds train, test and truth.json")
    places = [directory] if is_labelled(directory) else sorted(filter(is_labelled, directory.iterdir()))
    if not places:
        raise ValueError(f"no labelled collection in {directory}: it has no truth.json, nor has a directory below it")
    return [entity for place in places for entity in entities_of(place)]


def is_labelled(path: Path) -> bool:
    """Does the directory have the layout? Other collections have a truth.json too, but no train."""
    return (path / "truth.json").is_file() and (path / "train").is_dir()


def entities_of(directory: Path) -> list[Entity]:
    """All entities of a collection, in the order of their names."""
    path = directory / "truth.json"
    try:
        truth = json.loads(path.read_text(encoding="utf-8"))
        segments = {str(name): tuple(map(_segment, entries)) for name, entries in truth.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path} is not a list of segments by entity: {reason}") from None
    if not segments:
        raise ValueError(f"{path} names no entity")
    collection = directory.resolve().name
    return [
        Entity(collection, name, _file(directory / "train" / name), _file(directory / "test" / name), labelled)
        for name, labelled in sorted(segments.items(), key=lambda item: _natural(item[0]))
    ]


def _natural(name: str) -> list[tuple[int, str]]:
    """Order omi-2 before omi-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in name.split("-")]


def _segment(entry: dict[str, Any]) -> Segment:
    start, stop, metrics = entry["start"], entry["stop"], entry["dims"]
    if not all(type(value) is int and value >= 0 for value in (start, stop, *metrics)) or stop <= start:
        raise ValueError(f"segment {entry} is not one of rows and metrics counted from 0")
    return Segment(start, stop, tuple(sorted(set(metrics))))


def _file(stem: Path) -> Path:
    for suffix in (".csv.gz", ".csv"):
        path = stem.with_name(stem.name + suffix)
        if path.is_file():
            return path
    raise ValueError(f"truth.json names {stem.name}, but there is no {stem}.csv.gz")


def read_rows(path: Path) -> Array:
    """All rows of a file, (T, K)."""
    table = read_table(path, header=False, count_rows=True)
    if table.texts:
        raise ValueError(f"{path} has texts among its numbers: these files have none")
    rows = np.column_stack([table.numbers(name) for name in table.names])
    if not np.isfinite(rows).all():
        raise ValueError(f"{path} has rows with missing values: these files have none")
    return rows


def read_entity(entity: Entity) -> tuple[Array, Array]:
    """Train and test rows, checked against each other and the segments."""
    train, test = read_rows(entity.train), read_rows(entity.test)
    if train.shape[1] != test.shape[1]:
        raise ValueError(f"{entity.label} has {train.shape[1]} metrics in train and {test.shape[1]} in test")
    for segment in entity.segments:
        if segment.stop > len(test) or max(segment.metrics, default=0) >= test.shape[1]:
            raise ValueError(f"{entity.label}: {segment} lies outside of the test, {len(test)} x {test.shape[1]}")
    return train, test


def metric_names(count: int) -> tuple[str, ...]:
    """What the metrics, which have no names of their own, are called.

    >>> metric_names(2)
    ('metric 0', 'metric 1')
    """
    return tuple(f"metric {k}" for k in range(count))


def as_metrics(rows: Array) -> Arrays:
    return Arrays(np.asfortranarray(rows), names=metric_names(rows.shape[1]), label="the training rows")


def calibrate_rows(rows: Array, *, estimator: str = "ledoit-wolf", ridge: float | None = None) -> Model:
    """The model of rows, every row one window; metrics that do not vary are dropped."""
    return calibrate(as_metrics(rows), window="1row", estimator=estimator, ridge=ridge)


def scaled_rows(model: Model, rows: Array) -> Array:
    """New rows in robust units, (T, number of kept metrics)."""
    return model.prepare(as_metrics(rows)).values


def kept_places(model: Model, metrics: Sequence[int]) -> Index:
    """Where these metrics are among the kept ones; those that were dropped are left out."""
    return np.flatnonzero(np.isin(model.names, [f"metric {k}" for k in metrics]))
