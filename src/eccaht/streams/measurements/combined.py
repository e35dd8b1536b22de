"""Constraints of eccaht, alone or several together: each narrows a region, and the solvers know regions alone."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import combinations
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from eccaht.base.arrays import Array, Index, rounded_up
from eccaht.streams.covariance import Covariance
from eccaht.streams.measurements.base import Constraint, Design, NotShown
from eccaht.streams.measurements.budget import Budget, Unlimited
from eccaht.streams.measurements.convex import best_direction
from eccaht.streams.measurements.grid import from_list, on_grid
from eccaht.streams.measurements.region import Region
from eccaht.streams.measurements.selection import select

_MEMORY = 16_384  # designs of pairs kept for a covariance
_SAID = 6  # entries of a list in a message


class Solution(NamedTuple):
    """Allowed weights, whether a limit binds, the KKT residual, and the most per cost that any weights could reach."""

    weights: Array
    active: bool
    residual: float
    ceiling: float  # of (c'D)^2 / noise variance / cost


class Rule(Constraint):
    """A constraint that narrows a region; `parameters` are its constructor's arguments, for files and comparisons."""

    @property
    def reshapes(self) -> bool:
        return True

    @abstractmethod
    def narrow(self, region: Region) -> None:
        """Take away what is not allowed; a ValueError if it does not fit what is there."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments."""

    def stored(self) -> dict[str, Any]:
        """What a file needs to build it again: numbers, arrays or None."""
        return self.parameters()

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> Rule:
        return cls(**stored)

    @property
    def parts(self) -> tuple[Constraint, ...]:
        return (self,)

    @property
    def noise(self) -> float | None:
        """Of the instrument, if it is part of the constraint."""
        return None

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
        """Refuse a number of streams for which nothing is allowed."""
        self.region(size)

    def allows(self, c: Array) -> bool:
        return self.region(c.size).allows(c)

    def price(self, c: Array) -> float:
        """What the measurement c costs; 1 without costs."""
        return self.region(c.size).cost(c != 0.0)

    def scaled(self, direction: Array) -> Array:
        try:
            return self.region(direction.size).scaled(direction)
        except ValueError:
            raise ValueError(f"{self!r} allows no multiple of this direction") from None

    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        """Solve exactly where the allowed weights are convex, by relaxation and exchange where they are not."""
        return self._design(covariance, indices, values, self._solved(covariance, indices, values))

    def recalled(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        """Solve as `contrast` does for a pair; answers are cached."""
        memory: WeakKeyDictionary[Covariance, dict[tuple[float, ...], Solution]]
        memory = self.__dict__.setdefault("_designs", WeakKeyDictionary())
        known, key = memory.setdefault(covariance, {}), (*indices.tolist(), *values.tolist())
        if key not in known:
            if len(known) >= _MEMORY:
                known.clear()
            known[key] = self._solved(covariance, indices, values)
        return self._design(covariance, indices, values, known[key])

    def _design(self, covariance: Covariance, indices: Index, values: Array, found: Solution) -> Design:
        region = self.region(covariance.size)
        return Design(
            covariance,
            indices,
            values,
            found.weights.copy(),
            found.active,
            lambda: found.residual,
            region.noise or 0.0,
            region.cost(found.weights != 0.0),
            0.5 * found.ceiling,
        )

    def _solved(self, covariance: Covariance, indices: Index, values: Array) -> Solution:
        region = self.region(covariance.size)
        D = np.zeros(covariance.size)
        D[indices] = values
        if region.rows is not None:
            found = from_list(region, self._variances(covariance, region.rows), D)
        elif region.levels is not None:
            found = on_grid(region, covariance, D)
        else:
            return self._continuous(region, covariance, D)
        if found is None:
            raise self._not_shown(indices)
        return Solution(found.weights, True, 0.0, found.ceiling)

    def _continuous(self, region: Region, covariance: Covariance, D: Array) -> Solution:
        if region.sparse:
            chosen = select(region, covariance, D)
            if chosen is not None:
                direction, ceiling = chosen
                return Solution(region.scaled(direction.weights), True, direction.residual, ceiling)
        else:
            best = best_direction(region, covariance, D)
            if best is not None:
                ceiling = best.value / region.per_measurement
                return Solution(region.scaled(best.weights), best.active, best.residual, ceiling)
        raise self._not_shown(np.flatnonzero(D))

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

    def __and__(self, other: Constraint) -> Combined:
        return Combined(self, other)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Rule):
            return NotImplemented if not isinstance(other, Rule) else False
        mine, theirs = self.stored(), other.stored()
        return all(np.array_equal(mine[key], theirs[key]) for key in mine)

    def __hash__(self) -> int:
        return hash(type(self).__name__)

    def __repr__(self) -> str:
        said = ", ".join(_said(value) for value in self.parameters().values() if value is not None)
        return f"{type(self).__name__}({said})"

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be worked out again."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_regions", "_designs", "_listed")}


class Combined(Rule):
    """Several constraints, all of which hold.

    >>> from eccaht.streams.measurements import AtMost, NonNegative
    >>> NonNegative() & AtMost(2) & Budget(4.0)
    NonNegative() & AtMost(2) & Budget(limit=4.0)
    """

    def __init__(self, *constraints: Constraint) -> None:
        parts: list[Constraint] = []
        for each in constraints:
            if not isinstance(each, Rule) and type(each) not in (Budget, Unlimited):
                kind = type(each).__name__
                raise ValueError(f"{kind} cannot be combined by &: only the constraints of eccaht.measurements can")
            parts += each.parts if isinstance(each, Rule) else (each,)
        self._parts = tuple(parts)

    @property
    def parts(self) -> tuple[Constraint, ...]:
        return self._parts

    def parameters(self) -> dict[str, Any]:
        return {"parts": list(self._parts)}

    def narrow(self, region: Region) -> None:
        for part in self._parts:
            _narrow(part, region)

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
    def usual_norm(self) -> float:
        """The smallest limit on |c|_1."""
        limits = [
            part.usual_norm for part in self._parts if isinstance(part, Budget | Unlimited) or part.noise is not None
        ]
        return min(limits, default=1.0)

    @property
    def least_contrast(self) -> float:
        return max(part.least_contrast for part in self._parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Combined) and self._parts == other._parts

    __hash__ = Rule.__hash__

    def __repr__(self) -> str:
        return " & ".join(repr(part) for part in self._parts)


def _narrow(part: Constraint, region: Region) -> None:
    if isinstance(part, Rule):
        part.narrow(region)
    elif isinstance(part, Budget | Unlimited):
        region.norm = min(region.norm, part.limit)
        if isinstance(part, Budget):
            region.per_contrast = min(region.per_contrast, part.limit)


def _region(parts: Sequence[Constraint], size: int) -> Region:
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


def _tried(parts: Sequence[Constraint], size: int) -> tuple[Region, str | None]:
    region = Region.whole(size)
    try:
        for part in parts:
            _narrow(part, region)
    except ValueError as error:
        return region, str(error)
    if region.rows is not None:
        listed, region.rows = region.rows, None
        region.rows = listed[[region.allows(row) for row in listed]]
    return region, region.impossible()


def _conflict(parts: Sequence[Constraint], why: str) -> str:
    if len(parts) == 1:
        return f"{parts[0]!r} allows no measurement: {why}"
    return f"{reduce(lambda a, b: f'{a} and {b}', (repr(part) for part in parts))} conflict: {why}"


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


def _said(value: Any) -> str:
    """A parameter in a message: long lists are cut."""
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return f"{value.shape[0]} x {value.shape[1]} matrix"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list) and len(value) > _SAID:
        return f"[{', '.join(_said(each) for each in value[:_SAID])}, ... {len(value)} in all]"
    if isinstance(value, list):
        return f"[{', '.join(_said(each) for each in value)}]"
    return f"{value:g}" if isinstance(value, float) else repr(value)
