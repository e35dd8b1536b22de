"""How often the set that a watch names is exactly right, as drills counted it.

A watch that gives confidences can use this: it needs nothing of the drills themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from eccaht.archive import check_keys
from eccaht.arrays import Array, Index, as_number
from eccaht.incident.judge import Basis
from eccaht.incident.promise import ConfidenceTable, bounded_share

SETTLED = 10  # windows after an alarm in which its set is looked at once more
_STANDING = ("stuck", "silent")


class NamedSet(NamedTuple):
    """What a watch names: sensors with their kinds, and what that stands on.

    belief: the probability of exactly this set by the beliefs of the alarm; NaN where no evidence stands behind it.
    """

    sensors: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    basis: Basis = "nothing"
    belief: float = float("nan")


Outcome = tuple[NamedSet, bool]  # and whether it was exactly the set of the faulty sensors


def set_belief(beliefs: Array, members: Index) -> float:
    """The probability that exactly these sensors are wrong, by beliefs, (K,), as if sensors were independent.

    >>> round(set_belief(np.array([0.9, 0.2, 0.5]), np.array([0, 2])), 9)
    0.36
    """
    inside = np.zeros(len(beliefs), dtype=bool)
    inside[members] = True
    return math.prod(np.where(inside, beliefs, 1.0 - beliefs).tolist())


@dataclass(frozen=True, eq=False)
class SetConfidence:
    """The share of named sets that were exactly right, at the lower end of its interval.

    table: by the belief in the set, where it stands on evidence. stuck, silent: of sets that stand on nothing else, NaN
    if no drill had one.
    """

    table: ConfidenceTable
    stuck: float
    silent: float

    @staticmethod
    def of(outcomes: Sequence[Outcome]) -> SetConfidence:
        """Count sets that were named."""
        by_evidence = [(named.belief, right) for named, right in outcomes if named.basis == "evidence"]
        told = np.array([belief for belief, _ in by_evidence])
        table = ConfidenceTable.of(told, np.array([right for _, right in by_evidence], dtype=np.float64))
        return SetConfidence(table, *(_share(outcomes, basis) for basis in _STANDING))

    def counted(self, basis: Basis, belief: float) -> float:
        """The counted confidence in a set; NaN where none was counted."""
        if basis == "evidence":
            return self.table.counted(belief)
        return {"stuck": self.stuck, "silent": self.silent}.get(basis, float("nan"))

    def header(self) -> dict[str, Any]:
        """As plain numbers, for a file."""
        shares = {
            basis: None if share != share else share
            for basis, share in zip(_STANDING, (self.stuck, self.silent), strict=True)
        }
        return {"table": self.table.header(), **shares}

    @staticmethod
    def build(header: Any) -> SetConfidence:
        """From what `header` gave, which a stranger may have written."""
        check_keys(header, {"table", *_STANDING}, "confidence of the watch")
        table = ConfidenceTable.build(header["table"])
        return SetConfidence(table, *(_built_share(header[basis]) for basis in _STANDING))


@dataclass(frozen=True, eq=False)
class WatchConfidence:
    """How often the set of an alarm is exactly right, if there is a fault of the kinds that were drilled.

    raised: when the alarm is raised. settled: SETTLED windows later, and from then on.
    """

    raised: SetConfidence
    settled: SetConfidence

    @staticmethod
    def of(raised: Sequence[Outcome], settled: Sequence[Outcome]) -> WatchConfidence:
        """Count what first alarms named, and what was named SETTLED windows later."""
        return WatchConfidence(SetConfidence.of(raised), SetConfidence.of(settled))

    def counted(self, basis: Basis, belief: float, age: int) -> float:
        """The counted confidence in a set, `age` windows after its alarm; NaN where none was counted."""
        return (self.raised if age < SETTLED else self.settled).counted(basis, belief)

    def header(self) -> dict[str, Any]:
        """As plain numbers, for a file."""
        return {"raised": self.raised.header(), "settled": self.settled.header()}

    @staticmethod
    def build(header: Any) -> WatchConfidence:
        """From what `header` gave, which a stranger may have written."""
        check_keys(header, {"raised", "settled"}, "confidence of the watch")
        return WatchConfidence(*(SetConfidence.build(header[when]) for when in ("raised", "settled")))


def _share(outcomes: Sequence[Outcome], basis: str) -> float:
    right = [good for named, good in outcomes if named.basis == basis]
    return bounded_share(sum(right), len(right)) if right else float("nan")


def _built_share(share: Any) -> float:
    if share is None:
        return float("nan")
    if not 0.0 <= as_number(share, "a counted share") <= 1.0:
        raise ValueError("its confidence of the watch is damaged")
    return float(share)
