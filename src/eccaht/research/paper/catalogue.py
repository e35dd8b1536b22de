"""Every experiment of the paper.

The entries read like the table of docs/paper/figures.md (WaDi is elsewhere).
"""

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from eccaht.base.presentation.text import unknown
from eccaht.research.paper.experiment import Experiment, Kind, Setting

BASELINES = ("ecc-aht", "random-sparse", "round-robin")
RESTRICTED = ("ecc-aht", "mean-difference", "restricted-coordinates")
ABLATIONS = ("ecc-aht", "simple-difference", "random-sparse", "diagonal", "cost-free")
TREES = ("ecc-aht", "hds", "restricted-tree")
BANDITS = ("ecc-aht", "base-arm-combgape", "ttts-challenger", "random-sparse", "round-robin", "combgape", "ttts")
# the sweeps of the paper run "to F1": here every run has this many measurements, and one that needs more is censored
SWEEP_HORIZON = 2000
_SEARCHES = {"stopping": 10, "lemmas": 5}  # for each run that is asked for: what goes wrong is rare
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
    """Searches of ecc-aht alone."""
    found, searches = {"ecc-aht": options}, _SEARCHES.get(kind, 1)
    return Experiment(id, title, kind, settings, ("ecc-aht",), horizon, policy_options=found, searches=searches)


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

# what the paper claims without a figure: tests of its theorems, and two ablations of its last appendix
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
    _stopped(
        "lemmas",
        "What the lemmas of appendices E and F bound",
        "lemmas",
        2000,
        {"enough": 400},
        *_THEOREM[:2],
        _family("toeplitz"),
        _toeplitz(100, -0.6, 3, 3.0, 5.0),
    ),
    _curves("ablations", "Ablations of the last appendix", RESTRICTED, 500, _toeplitz(100, 0.8, 3, 5.0, 4.0)),
]

EXPERIMENTS: dict[str, Experiment] = {entry.id: entry for entry in _ENTRIES}


def choose(names: Iterable[str]) -> list[Experiment]:
    """Return experiments by id, each once, in the order of the catalogue; `all` is every one.

    >>> [experiment.id for experiment in choose(["fig5b", "fig1", "fig5b"])]
    ['fig1', 'fig5b']
    """
    wanted = set(names)
    for name in sorted(wanted - EXPERIMENTS.keys() - {"all"}):
        raise unknown(name, ["all", *EXPERIMENTS], "experiment", cutoff=0.0)
    return [entry for entry in EXPERIMENTS.values() if entry.id in wanted or "all" in wanted]
