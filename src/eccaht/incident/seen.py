"""What stretches of one length show of each sensor by itself: all that a yardstick is made from and an alarm needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.incident.others import Shifts, worth_of_sums
from eccaht.incident.views import STEP_SPREAD, Evidence

_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Seen:
    """n stretches of `length` windows; arrays are (n, K) unless said otherwise.

    own, free: evidence in these views. sums: of g over the windows. totals, which: the sums of Q over the windows,
    (P, K, K), and the place of each stretch among them, (n,). power, largest: of the innovations, against their spread
    just before. ease: the variance of what the others leave unexplained just before. judged: what is judged at all.
    """

    length: int
    own: Array
    free: Array
    sums: Array
    totals: Array
    which: NDArray[np.intp]
    power: Array
    largest: Array
    ease: Array
    judged: NDArray[np.bool_]

    @staticmethod
    def of(views: Sequence[Evidence]) -> Seen:
        """Look at the views of stretches that have the same length."""
        totals: dict[int, Array] = {}
        which = []
        for view in views:
            whole = not np.isnan(view.scores).any()
            key = id(view.precision) if whole else -len(totals) - 1  # without gaps the sum of Q is the same for all
            if key not in totals:
                totals[key] = view.total
            which.append(list(totals).index(key) if whole else len(totals) - 1)
        return Seen(
            length=views[0].length,
            own=np.stack([view.own for view in views]),
            free=np.stack([view.free() for view in views]),
            sums=np.stack([view.sums for view in views]),
            totals=np.stack(list(totals.values())),
            which=np.array(which, dtype=np.intp),
            power=np.stack([view.power / view.recent**2 for view in views]),
            largest=np.stack([view.largest / view.recent for view in views]),
            ease=np.stack([view.given**2 for view in views]),
            judged=np.stack([view.judged for view in views]),
        )

    @staticmethod
    def together(parts: Sequence[Seen]) -> Seen:
        """The stretches of several parts, one after the other."""
        names = ("own", "free", "sums", "totals", "power", "largest", "ease", "judged")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        offsets = np.cumsum([0, *(len(part.totals) for part in parts[:-1])])
        which = np.concatenate([part.which + offset for part, offset in zip(parts, offsets, strict=True)])
        return Seen(length=parts[0].length, which=which, **joined)

    def __len__(self) -> int:
        return len(self.own)

    def halves(self) -> tuple[Seen, Seen]:
        """The earlier stretches, and the later ones."""
        middle = len(self) // 2
        return self._at(slice(0, middle)), self._at(slice(middle, None))

    def _at(self, chosen: slice) -> Seen:
        names = ("own", "free", "sums", "which", "power", "largest", "ease", "judged")
        return Seen(length=self.length, totals=self.totals, **{name: getattr(self, name)[chosen] for name in names})

    def inflation(self) -> Array:
        """How much more the sums of g vary than if windows were independent, at least 1, (K,)."""
        variances = np.maximum(np.einsum("pkk->pk", self.totals), _LEAST)[self.which]
        return np.asarray(np.maximum(np.mean(self.sums**2 / variances, axis=0), 1.0))

    def step(self, inflation: Array) -> Array:
        """Evidence by one shift in all windows, which are worth what their memory leaves, (n, K)."""
        gains = np.empty_like(self.sums)
        for number, total in enumerate(self.totals):
            rows = np.flatnonzero(self.which == number)
            if rows.size:
                W, M = worth_of_sums(total, inflation)
                gains[rows] = Shifts(self.sums[rows] @ W.T, M, STEP_SPREAD).gains()
        return np.minimum(gains, self.free + 0.5 * self.length)
