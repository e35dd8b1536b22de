"""An experiment is data: problems, policies, a horizon and what the picture shows.

The entries themselves are in catalogue.py; what ran is stored beside the results, so that a changed entry is noticed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from eccaht.covariance import Covariance, families
from eccaht.problem import Problem

Kind = Literal["curves", "sweep", "rank", "table", "panels"]


@dataclass(frozen=True)
class Setting:
    """One problem of an experiment; `x` is its place on the horizontal axis of a sweep."""

    label: str
    family: str  # a function of eccaht.families
    arguments: dict[str, Any]  # its keyword arguments
    n_anomalies: int
    shift: float
    budget: float
    x: float = float("nan")
    options: dict[str, Any] = field(default_factory=dict)  # for every policy, e.g. {"regularize": 0.01}

    def covariance(self) -> Covariance:
        """Build the covariance."""
        build = getattr(families, self.family)
        operator: Covariance = build(**self.arguments)
        return operator

    def problem(self) -> Problem:
        """Build the problem."""
        return Problem(self.covariance(), shift=self.shift, n_anomalies=self.n_anomalies, budget=self.budget)


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper.

    kind: `curves` F1 against measurements, a panel a setting; `sweep` measurements to F1 >= 0.95 against x; `rank`
    final F1 against effective rank; `table` effective ranks, nothing runs; `panels` figure 1.
    """

    id: str
    title: str
    kind: Kind
    settings: tuple[Setting, ...]
    policies: tuple[str, ...] = ()
    horizon: int = 0
    x_label: str = ""
    policy_options: dict[str, dict[str, Any]] = field(default_factory=dict)  # by policy, e.g. hds readings
    added: tuple[str, ...] = ()  # policies that were asked for beside those of the paper; no claim is judged by them

    @property
    def shown(self) -> tuple[str, ...]:
        """All policies that are run and drawn."""
        return *self.policies, *self.added

    def beside(self, *names: str) -> Experiment:
        """The same with further policies, where it compares policies with ecc-aht; those it has stay as they are."""
        if self.kind in ("table", "panels") or "ecc-aht" not in self.policies:
            return self
        new = (name for name in dict.fromkeys(names) if name not in self.shown)
        return replace(self, added=(*self.added, *new))

    def as_dict(self) -> dict[str, Any]:
        """Plain values of the entry for JSON, NaN as None; what was added is no part of it."""
        entry = asdict(self)
        del entry["added"]
        for setting in entry["settings"]:
            setting["x"] = None if np.isnan(setting["x"]) else setting["x"]
        return entry
