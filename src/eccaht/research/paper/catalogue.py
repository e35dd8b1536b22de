"""Every experiment of the paper as data: problems, policies, a horizon and the kind of figure or table.

The entries read like the table of docs/paper/figures.md (WaDi is elsewhere). What ran is stored beside the results, so
that a changed entry is noticed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np

from eccaht.base.presentation.text import unknown
from eccaht.research.experiments.comparison import refusal
from eccaht.streams import Covariance, Problem, effective_rank, families, policy_names

Kind = Literal["curves", "sweep", "rank", "table", "panels", "stopping", "asymptotics"]
Cell = tuple[int, str]  # number of the setting, policy
_COMPARING = ("curves", "sweep", "rank")
_COLUMNS = {"stopping": ("hits", "measurements"), "asymptotics": ("first_stop", "last_stop", "rate")}
_SEARCHES = 10  # of a stopping rule for each run that is asked for: wrong sets are rare


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
    at which the gap rule stops; `asymptotics` measurements that the gap rule takes as alpha falls.
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
    def compares(self) -> bool:
        return self.kind in _COMPARING

    @property
    def shown(self) -> tuple[str, ...]:
        """All policies that are run and drawn."""
        return *self.policies, *self.added

    @property
    def cells(self) -> list[Cell]:
        """What is run and stored: every policy in every setting, nothing for a table or figure 1."""
        if self.kind in ("table", "panels"):
            return []
        return [(k, policy) for k in range(len(self.settings)) for policy in self.shown]

    @property
    def columns(self) -> tuple[str, ...]:
        """The numbers that a run leaves, where these are not the hits after each measurement."""
        return _COLUMNS.get(self.kind, ())

    @property
    def tables(self) -> tuple[str, ...]:
        if self.kind == "panels":
            return (f"{self.id}.csv",)
        more = {"curves": ("curves.csv",), "stopping": ("runs.csv",), "asymptotics": ("runs.csv",)}
        return "summary.csv", *more.get(self.kind, ())

    @property
    def pictures(self) -> tuple[str, ...]:
        return (f"{self.id}.pdf", f"{self.id}.png") if self.compares or self.kind == "panels" else ()

    def repeats(self, runs: int) -> int:
        """How often each cell is run where `runs` runs are asked for; figure 1 shows one search and no other."""
        return {"table": 0, "panels": 1, "stopping": _SEARCHES * runs}.get(self.kind, runs)

    def beside(self, *names: str) -> Experiment:
        """The same with further policies, where it compares policies with ecc-aht; those it has stay as they are."""
        if not self.compares or "ecc-aht" not in self.policies:
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

    @classmethod
    def from_dict(cls, entry: dict[str, Any]) -> Experiment:
        settings = ({**setting, "x": np.nan if setting["x"] is None else setting["x"]} for setting in entry["settings"])
        whole = {"settings": tuple(Setting(**setting) for setting in settings), "policies": tuple(entry["policies"])}
        return cls(**{**entry, **whole})


BASELINES = ("ecc-aht", "random-sparse", "round-robin")
ABLATIONS = ("ecc-aht", "simple-difference", "random-sparse", "diagonal", "cost-free")
TREES = ("ecc-aht", "hds", "restricted-tree")
BANDITS = ("ecc-aht", "base-arm-combgape", "ttts-challenger", "random-sparse", "round-robin", "combgape", "ttts")
# the sweeps of the paper run "to F1": here every run has this many measurements, and one that needs more is censored
SWEEP_HORIZON = 2000
AT_5_PERCENT = {"stopping": "gap", "alpha": 0.05}
RIDGE = {"regularize": 0.01}  # the policies believe S + 0.01 I, the world keeps S
LAST_ALPHA = 0.9999  # at 1 the spectral mixture is singular

SHIFTS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
RHOS = tuple(round(0.1 * k, 1) for k in range(-9, 10))
COUNTS = tuple(range(1, 7))
BUDGETS = (0.35, 0.4, 0.5, 0.6, 0.7, 1.0, 2.0, *(float(b) for b in range(4, 21, 2)), 25.0, 30.0, 40.0, 50.0)
ALPHAS = (*np.linspace(0.95, 1.0, 30)[:-1].tolist(), LAST_ALPHA)
LENGTH_SCALES = (*np.linspace(0.1, 5.0, 30).tolist(), *np.linspace(10.0, 75.0, 10).tolist())


def _toeplitz(K: int, rho: float, n: int, shift: float, budget: float, x: float = math.nan, label: str = "") -> Setting:
    return Setting(label or f"toeplitz {rho:g}", "toeplitz", {"K": K, "rho": rho}, n, shift, budget, x)


def _identity(K: int, n: int, shift: float, budget: float, label: str = "independent") -> Setting:
    return Setting(label, "identity", {"K": K}, n, shift, budget)


def _family(name: str, rho: float = 0.8, *, ridge: bool = False, label: str = "") -> Setting:
    """One of the eight families at the setting of fig3b."""
    shape: dict[str, Any] = {"K": 128, "rho": rho}
    if name == "kronecker":
        shape = {"rho": rho}
    elif name == "exponential":
        shape = {"K": 128, "length_scale": -1.0 / math.log(rho)}
    label = label or f"{name} {rho:g}" + (", believing S + 0.01 I" if ridge else "")
    return Setting(label, name, shape, 5, 3.0, 5.0, options=dict(RIDGE) if ridge else {})


def _mixtures(label: str, *, unit_variance: bool) -> list[Setting]:
    shape = {"K": 128, "unit_variance": unit_variance}
    return [Setting(label, "spectral_mixture", {**shape, "alpha": a}, 5, 3.0, 5.0, a) for a in ALPHAS]


def _rbfs() -> list[Setting]:
    return [Setting("rbf", "rbf", {"K": 128, "length_scale": s}, 5, 3.0, 5.0, s) for s in LENGTH_SCALES]


def _curves(id: str, title: str, policies: tuple[str, ...], horizon: int, *settings: Setting) -> Experiment:
    return Experiment(id, title, "curves", settings, policies, horizon, x_label="measurements")


def _sweep(id: str, x_label: str, settings: Iterable[Setting]) -> Experiment:
    title = f"Measurements to F1 >= 0.95 against {x_label} (censored at {SWEEP_HORIZON})"
    return Experiment(id, title, "sweep", tuple(settings), BASELINES, SWEEP_HORIZON, x_label)


def _stopped(id: str, title: str, kind: Kind, horizon: int, options: dict[str, Any], *settings: Setting) -> Experiment:
    """Searches of ecc-aht alone, with the gap rule."""
    return Experiment(id, title, kind, settings, ("ecc-aht",), horizon, policy_options={"ecc-aht": options})


def _rank(id: str, title: str, x_label: str, settings: Iterable[Setting]) -> Experiment:
    return Experiment(id, title, "rank", tuple(settings), ("ecc-aht",), 2000, x_label)


FAMILIES = ("toeplitz", "equicorrelation", "block", "circulant", "graph", "exponential", "rbf", "kronecker")

_ENTRIES = [
    _stopped("fig1", "One search seen from inside", "panels", 20, AT_5_PERCENT, _toeplitz(15, 0.6, 3, 3.0, 4.0)),
    _curves("fig5a", "Independent streams", BASELINES, 500, _identity(100, 3, 5.0, 4.0)),
    _curves("fig5b", "Moderate correlation", BASELINES, 500, _toeplitz(100, 0.5, 3, 5.0, 4.0)),
    _curves("fig5c", "A thousand streams", BASELINES, 5000, _toeplitz(1000, 0.8, 10, 3.0, 10.0)),
    _curves("fig2", "Ablation", ABLATIONS, 500, _toeplitz(100, 0.8, 3, 5.0, 4.0)),
    _sweep("fig6", "shift", (_toeplitz(100, 0.6, 3, d, 5.0, d, f"shift {d:g}") for d in SHIFTS)),
    _sweep("fig7", "correlation rho", (_toeplitz(100, r, 3, 3.0, 5.0, r, f"rho {r:g}") for r in RHOS)),
    _sweep("fig8", "number of anomalies n", (_toeplitz(100, 0.6, n, 3.0, 5.0, n, f"n {n}") for n in COUNTS)),
    _sweep("fig9", "budget B", (_toeplitz(100, 0.6, 3, 3.0, b, b, f"B {b:g}") for b in BUDGETS)),
    replace(
        _curves("fig3a", "Against hierarchical search", TREES, 1500, _identity(128, 5, 5.0, 5.0)),
        policy_options={"hds": {"readings": 5, "shifts": [3, 5, 7]}},
    ),
    _curves("fig3b", "Against bandits", BANDITS, 2000, _family("toeplitz")),
    *(
        _curves(f"fig{10 + k}", f"Against bandits, {name}", BANDITS, 2000, _family(name))
        for k, name in enumerate(FAMILIES[1:])
    ),
    Experiment("table1", "Effective ranks at rho 0.8", "table", tuple(_family(name, label=name) for name in FAMILIES)),
    _rank(
        "fig17",
        "Final F1 against effective rank, spectral mixture",
        "weight alpha of the common factor",
        [*_mixtures("as printed", unit_variance=False), *_mixtures("unit variance", unit_variance=True)],
    ),
    _rank("fig18", "Final F1 against effective rank, rbf", "length scale", _rbfs()),
    *(
        _curves(
            f"fig{19 + k}",
            f"{name.capitalize()}: weaker correlation, and regularization",
            BANDITS,
            2000,
            _family(name, 0.5),
            _family(name, ridge=True),
        )
        for k, name in enumerate(("equicorrelation", "kronecker", "rbf"))
    ),
    *(
        _curves(f"fig{22 + k}", f"{name.capitalize()} with regularization", BANDITS, 2000, _family(name, ridge=True))
        for k, name in enumerate(("toeplitz", "block", "circulant", "exponential", "graph"))
    ),
]

# tests of the two theorems about the gap rule, which the paper shows in no figure
_THEOREM = (
    _identity(100, 3, 5.0, 4.0, "independent streams"),
    _toeplitz(100, 0.5, 3, 5.0, 4.0),
    _toeplitz(100, 0.8, 3, 5.0, 4.0),
)
_ENTRIES += [
    _stopped(
        "stopping", "Wrong sets announced by the gap rule at alpha = 0.05", "stopping", 1000, AT_5_PERCENT, *_THEOREM
    ),
    _stopped(
        "asymptotics",
        "Measurements for each nat of log(1/alpha), times Gamma*, from alpha = 1e-20 to 1e-80",
        "asymptotics",
        1000,
        {"alphas": [1e-20, 1e-80]},  # so small that the beginning of a search does not matter
        *_THEOREM,
    ),
]

EXPERIMENTS: dict[str, Experiment] = {entry.id: entry for entry in _ENTRIES}


def choose(names: Iterable[str]) -> list[Experiment]:
    """Return experiments by id, each once, in the order of the catalogue; `all` is every one of them.

    >>> [experiment.id for experiment in choose(["fig5b", "fig1", "fig5b"])]
    ['fig1', 'fig5b']
    """
    wanted = set(names)
    for name in sorted(wanted - EXPERIMENTS.keys() - {"all"}):
        raise unknown(name, ["all", *EXPERIMENTS], "experiment", cutoff=0.0)
    return [entry for entry in EXPERIMENTS.values() if "all" in wanted or entry.id in wanted]


def beside(experiments: Iterable[Experiment], names: Iterable[str]) -> list[Experiment]:
    """Return the experiments with further policies in all that compare policies; refuse what cannot be run.

    >>> [experiment.added for experiment in beside(choose(["fig1", "fig18"]), ["joint"])]
    [(), ('joint',)]
    """
    wanted, plain = list(dict.fromkeys(names)), list(experiments)
    for name in wanted:
        if name not in policy_names():
            raise unknown(name, policy_names(), "policy", cutoff=0.0)
    more = [experiment.beside(*wanted) for experiment in plain]
    if wanted and not any({*wanted} <= {*experiment.shown} for experiment in more):
        ids = ", ".join(experiment.id for experiment in more)
        raise ValueError(f"nothing to show {', '.join(wanted)} beside: no policies are compared in {ids}")
    for experiment in more:
        for setting in experiment.settings if experiment.added else ():
            problem = setting.problem()
            for name in experiment.added:
                if reason := refusal(name, problem, **setting.options):
                    raise ValueError(f"{name} cannot be run in {experiment.id}: {reason}")
    return more
