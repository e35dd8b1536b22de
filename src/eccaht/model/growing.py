"""Lines of a CSV file that still grows, as windows: each once a row of a later one has come."""

from __future__ import annotations

import csv
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from eccaht.arrays import Array
from eccaht.data.clock import Clock
from eccaht.data.encodings import as_utf8
from eccaht.data.faults import Faults, good_lines
from eccaht.data.reading import NoRows, assemble
from eccaht.data.sniffing import Layout, has_decimal_comma, sniff_lines
from eccaht.data.timing import TimeRule
from eccaht.data.windows import Windows
from eccaht.model.preparing import Notation, expected_of, present_names, rule_for, scaled, windows_of

if TYPE_CHECKING:
    from eccaht.model.model import Model

Line = tuple[int, bytes]  # its number in the file, from 1
_SAMPLE = 200  # lines from which the types of a batch are guessed


class Unfollowable(ValueError):
    """More lines will not help."""


class GrowingTable:
    """Takes lines as they come, and keeps the rows of the window that is not complete yet.

    names: the sensors that the file has. clock: what its times mean, known from the first row on.
    rows, last: how many were read, and the latest time. faults: what could not be read.
    """

    def __init__(
        self,
        model: Model,
        path: Path,
        faults: Faults,
        missing: Literal["refuse", "allow"],
        notation: Notation,
        note: Callable[[str], object],
    ) -> None:
        self.faults, self.names = faults, model.names
        self.clock = Clock(notation.zone(model))
        self.rows = 0
        self.last: np.datetime64 | None = None
        self._model, self._path, self._missing, self._notation, self._note = model, path, missing, notation, note
        self._layout: Layout | None = None
        self._rule: TimeRule | None = None
        self._times: NDArray[np.datetime64] = np.zeros(0, dtype="datetime64[us]")
        self._values: Array = np.zeros((0, 0))

    def sniff(self, lines: Sequence[bytes]) -> Layout:
        """The layout of the file from its first lines; refused while they do not show it."""
        if lines[0].startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise Unfollowable(
                f"{self._path} is UTF-16, which cannot be followed: write UTF-8, or wait until it is complete"
            )
        texts = ["" if b"\0" in line else as_utf8(line).decode().removeprefix("\ufeff") for line in lines]
        header = self._notation.has_header(self._model)
        return sniff_lines(self._path, texts, self._notation.decimal_comma, header=header, strict=False)

    def begin(self, layout: Layout) -> None:
        """Take the lines that come now for rows of this layout; a file with other columns than before is refused."""
        if self._layout is None:
            self.names = tuple(present_names(self._model, [layout], self._missing))
            self._rule = rule_for(self._model, layout)
        elif self._layout.full != layout.full:
            raise ValueError(f"{self._path} was replaced by a file with other columns: start again for that one")
        self._layout = layout

    def add(self, lines: Sequence[Line]) -> Windows | None:
        """Take these lines; the windows that they complete."""
        self._read(lines)
        if not len(self._times):
            return None
        windows = self._windows()
        pending = self._times >= windows.starts[-1]
        self._times, self._values = self._times[pending], self._values[pending]
        return windows.part(slice(0, -1))

    def finish(self) -> Windows | None:
        """The window that no later row has completed."""
        return self._windows() if len(self._times) else None

    def _read(self, lines: Sequence[Line]) -> None:
        assert self._layout is not None
        assert self._rule is not None
        kept, numbers = good_lines(((k, as_utf8(line)) for k, line in lines), self._layout, self.faults)
        if not kept:
            return
        try:
            table = assemble(
                [self._part(kept, numbers)],
                self._rule,
                self.names,
                zone=self.clock.zone,
                expected=expected_of(self._model),
                faults=self.faults,
                before=None if self.last is None else int(self.last.astype(np.int64)),
            )
        except NoRows:
            return
        for note in table.zone_notes:
            self._note(note)
        self.clock, self._rule = table.clock, replace(table.rule, notes=())
        values = np.column_stack([scaled(self._model, table, name, self.faults) for name in self.names])
        self.rows += len(values)
        self.last = table.times[-1] if self.last is None else max(self.last, table.times[-1])
        times = np.concatenate([self._times, table.times])
        order = np.argsort(times, kind="stable")
        self._times = times[order]
        self._values = np.concatenate([self._values.reshape(-1, len(self.names)), values])[order]

    def _part(self, lines: list[bytes], numbers: tuple[int, ...]) -> Layout:
        """These rows as a file of their own."""
        assert self._layout is not None
        delimiter, told = self._layout.delimiter, self._notation.decimal_comma
        commas = delimiter != "," and told is None and any(b"," in line for line in lines)
        shown = [line.decode() for line in (lines if commas else lines[:_SAMPLE])]
        width = len(self._layout.names)
        sample = tuple(tuple(row) for row in csv.reader(shown, delimiter=delimiter) if len(row) == width)
        comma = has_decimal_comma(sample, delimiter) if told is None else told
        content = b"".join(lines)
        return replace(self._layout, skip=0, sample=sample, decimal_comma=comma, content=content, lines=numbers)

    def _windows(self) -> Windows:
        columns = zip(self.names, self._values.T, strict=True)
        return windows_of(self._model, self._times, self.clock, columns)
