"""An experiment as data: problems, policies, a horizon and the kind of figure or table.

What ran is stored beside the results, so that a changed entry is noticed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from eccaht.streams import Covariance, Problem, effective_rank, families

Kind = Literal["curves", "sweep", "rank", "table", "panels", "stopping", "asymptotics", "lemmas"]
Cell = tuple[int, str]  # number of the setting, policy
_COMPARING = ("curves", "sweep", "rank")
_COLUMNS = {
    "stopping": ("hits", "measurements", "nats_for_truth"),
    "asymptotics": ("first_stop", "last_stop", "rate"),
    "lemmas": (
        *("cross_term", "backward", "covered", "settled", "hardest", "design"),
        *("exponent", "lead", "readings", "nats", "expected_nats", "gamma", "worth"),
    ),
}


class Ranks(NamedTuple):
    """Effective ranks of a covariance, see `effective_rank`."""

    shannon: float
    participation: float


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
        operator: Covariance = getattr(families, self.family)(**self.arguments)
        return operator

    def ranks(self) -> Ranks:
        """The effective ranks of the covariance, which figures, tables and claims share."""
        return _ranks(self.family, json.dumps(self.arguments, sort_keys=True))

    def problem(self) -> Problem:
        return Problem(self.covariance(), shift=self.shift, n_anomalies=self.n_anomalies, budget=self.budget)


@cache
def _ranks(family: str, arguments: str) -> Ranks:
    S = getattr(families, family)(**json.loads(arguments))
    return Ranks(effective_rank(S), effective_rank(S, kind="participation"))


@dataclass(frozen=True)
class Experiment:
    """One figure or table of the paper, or searches that one of its theorems is tested by.

    kind: `curves` F1 against measurements, a panel a setting; `sweep` measurements to F1 >= 0.95 against x; `rank`
    final F1 against effective rank; `table` effective ranks, nothing runs; `panels` figure 1; `stopping` wrong sets
    at which the gap rule stops; `asymptotics` measurements that the gap rule takes as alpha falls; `lemmas` what the
    paper's proofs bound.
    """

    id: str
    title: str
    kind: Kind
    settings: tuple[Setting, ...]
    policies: tuple[str, ...] = ()
    horizon: int = 0
    x_label: str = ""
    policy_options: dict[str, dict[str, Any]] = field(default_factory=dict)  # by policy, e.g. hds readings
    searches: int = 1  # of each cell for every run that is asked for: wrong sets are rare

    @property
    def compares(self) -> bool:
        return self.kind in _COMPARING

    @property
    def cells(self) -> list[Cell]:
        """What is run and stored: every policy in every setting, nothing for a table or figure 1."""
        if self.kind in ("table", "panels"):
            return []
        return [(k, policy) for k in range(len(self.settings)) for policy in self.policies]

    @property
    def columns(self) -> tuple[str, ...]:
        """The numbers that a run leaves, where these are not the hits after each measurement."""
        return _COLUMNS.get(self.kind, ())

    @property
    def tables(self) -> tuple[str, ...]:
        if self.kind == "panels":
            return (f"{self.id}.csv",)
        more = {"curves": ("curves.csv",)}
        return "summary.csv", *more.get(self.kind, ("runs.csv",) if self.columns else ())

    @property
    def pictures(self) -> tuple[str, ...]:
        drawn = self.compares or self.kind == "panels"
        return (f"{self.id}.pdf", f"{self.id}.png") if drawn else ()

    def repeats(self, runs: int) -> int:
        """How often each cell is run where `runs` are asked for; figure 1 shows one search."""
        return {"table": 0, "panels": 1}.get(self.kind, self.searches * runs)

    def as_dict(self) -> dict[str, Any]:
        """Plain values of the entry for JSON, NaN as None."""
        entry = asdict(self)
        for setting in entry["settings"]:
            setting["x"] = None if np.isnan(setting["x"]) else setting["x"]
        return entry

    @classmethod
    def from_dict(cls, entry: dict[str, Any]) -> Experiment:
        settings = ({**setting, "x": np.nan if setting["x"] is None else setting["x"]} for setting in entry["settings"])
        whole = {"settings": tuple(Setting(**setting) for setting in settings), "policies": tuple(entry["policies"])}
        return cls(**{**entry, **whole})
