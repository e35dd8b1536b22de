"""One table, three forms: on the terminal, as CSV (unrounded) and as Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich import box
from rich.table import Table as RichTable

from benchmarks.jobs import Row


@dataclass(frozen=True)
class Column:
    """A key of the rows, its heading, and how a value is shown."""

    key: str
    heading: str
    show: Callable[[Any], str] = str
    right: bool = True


@dataclass(frozen=True)
class Table:
    """Rows with a title and notes that say how to read them; `name` becomes the file name."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    on_screen: bool = True  # otherwise as CSV only

    def cells(self) -> list[list[str]]:
        """The shown values, row by row; what is absent is a dash."""
        return [[_shown(column, row.get(column.key)) for column in self.columns] for row in self.rows]

    def rich(self) -> RichTable:
        """For the terminal."""
        table = RichTable(title=self.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
        for column in self.columns:
            side: Literal["left", "right"] = "right" if column.right else "left"
            table.add_column(column.heading, justify=side, no_wrap=side == "left")
        for cells in self.cells():
            table.add_row(*cells)
        return table

    def csv(self) -> str:
        """All digits, keys as the header."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([column.key for column in self.columns])
        for row in self.rows:
            writer.writerow(["" if row.get(c.key) is None else row[c.key] for c in self.columns])
        return out.getvalue()

    def markdown(self) -> str:
        """For the report."""
        lines = [
            _line([column.heading for column in self.columns]),
            _line(["---:" if column.right else "---" for column in self.columns]),
            *(_line(cells) for cells in self.cells()),
        ]
        notes = [f"- {note}" for note in self.notes]
        return "\n".join([f"### {self.title}", "", *lines, "", *notes, ""])


def _shown(column: Column, value: Any) -> str:
    return "-" if value is None else column.show(value)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def milliseconds(value: float) -> str:
    """Seconds shown as milliseconds with three digits."""
    return three_digits(1e3 * value)


def three_digits(value: float) -> str:
    """Three significant digits, without an exponent.

    >>> three_digits(0.04567), three_digits(6474.0)
    ('0.0457', '6,474')
    """
    if value == 0:
        return "0"
    decimals = next((d for d, least in enumerate((100.0, 10.0, 1.0, 0.1)) if abs(value) >= least), 4)
    return f"{value:,.{decimals}f}"


def times(value: float) -> str:
    """A ratio."""
    return f"{three_digits(value)}x"


def scientific(value: float) -> str:
    """Two digits and an exponent; anything below what double precision resolves is 0."""
    return "0" if abs(value) < 1e-16 else f"{value:.1e}"


def thousands(value: float) -> str:
    """A whole number with separators."""
    return f"{value:,.0f}"
