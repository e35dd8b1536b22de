"""What a method that watches returns: alarms by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eccaht.base.arrays import Index
from eccaht.research.experiments.charts import Flags
from eccaht.research.experiments.detection_cases import runs
from eccaht.research.experiments.incidents_cases import CaseReadings


@dataclass(frozen=True)
class Alarms:
    """What a method makes of a recording: is an alarm on, by row, and the rows in which alarms begin."""

    on: Flags
    begins: Index

    @classmethod
    def where(cls, on: Flags) -> Alarms:
        return cls(on, np.array([start for start, _ in runs(on)], dtype=np.intp))

    @property
    def changes(self) -> Index:
        """The rows in which alarms begin or have just ended."""
        ends = np.array([stop for _, stop in runs(self.on) if stop < len(self.on)], dtype=np.intp)
        return np.union1d(self.begins, ends)


Watcher = Callable[[CaseReadings], Alarms]
Detector = Callable[[CaseReadings, float, int], Watcher]  # history, false alarms per row, seed
