"""Constraints of eccaht, alone or several together: each narrows a region, and the solvers know regions alone."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from eccaht.base.arrays import Array, Index, rounded_up, scattered
from eccaht.base.codec import Fields, state_of
from eccaht.streams.covariance import Covariance
from eccaht.streams.measurements.base import Constraint, Design, NotShown
from eccaht.streams.measurements.budget import Budget, Unlimited
from eccaht.streams.measurements.convex import best_weights
from eccaht.streams.measurements.grid import from_list, on_grid
from eccaht.streams.measurements.region import Region, Solution
from eccaht.streams.measurements.selection import select

_SHOWN = 6  # entries of a list in a message


class Rule(Constraint):
    """A constraint that narrows a region; its FIELDS are its constructor's arguments, for files and comparisons."""

    FIELDS: ClassVar[Fields] = ()
    lasting: ClassVar[bool] = True

    @property
    def reshapes(self) -> bool:
        return True

    @abstractmethod
    def narrow(self, region: Region) -> None:
        """Take away what is not allowed; a ValueError if it does not fit what is there."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The rules that it combines, itself alone if it is one."""
        return (self,)

    def with_noise(self, noise: float) -> Constraint:
        """The same for an instrument of this noise; under the paper's budget designs do not look at it."""
        if not noise or self.noise is not None or any(isinstance(part, Budget) for part in self.parts):
            return self
        from eccaht.streams.measurements.rules import Noise

        return self & Noise(noise)

    def region(self, size: int) -> Region:
        """What is allowed for so many streams; a ValueError that names the parts if that is nothing."""
        known: dict[int, Region] = self.__dict__.setdefault("_regions", {})
        if size not in known:
            known[size] = _region(self.parts, size)
        return known[size]

    def check_streams(self, size: int) -> None:
        self.region(size)

    def allows(self, c: Array) -> bool:
        return self.region(c.size).allows(c)

    def scaled(self, direction: Array) -> Array:
        try:
            return self.region(direction.size).scaled(direction)
        except ValueError:
            raise ValueError(f"{self!r} allows no multiple of this direction") from None

    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        """Solve exactly where the allowed weights are convex, by relaxation and exchange where they are not."""
        found = self._solved(covariance, indices, values)
        noise, given = self.region(covariance.size).noise or 0.0, (covariance, indices, values, found.weights.copy())
        return Design(*given, found.active, lambda: found.residual, noise, 0.5 * found.ceiling)

    def _solved(self, covariance: Covariance, indices: Index, values: Array) -> Solution:
        """Maximise eq. 2, with the noise of the instrument, over what is allowed."""
        region, D = self.region(covariance.size), scattered(covariance.size, indices, values)
        if region.rows is not None:
            found = from_list(region, self._variances(covariance, region.rows), D)
        elif region.levels is not None:
            found = on_grid(region, covariance, D)
        elif region.sparse:
            found = select(region, covariance, D)
        else:
            found = best_weights(region, covariance, D)
        if found is None:
            listed = region.rows is not None or region.levels is not None
            raise self._not_shown(indices if listed else np.flatnonzero(D))
        return found

    def _variances(self, covariance: Covariance, rows: Array) -> Array:
        """row'S row of all listed measurements, worked out once for a covariance."""
        known = self.__dict__.setdefault("_listed", WeakKeyDictionary())
        if covariance not in known:
            known[covariance] = np.einsum("ij,ji->i", rows, covariance.matvec(np.ascontiguousarray(rows.T)))
        return known[covariance]

    def _not_shown(self, indices: Index) -> NotShown:
        if indices.size == 2:
            return NotShown(
                f"no measurement that {self!r} allows tells streams {indices[0]} and {indices[1]} apart: allow more"
            )
        return NotShown(f"no measurement that {self!r} allows shows this contrast of {indices.size} streams")

    def check_pairs(self, shift: Array, label: Callable[[int], str]) -> None:
        """Refuse a problem in which no allowed measurement tells some two streams apart."""
        alike = _inseparable(self.region(shift.size), shift)
        if alike is not None:
            (i, j), why = alike
            raise NotShown(f"{self!r} cannot tell streams {label(i)} and {label(j)} apart: {why}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rule) or type(self) is not type(other):
            return False
        mine, theirs = state_of(self), state_of(other)
        return all(np.array_equal(mine[key], theirs[key]) for key in mine)

    def __hash__(self) -> int:
        return hash(type(self).__name__)

    def __repr__(self) -> str:
        values = (getattr(self, field.name) for field in self.FIELDS)
        shown = ", ".join(_shown(value) for value in values if value is not None)
        return f"{type(self).__name__}({shown})"

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be worked out again."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_regions", "_listed")}


class Combined(Rule):
    """Several constraints, all of which hold.

    >>> from eccaht.streams.measurements import AtMost, NonNegative
    >>> NonNegative() & AtMost(2) & Budget(4.0)
    NonNegative() & AtMost(2) & Budget(limit=4.0)
    """

    def __init__(self, *constraints: Constraint) -> None:
        parts: list[Part] = []
        for each in constraints:
            if isinstance(each, Rule):
                parts += each.parts
            elif type(each) is Budget or type(each) is Unlimited:
                parts.append(each)
            else:
                kind = type(each).__name__
                raise ValueError(f"{kind} cannot be combined by &: only the constraints of eccaht.measurements can")
        self._parts = tuple(parts)

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._parts

    def narrow(self, region: Region) -> None:
        for part in self._parts:
            part.narrow(region)

    @property
    def noise(self) -> float | None:
        return next((part.noise for part in self._parts if part.noise is not None), None)

    @property
    def reshapes(self) -> bool:
        return any(part.reshapes for part in self._parts)

    @property
    def largest_weight(self) -> float:
        """The smallest that a part allows."""
        return min(part.largest_weight for part in self._parts)

    @property
    def least_contrast(self) -> float:
        return max(part.least_contrast for part in self._parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Combined) and self._parts == other._parts

    __hash__ = Rule.__hash__

    def __repr__(self) -> str:
        return " & ".join(repr(part) for part in self._parts)


Part = Rule | Budget | Unlimited


def _region(parts: Sequence[Part], size: int) -> Region:
    """All parts together; where nothing is left the fewest parts that already leave nothing are named."""
    region, why = _tried(parts, size)
    if why is None:
        return region
    for count in range(1, len(parts)):
        for some in combinations(parts, count):
            _, reason = _tried(some, size)
            if reason is not None:
                raise ValueError(_conflict(some, reason))
    raise ValueError(_conflict(parts, why))


def _tried(parts: Sequence[Part], size: int) -> tuple[Region, str | None]:
    region = Region.whole(size)
    try:
        for part in parts:
            part.narrow(region)
    except ValueError as error:
        return region, str(error)
    if region.rows is not None:
        listed, region.rows = region.rows, None
        region.rows = listed[[region.allows(row) for row in listed]]
    return region, region.impossible()


def _conflict(parts: Sequence[Part], why: str) -> str:
    if len(parts) == 1:
        return f"{parts[0]!r} allows no measurement: {why}"
    return f"{' and '.join(map(repr, parts))} conflict: {why}"


def _inseparable(region: Region, shift: Array) -> tuple[tuple[int, int], str] | None:
    """Two streams that all allowed measurements show alike, and why."""
    if region.rows is not None:
        columns = region.rows * shift
        _, first, places = np.unique(columns, axis=1, return_index=True, return_inverse=True)
        alike = np.flatnonzero(first[places.ravel()] != np.arange(shift.size))
        if alike.size:
            return (int(first[places.ravel()][alike[0]]), int(alike[0])), "every listed measurement weighs them alike"
        return None
    if region.levels is not None:
        return _alike_on_grid(region, shift)
    reach = np.where(region.usable, np.abs(shift), 0.0)
    i, j = sorted(np.argpartition(reach, 1)[:2].tolist())
    best = float(max(reach[i], reach[j]))
    if best == 0.0:
        return (i, j), "neither may have weight"
    if math.isfinite(region.per_contrast) and region.per_contrast * best < 1.0 - 1e-12:
        return (i, j), f"unit contrast needs an L1 norm of at least {rounded_up(1.0 / best)}; raise the budget to that"
    return None


def _alike_on_grid(region: Region, shift: Array) -> tuple[tuple[int, int], str] | None:
    assert region.levels is not None
    allowed = region.allowed_levels()
    fixed = np.flatnonzero((allowed.sum(axis=1) == 1) | region.off)
    shown = np.where(region.off[fixed], 0.0, region.levels[allowed[fixed].argmax(axis=1)]) * shift[fixed]
    _, first, places = np.unique(shown, return_index=True, return_inverse=True)
    alike = np.flatnonzero(first[places] != np.arange(fixed.size))
    if not alike.size:
        return None
    return (int(fixed[first[places][alike[0]]]), int(fixed[alike[0]])), "their weights are given and show them alike"


def _shown(value: Any) -> str:
    """A parameter in a message: long lists are cut."""
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return f"{value.shape[0]} x {value.shape[1]} matrix"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        rest = [f"... {len(value)} in all"] if len(value) > _SHOWN else []
        return f"[{', '.join([*map(_shown, value[:_SHOWN]), *rest])}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)
