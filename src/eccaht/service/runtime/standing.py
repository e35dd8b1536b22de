"""Where a plant of the service stands: what all may read of it, and what must be stored of one thing that happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import Array
from eccaht.plants.model.model import Model
from eccaht.plants.watch.events import ActiveAlarm, Event
from eccaht.service.rows import SourceState
from eccaht.service.settings import PlantOptions


@dataclass(frozen=True)
class PlantView:
    """A plant as it is now, for all to read."""

    name: str
    model_digest: str
    model: Model
    era: int
    options: PlantOptions
    state: str
    evidence: float
    threshold_every: float
    rate_line: str
    position: np.datetime64 | None
    windows: int
    fault: ActiveAlarm | None
    acknowledged: bool
    still: Mapping[str, tuple[str, ...]]
    shelved: Mapping[str, np.datetime64]
    suspects: tuple[dict[str, Any], ...]
    late: int
    duplicate: int
    ahead: int
    held: int
    no_data: str | None
    offsets: Array
    renewed: int | None  # since when the offsets hold, microseconds
    sources: Mapping[str, SourceState] = field(default_factory=dict)

    def shifts(self, starts: NDArray[np.int64]) -> Array:
        """What operators called normal, less what was, of windows that start then: (T, K), in robust units."""
        since = 1 << 62 if self.renewed is None else self.renewed
        return np.where((starts > since)[:, None], self.offsets, 0.0)

    @property
    def sensors(self) -> tuple[str, ...]:
        return self.model.names


@dataclass(eq=False)
class StoredStep:
    """All that must be stored of one thing that happened to a plant, in one transaction or not at all."""

    plant: str
    windows: list[dict[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    times: list[int] = field(default_factory=list)  # of the events
    again: list[dict[str, Any]] = field(default_factory=list)  # windows of which more readings came, too late
    pending: dict[str, Any] | None = None
    consumed: int | None = None  # pending rows before this time are in windows now
    counts: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    position: dict[str, Any] | None = None
    audit: dict[str, Any] | None = None
