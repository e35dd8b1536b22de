"""A piece of a CSV file that is in memory, read as the file that it comes from would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eccaht.base.arrays import Array
from eccaht.plants.data.encoding import as_text, encoding_of
from eccaht.plants.data.layout import Layout, lines_of, sniff_lines
from eccaht.plants.data.reading import Faults, good_lines, is_epoch
from eccaht.plants.data.source import Expected
from eccaht.plants.data.table import Table, assemble
from eccaht.plants.data.times import TimeRule

_SAMPLE = 1 << 18  # characters that show the layout
_PACKED = {b"\x1f\x8b": "gzip", b"PAR1": "Parquet", b"PK\x03\x04": "zip"}


@dataclass(frozen=True)
class Chunk:
    """A piece of CSV and what is expected of it; how many rows and columns it has is known before they are read."""

    layout: Layout
    expected: Expected

    @staticmethod
    def of(content: bytes, expected: Expected, label: str = "the CSV") -> Chunk:
        """Find the layout: delimiter, column names, decimal comma, encoding; label: what messages call it."""
        for start, kind in _PACKED.items():
            if content.startswith(start):
                raise ValueError(f"{label} is a {kind} file: send plain text")
        if not content.strip():
            raise ValueError(f"{label} is empty")
        encoding = encoding_of(Path(label), content, True)
        text = as_text(content, encoding)
        lines = lines_of(text[:_SAMPLE])
        if len(text) > _SAMPLE and len(lines) > 1:
            lines.pop()  # cut in the middle
        layout = sniff_lines(Path(label), lines, expected.decimal_comma, header=expected.header)
        return Chunk(_with_rows(replace(layout, encoding=encoding), text.encode()), expected)

    @property
    def rows(self) -> int:
        return len(self.layout.lines or ())

    @property
    def time_rule(self) -> TimeRule:
        """How the times are read: as the history's, or by the names and contents of columns."""
        return self.expected.rule(self.layout)

    def counts_time(self, column: str) -> bool:
        """Whether a time column of this name holds plain numbers."""
        place = self.layout.place(column)
        return place is not None and is_epoch(self.layout, place)

    def columns(self, times: Sequence[str]) -> tuple[str, ...]:
        """All columns but those of the time: what is expected by the names of the history, the others by their own."""
        places = {self.layout.place(name): name for name in reversed(self.expected.names)}
        out = {self.layout.place(name) for name in times}
        return tuple(places.get(k, name) for k, name in enumerate(self.layout.names) if k not in out)

    def read(self, rule: TimeRule, names: Sequence[str]) -> Table:
        """The rows; a line that is none, and a text that is no number in an expected column, is a ValueError.

        Texts that a status never had in the history are missing, as are those of columns that are not expected.
        """
        faults, levels = Faults(), self.expected.levels
        table = assemble([self.layout], rule, names, zone=self.expected.zone, expected=levels, faults=faults)
        if faults.lines:
            raise ValueError(faults.first_line)
        for name, (_, first) in faults.values.items():
            if name in self.expected.names and name not in levels:
                raise ValueError(f"column {name!r} holds {first}: leave the field empty where there is no reading")
        return table

    def numbered(self, column: str, names: Sequence[str]) -> tuple[Array, Table]:
        """The same, with a column of numbers in the place of times: its values, and the rows."""
        counted = TimeRule((), (), 1.0, True)
        whole = replace(self.expected, names=(*self.expected.names, column), zone=None)
        table = replace(self, expected=whole).read(counted, (*names, column))
        return table.numbers(column), table


def _with_rows(layout: Layout, content: bytes) -> Layout:
    """The layout of the rows alone; each line must be one, since what follows an odd one cannot be trusted."""
    faults = Faults()
    lines = enumerate(content.split(b"\n")[layout.skip :], layout.skip + 1)
    kept, numbers = good_lines(lines, layout, faults)
    if faults.lines:
        raise ValueError(faults.first_line)
    return replace(layout, skip=0, content=b"".join(kept), lines=numbers)
