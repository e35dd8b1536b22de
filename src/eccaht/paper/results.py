"""Results of an experiment in memory: hits after every measurement, from which all else follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.paper.spec import Experiment
from eccaht.statistics import f1_score

Cell = tuple[int, str]  # number of the setting, policy


@dataclass(frozen=True)
class Results:
    """All cells of one experiment: hits[setting, policy] has shape (runs, horizon)."""

    experiment: Experiment
    seed: int
    hits: Mapping[Cell, NDArray[np.int32]]

    def f1(self, setting: int, policy: str) -> Array:
        """F1 after each measurement, (runs, horizon)."""
        n = self.experiment.settings[setting].n_anomalies
        return f1_score(self.hits[setting, policy], n, n)

    @property
    def runs(self) -> int:
        """How often each cell was run; 0 where nothing runs."""
        return len(next(iter(self.hits.values()), ()))
