"""Rows of CSV that was sent: read as the history of the model was, and put on the clock of the plant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from eccaht.plants.data.chunk import Chunk
from eccaht.plants.data.source import Expected
from eccaht.plants.data.table import Table
from eccaht.plants.data.times import TimeRule
from eccaht.service.rows import Rows
from eccaht.service.sources.moments import TimeReader, checked
from eccaht.service.sources.values import checked_name

_COLUMNS = 20_000


class Most(NamedTuple):
    """How much may come at once: bytes, rows, and readings, of sensors that are silent too."""

    bytes: int
    rows: int
    cells: int

    def check(self, rows: int, columns: int = 1) -> None:
        """Refuse more, before it is read."""
        if rows > self.rows:
            raise ValueError(f"there are {rows} rows, more than {self.rows} at once: send less at a time")
        if columns > _COLUMNS or rows * columns > self.cells:
            raise ValueError(f"{rows} rows of {columns} sensors are too much at once: send less at a time")


class Csv(NamedTuple):
    """How CSV is read.

    expected: by the model. moments: how times are, where the history does not say it. time_key: the column of the
    time, if it is not called as in the history. names: sensors of the model by the names of their columns.
    """

    expected: Expected
    moments: TimeReader
    time_key: str
    names: Mapping[str, str]

    def rows(self, content: bytes, most: Most) -> Rows:
        """The rows as they stand there; all that is wrong with them is a ValueError."""
        zone = self.moments.clock.zone
        chunk = Chunk.of(content, replace(self.expected, zone=zone and (self.moments.zone or zone)))
        renamed = tuple(checked_name(self.names.get(name, name)) for name in chunk.layout.names)
        if len(set(renamed)) < len(renamed):
            raise ValueError("two columns have the same name: rename one")
        chunk = replace(chunk, layout=replace(chunk.layout, names=renamed))
        most.check(chunk.rows, len(renamed))
        rule = self._rule(chunk)
        names = chunk.columns(rule.columns)
        if self._counts(chunk, rule):
            numbers, table = chunk.numbered(rule.columns[0], names)
            if np.isnan(numbers).any():
                raise ValueError(f"row {int(np.isnan(numbers).argmax()) + 1} has no time")
            times = [self.moments.read(number) for number in numbers.tolist()]
        else:
            table = chunk.read(rule, names)
            times = self._placed(table)
        values = np.column_stack([table.coded(name, self.expected.levels.get(name)) for name in names])
        return Rows(np.array(times, dtype=np.int64).astype("datetime64[us]"), names, values)

    def _rule(self, chunk: Chunk) -> TimeRule:
        """How to read the times: as the history's, or else by the column that is called like the time."""
        has = [chunk.layout.place(name) is not None for name in (*self.expected.times.columns, self.time_key)]
        if self.moments.clock.row_interval is not None and not has[-1]:
            raise ValueError(f"the rows of this model are counted: number them in a column {self.time_key!r}")
        as_before = len(has) > 1 and all(has[:-1])
        return TimeRule((self.time_key,)) if has[-1] and not as_before else chunk.time_rule

    def _counts(self, chunk: Chunk, rule: TimeRule) -> bool:
        """Whether times are numbers: those of rows, or since 1970, which are read as in JSON."""
        if self.moments.clock.row_interval is not None:
            return True
        return len(rule.columns) == 1 and chunk.counts_time(rule.columns[0])

    def _placed(self, table: Table) -> list[int]:
        """Times on the clock of the plant: UTC if its model knows a zone, else as its clocks show them."""
        times: list[int] = table.times.astype("datetime64[us]").astype(np.int64).tolist()
        if self.moments.clock.zone is None and table.clock.zone is not None:
            return [self.moments.placed(time) for time in times]
        return [checked(time) for time in times]
