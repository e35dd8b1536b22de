"""Which streams, which levels, which measurements, at what cost: the allowed weights are not convex.

Each narrows a `Region`; selection.py chooses streams, grid.py levels and rows (docs/instruments.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, Index, as_count, as_floats, as_number, check_finite, frozen
from eccaht.base.scales import check_size
from eccaht.streams.measurements.combined import Rule
from eccaht.streams.measurements.entries import check_length, number_list, places
from eccaht.streams.measurements.region import Region


class AtMost(Rule):
    """At most m streams have weight: a multiplexer with m inputs.

    >>> AtMost(2).allows(np.array([1.0, -3.0, 0.0])), AtMost(1).allows(np.array([1.0, -3.0, 0.0]))
    (True, False)
    """

    def __init__(self, m: int) -> None:
        self.m = as_count(m, "the number of streams at once", least=1)

    def parameters(self) -> dict[str, Any]:
        return {"m": self.m}

    def narrow(self, region: Region) -> None:
        region.most = min(region.most, self.m)


class OnePerGroup(Rule):
    """At most one stream of each group has weight.

    groups: a label for each stream (None for a stream of no group), or lists of streams.

    >>> by_label, by_list = OnePerGroup(["a", "a", "b", None]), OnePerGroup([[0, 1], [2]])
    >>> [rule.allows(np.array([1.0, 0.0, 1.0, 1.0])) for rule in (by_label, by_list)]
    [True, True]
    """

    def __init__(self, groups: Sequence[Any] | Array) -> None:
        listed = list(groups.tolist() if isinstance(groups, np.ndarray) else groups)
        if not listed:
            raise ValueError("OnePerGroup needs groups: a label for each stream, or lists of streams")
        self.by_label = not any(isinstance(group, list | tuple | set | np.ndarray) for group in listed)
        if self.by_label:
            known = {label: number for number, label in enumerate(dict.fromkeys(listed)) if label is not None}
            self.labels: Index = np.array([known.get(label, -1) for label in listed], dtype=np.intp)
            self.members: Index = np.arange(len(listed))
            return
        members = [(as_count(k, "a stream of a group", least=0), n) for n, group in enumerate(listed) for k in group]
        streams = [k for k, _ in members]
        if len(set(streams)) < len(streams):
            twice = next(k for n, k in enumerate(streams) if k in streams[:n])
            raise ValueError(f"stream {twice} is in two groups: use one OnePerGroup for each way to group")
        self.members, self.labels = (np.array(part, dtype=np.intp) for part in zip(*members, strict=True))

    def parameters(self) -> dict[str, Any]:
        if self.by_label:
            return {"groups": [None if label < 0 else label for label in self.labels.tolist()]}
        return {"groups": [self.members[self.labels == n].tolist() for n in range(int(self.labels.max()) + 1)]}

    def stored(self) -> dict[str, Any]:
        return {"labels": self.labels, "members": None if self.by_label else self.members}

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> OnePerGroup:
        labels, members = stored["labels"], stored["members"]
        if members is None:
            return cls([None if label < 0 else label for label in labels.tolist()])
        if members.shape != labels.shape or (labels < 0).any() or (labels >= labels.size).any():
            raise ValueError("its groups are damaged")
        return cls([members[labels == n].tolist() for n in range(int(labels.max()) + 1)])

    def narrow(self, region: Region) -> None:
        """One more set of labels."""
        if self.by_label:
            check_length(self.labels, region.size, self)
        labels = np.full(region.size, -1, dtype=np.intp)
        labels[places(self.members, region.size, self)] = self.labels
        region.groups.append(labels)


class Levels(Rule):
    """Every weight is one of some values: [0, 1] for pooling, [-1, 0, 1] for a balance, a grid of b bits.

    0 is only allowed where it is listed; streams that are off have no weight in any case.

    >>> Levels([-1, 0, 1]).allows(np.array([1.0, 0.0, -1.0])), Levels([0, 1]).allows(np.array([0.5, 1.0]))
    (True, False)
    """

    def __init__(self, values: ArrayLike) -> None:
        levels = np.unique(number_list(values, "levels") + 0.0)
        if not levels.any():
            raise ValueError("Levels needs a value other than 0")
        for value in levels[levels != 0.0].tolist():
            check_size(abs(value), "a level")
        self.values = frozen(levels)

    def parameters(self) -> dict[str, Any]:
        return {"values": self.values}

    @property
    def largest_weight(self) -> float:
        return float(np.abs(self.values).max())

    def narrow(self, region: Region) -> None:
        if region.levels is not None:
            common = np.intersect1d(region.levels, self.values)
            if not common.any():
                raise ValueError("no level is in both lists")
            region.levels = common
        else:
            region.levels = self.values


class OneOf(Rule):
    """The measurement is one of the rows of a matrix, exactly: network paths, a codebook.

    >>> OneOf([[1, 1, 0], [0, 1, 1]]).allows(np.array([0.0, 1.0, 1.0]))
    True
    """

    def __init__(self, matrix: ArrayLike) -> None:
        rows = as_floats(matrix, "the list of measurements")
        if rows.ndim != 2 or not rows.size:
            raise ValueError("OneOf needs a matrix, one allowed measurement a row")
        check_finite(rows, "the list of measurements")
        tops = np.abs(rows).max(axis=1)
        if not tops.all():
            raise ValueError(f"row {int(tops.argmin())} of the list of measurements is all zero: leave it out")
        for top in (tops.min(), tops.max()):
            check_size(float(top), "a row of the list of measurements")
        self.matrix = frozen(rows.copy())

    def parameters(self) -> dict[str, Any]:
        return {"matrix": self.matrix}

    @property
    def largest_weight(self) -> float:
        return float(np.abs(self.matrix).max())

    def narrow(self, region: Region) -> None:
        if self.matrix.shape[1] != region.size:
            raise ValueError(f"OneOf lists measurements of {self.matrix.shape[1]} streams, but there are {region.size}")
        if region.rows is None:
            region.rows = self.matrix
        else:
            both = (region.rows[:, None, :] == self.matrix[None]).all(axis=2).any(axis=1)
            region.rows = region.rows[both]


class Cost(Rule):
    """What a measurement costs: `per_measurement`, and `per_stream` for every stream that has weight in it.

    Among allowed measurements the one of most information per cost is chosen; all remain allowed.

    >>> Cost(per_stream=0.5, per_measurement=1.0).price(np.array([1.0, 0.0, -1.0]))
    2.0
    """

    def __init__(self, per_stream: ArrayLike = 0.0, per_measurement: float = 1.0) -> None:
        self.per_stream = frozen(as_floats(per_stream, "cost per stream").copy())
        check_finite(self.per_stream, "cost per stream")
        self.per_measurement = as_number(per_measurement, "cost per measurement")
        if self.per_stream.ndim > 1 or (self.per_stream < 0.0).any() or self.per_measurement < 0.0:
            raise ValueError("costs are numbers of at least 0: one per measurement, and one or one for each stream")
        if not (self.per_measurement > 0.0 or (self.per_stream > 0.0).all()):
            raise ValueError("a measurement that costs nothing has no information per cost: give it a cost above 0")
        for cost in (*self.per_stream.ravel().tolist(), self.per_measurement):
            if cost:
                check_size(cost, "a cost")

    def parameters(self) -> dict[str, Any]:
        return {"per_stream": self.per_stream, "per_measurement": self.per_measurement}

    def narrow(self, region: Region) -> None:
        if self.per_stream.ndim:
            check_length(self.per_stream, region.size, self)
        if region.per_stream is not None or region.per_measurement != 1.0:
            raise ValueError("one measurement has one cost: give a single Cost")
        region.per_measurement = self.per_measurement
        if self.per_stream.any():
            region.per_stream = np.broadcast_to(self.per_stream, (region.size,)).copy()
