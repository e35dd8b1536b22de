"""How often an answer like this one is exactly right, as drills on the history of a plant counted.

Clues say how clear an answer is: the evidence of the sensors that are named and of those that are not, how many are
named, of what kinds, and how long the incident is. A logistic regression on the clues of all drilled answers gives the
share of right ones among those like it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from eccaht.base.arrays import Array
from eccaht.base.codec import Field, Sizes
from eccaht.plants.incident.naming import LONGEST_DRILL, Naming

_KINDS = ("step", "drift", "noise", "replay", "free", "stuck", "silent", "range")
N_CLUES = 6 + len(_KINDS)
FEWEST = 40  # drilled answers; fewer say too little
_RIDGE = 1.0  # weights of clues of unit variance have the prior N(0, 1)
_HIGHEST = 1e9


Clues = tuple[float, ...]


def clues_of(naming: Naming, kinds: Mapping[int, str] | None = None, weight: float = 0.0, windows: int = 1) -> Clues:
    """What says how clear an answer is: N_CLUES numbers.

    kinds: of the named sensors. weight: of the incident. windows: that it lasted. At an alarm, none of the three is
    known yet.
    """
    kinds, named = kinds or {}, list(naming.named)
    free = [k for k in named if kinds.get(k) not in _KINDS[-3:]]  # the others are wrong by themselves
    least = min((naming.rarity[k] - naming.needed for k in free), default=0.0)
    others = naming.needed - np.delete(naming.rarity, named).max(initial=0.0)
    lasted, counts = float(np.log(min(windows, LONGEST_DRILL))), [list(kinds.values()).count(kind) for kind in _KINDS]
    strengths = np.log1p(np.maximum([least, others, weight], 0.0)).tolist()
    return (*strengths, lasted, float(len(named) == 2), float(len(named) > 2), *map(float, counts))


@dataclass(frozen=True, eq=False)
class DrilledConfidence:
    """The share of right sets by their clues: its log-odds are linear in them.

    weights: of 1 and of the clues, (N_CLUES + 1,). low, high: between which drills had the clues, (N_CLUES,); an answer
    beyond counts as one at the end.
    """

    weights: Array
    low: Array
    high: Array

    FIELDS = (
        Field("weights", (N_CLUES + 1,), low=-_HIGHEST, high=_HIGHEST, row=np.array),
        *(Field(name, (N_CLUES,), low=0.0, high=_HIGHEST, row=np.array) for name in ("low", "high")),
    )

    def check_restored(self, sizes: Sizes) -> None:  # noqa: ARG002
        if (self.low > self.high).any():
            raise ValueError("its confidence is damaged: its clues have no range")

    def counted(self, clues: Clues) -> float:
        """The share of right sets among drills like this answer."""
        return float(expit(self.weights[0] + self.weights[1:] @ np.clip(clues, self.low, self.high)))


def fitted(clues: Sequence[Clues], right: Sequence[bool]) -> DrilledConfidence | None:
    """Fit the share of right sets to drilled answers; None if there are too few.

    With n right and m wrong ones the targets are (n + 1) / (n + 2) and 1 / (m + 2), by Platt's rule: no finite number
    of drills shows that an answer is always right.
    """
    if len(clues) < FEWEST:
        return None
    from scipy.optimize import minimize

    rows, n = np.array(clues), sum(right)
    target = np.where(right, (n + 1.0) / (n + 2.0), 1.0 / (len(right) - n + 2.0))
    mean, unit = rows.mean(axis=0), rows.std(axis=0)
    unit[unit == 0.0] = 1.0  # a clue that does not vary has no weight
    z = np.column_stack([np.ones(len(rows)), (rows - mean) / unit])
    ridge = np.array([0.0, *np.full(N_CLUES, _RIDGE)])

    def loss(weights: Array) -> tuple[float, Array]:
        odds = z @ weights
        value = np.logaddexp(0.0, odds).sum() - target @ odds + 0.5 * ridge @ weights**2
        return float(value), z.T @ (expit(odds) - target) + ridge * weights

    found = minimize(loss, np.zeros(z.shape[1]), jac=True).x
    weights = found[1:] / unit
    return DrilledConfidence(np.array([found[0] - weights @ mean, *weights]), rows.min(axis=0), rows.max(axis=0))
