"""From drills to a confidence that holds: the factor on the evidence, and the confidence as it was counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from scipy.special import betaincinv

from eccaht.archive import check_keys
from eccaht.arrays import Array, as_floats, frozen
from eccaht.incident.drilling import Drill, Judged, confidence
from eccaht.incident.judge import Basis

FACTORS = np.geomspace(1.0, 1e-3, 61)
DOUBT = 0.1  # the counted share is taken at the lower end of a one-sided interval that it exceeds with 1 - DOUBT
WITHOUT_EVIDENCE: tuple[Basis, ...] = ("nothing", "silent", "stuck")
_LONGEST = 10_000  # pools of a table


def fit_factor(drills: Sequence[Drill]) -> float:
    """The factor on the evidence, at most 1, with which confidences come closest to what was right (least log loss).

    Only drills whose part is "fit" are looked at.
    """
    fitted = [drill for drill in drills if drill.part == "fit"]
    right = np.array([drill.right for drill in fitted], dtype=bool)
    losses = []
    for factor in FACTORS.tolist():
        told = np.clip([drill.confidence(factor) for drill in fitted], 1e-6, 1.0 - 1e-6)
        losses.append(-float(np.where(right, np.log(told), np.log1p(-told)).mean()) if fitted else 0.0)
    return float(FACTORS[int(np.argmin(losses))])


@dataclass(frozen=True, eq=False)
class ConfidenceTable:
    """The share of right answers among drills, by their confidence after the factor.

    edges: the least confidence of each pool of drills, increasing, (P,). values: what was counted there, (P,),
    increasing: the lower end of an interval for that share, since a few right answers are no certainty.
    """

    edges: Array
    values: Array

    def __post_init__(self) -> None:
        for name in ("edges", "values"):
            array = np.array(as_floats(getattr(self, name), name))
            good = array.ndim == 1 and array.shape == np.shape(self.edges) and ((array >= 0.0) & (array <= 1.0)).all()
            if not good or len(array) > _LONGEST:
                raise ValueError(f"the {name} of a table of confidences must be probabilities, one a pool")
            object.__setattr__(self, name, frozen(array))
        if (np.diff(self.edges) <= 0).any() or (np.diff(self.values) <= 0).any():
            raise ValueError("a table of confidences must increase")
        if (self.values >= 1.0).any():
            raise ValueError("a table of confidences must stay below 1: nothing counted is certain")

    @staticmethod
    def fitted(drills: Sequence[Drill], factor: float) -> ConfidenceTable:
        """Count the drills whose part is "fit"."""
        chosen = [drill for drill in drills if drill.part == "fit"]
        told = np.array([drill.confidence(factor) for drill in chosen])
        return ConfidenceTable.of(told, np.array([drill.right for drill in chosen], dtype=np.float64))

    @staticmethod
    def of(told: Array, right: Array) -> ConfidenceTable:
        """Count answers: the confidence that was told, (n,), and whether each was right, (n,).

        Adjacent violators are pooled until what was counted increases with what was told.
        """
        levels, places = np.unique(told, return_inverse=True)
        counts = zip(levels.tolist(), np.bincount(places), np.bincount(places, weights=right), strict=True)
        pools = [_Pool(level, int(drills), int(hits)) for level, drills, hits in counts]
        # the bound comes second: single drills, each of them bounded by 2/3, would never leave the pool before them
        for value in (_Pool.share, _Pool.bounded):
            pools = _increasing(pools, value)
        return ConfidenceTable(np.array([pool.least for pool in pools]), np.array([pool.bounded() for pool in pools]))

    def counted(self, confidence: float) -> float:
        """The counted confidence; NaN if nothing was counted.

        Below the least one of all drills, where nothing was counted, it is not above what the evidence says.

        >>> table = ConfidenceTable(np.array([0.5, 0.9]), np.array([0.6, 0.95]))
        >>> table.counted(0.97), table.counted(0.7), table.counted(0.2)
        (0.95, 0.6, 0.2)
        """
        if not len(self.edges) or confidence != confidence:
            return float("nan")
        place = int(np.searchsorted(self.edges, confidence, side="right")) - 1
        return float(self.values[place]) if place >= 0 else min(float(confidence), float(self.values[0]))

    def header(self) -> dict[str, list[float]]:
        """The table as plain numbers."""
        return {"edges": self.edges.tolist(), "values": self.values.tolist()}

    @staticmethod
    def build(header: Any) -> ConfidenceTable:
        """The table that `header` describes, which a stranger may have written."""
        check_keys(header, {"edges", "values"}, "table of confidences")
        for numbers in header.values():
            good = isinstance(numbers, list) and all(type(number) in (int, float) for number in numbers)
            if not good or not all(0 <= number <= 1 for number in numbers):
                raise ValueError("its table of confidences is damaged")
        return ConfidenceTable(np.array(header["edges"], dtype=float), np.array(header["values"], dtype=float))


@dataclass(frozen=True, eq=False)
class Promise:
    """How evidence becomes a confidence that was counted: the factor on it, and the table behind it.

    shares: the counted shares of right answers that no evidence stands behind, by their basis in WITHOUT_EVIDENCE;
    NaN where no drill had such an answer.
    """

    factor: float
    table: ConfidenceTable
    shares: dict[Basis, float]

    @staticmethod
    def fitted(drills: Sequence[Drill]) -> Promise:
        """Fit both to the drills whose part is "fit"."""
        fitted = [drill for drill in drills if drill.part == "fit"]
        by_basis = {basis: [drill for drill in fitted if drill.basis == basis] for basis in get_args(Basis)}
        factor = fit_factor(by_basis["evidence"])
        shares = {basis: _bounded_share(by_basis[basis]) for basis in WITHOUT_EVIDENCE}
        return Promise(factor, ConfidenceTable.fitted(by_basis["evidence"], factor), shares)

    def confidence(self, judged: Judged) -> float:
        """The counted confidence of what a judge said; NaN if nothing was counted."""
        if judged.basis in self.shares:
            return self.shares[judged.basis]
        return self.table.counted(confidence(judged.log_odds, self.factor))


def bounded_share(right: int, answers: int) -> float:
    """The lower end of the one-sided Clopper-Pearson interval for the share of right answers.

    >>> round(bounded_share(10, 10), 2), bounded_share(0, 3)
    (0.79, 0.0)
    """
    return float(betaincinv(right, answers - right + 1, DOUBT)) if right else 0.0


def _bounded_share(drills: Sequence[Drill]) -> float:
    """The lower end of the interval for the share of right ones, NaN without drills."""
    return bounded_share(sum(drill.right for drill in drills), len(drills)) if drills else float("nan")


class _Pool(NamedTuple):
    """Drills with neighbouring confidences: the least of these, how many drills, how many of them right."""

    least: float
    drills: int
    right: int

    def share(self) -> float:
        return self.right / self.drills

    def bounded(self) -> float:
        return bounded_share(self.right, self.drills)


def _increasing(pools: list[_Pool], value: Callable[[_Pool], float]) -> list[_Pool]:
    """The pools, joined with those before them until their value increases."""
    kept: list[_Pool] = []
    for pool in pools:
        while kept and value(kept[-1]) >= value(pool):
            before = kept.pop()
            pool = _Pool(before.least, before.drills + pool.drills, before.right + pool.right)
        kept.append(pool)
    return kept
