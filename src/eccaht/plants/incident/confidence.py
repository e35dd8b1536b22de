"""How often the set that an answer names is exactly right, as estimated in drills.

A set is as clear as its least certain sensor and the most suspect of the others allow: one that is barely named, or one
that is nearly named, makes it doubtful, and so do few windows. What clarity is worth is estimated: among drills, sorted
by it, the share of right sets is made to increase by pooling neighbours, and a pool gives a lower bound of its share.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eccaht.base.archive import check_keys
from eccaht.base.arrays import Array, frozen

LONGEST = 96  # windows that a drilled fault lasts: more make a set no clearer
FEWEST = 40  # drills in a pool
_BOUND = 0.25  # the lower bound of a pool: its lower quartile, below which the share is with this probability
_MOST = 20.0  # log-odds: more makes a set no clearer
_LEAST = 1e-12


def set_belief(beliefs: Array, named: Sequence[int], standing: Collection[int] = (), windows: int = 1) -> float:
    """How clear it is that exactly these sensors are wrong, from 0 on.

    With a the least log-odds of a named sensor to be wrong, b the least of another to be sound, both at least 0, and L
    the number of windows: log(1 + a) + log(1 + b) + log(L) / 5. standing: sensors that are stuck, silent or out of
    range, which are wrong by themselves. The form and its fifth were chosen on simulated plants by how many drills with
    other seeds could be answered with confidence.

    >>> round(set_belief(np.array([0.99, 0.1, 0.01]), [0]), 2)
    2.88
    """
    chances = np.clip(beliefs, _LEAST, 1.0 - _LEAST)
    odds = np.log(chances) - np.log1p(-chances)
    wrong = [float(odds[k]) for k in named if k not in standing]
    sound = np.delete(-odds, list(named))
    least = min([_MOST, *wrong]), min([_MOST, *sound.tolist()])
    length = np.log(min(max(windows, 1), LONGEST))
    return float(np.log1p(np.maximum(least, 0.0)).sum() + length / 5.0)


@dataclass(frozen=True, eq=False)
class DrilledConfidence:
    """The share of right sets by their clarity: steps at `edges`, increasing, with `shares`, (n,) each."""

    edges: Array
    shares: Array

    def __post_init__(self) -> None:
        for name in ("edges", "shares"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name), dtype=np.float64)))
        good = self.edges.ndim == 1 and self.edges.shape == self.shares.shape and self.edges.size > 0
        good = good and bool(np.isfinite(self.edges).all() and (np.diff(self.edges) >= 0).all())
        if not good or not ((self.shares >= 0) & (self.shares <= 1)).all() or (np.diff(self.shares) < 0).any():
            raise ValueError("its confidence is damaged")

    @staticmethod
    def of(outcomes: Sequence[tuple[float, bool]]) -> DrilledConfidence | None:
        """From drills, as clarity and whether the set was right; None if there are too few."""
        if len(outcomes) < FEWEST:
            return None
        from scipy.stats import beta

        ordered = sorted(outcomes)
        clarity = np.array([each for each, _ in ordered])
        right_so_far = np.cumsum([0, *(right for _, right in ordered)])
        pools: list[tuple[float, int, int]] = []  # least clarity, right ones, all
        stop = 0
        while stop < len(ordered):
            start = stop
            stop = int(np.searchsorted(clarity, clarity[min(start + FEWEST, len(ordered)) - 1], side="right"))
            if len(ordered) - stop < FEWEST:
                stop = len(ordered)
            pools.append((float(clarity[start]), int(right_so_far[stop] - right_so_far[start]), stop - start))
            while len(pools) > 1 and pools[-2][1] * pools[-1][2] >= pools[-1][1] * pools[-2][2]:
                _, right, many = pools.pop()
                pools[-1] = (pools[-1][0], pools[-1][1] + right, pools[-1][2] + many)
        edges, right_ones, all_ones = np.array(pools).T
        bounds = beta.ppf(_BOUND, right_ones + 0.5, all_ones - right_ones + 0.5)
        return DrilledConfidence(edges, np.maximum.accumulate(bounds))

    def counted(self, clarity: float) -> float:
        """The share of right sets among drills that were as clear."""
        place = int(np.searchsorted(self.edges, clarity, side="right")) - 1
        return float(self.shares[max(place, 0)])

    def header(self) -> dict[str, Any]:
        return {"edges": self.edges.tolist(), "shares": self.shares.tolist()}

    @staticmethod
    def build(header: Any) -> DrilledConfidence | None:
        """From what `header` gave; whatever is no confidence is refused."""
        if header is None:
            return None
        check_keys(header, {"edges", "shares"}, "confidence")
        for numbers in header.values():
            if not isinstance(numbers, list) or not all(type(number) in (int, float) for number in numbers):
                raise ValueError("its confidence is damaged")
        return DrilledConfidence(
            np.array(header["edges"], dtype=np.float64), np.array(header["shares"], dtype=np.float64)
        )
