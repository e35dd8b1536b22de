"""Results as flat tables, in memory and as files a person can open."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.files import replacing

Table = dict[str, NDArray[Any]]  # column name -> one value a row


def from_rows(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The table of at least one row, all with the columns of the first."""
    return {column: np.array([row[column] for row in rows]) for column in rows[0]}


def save_table(table: Table, path: Path) -> Path:
    """Write the table as CSV, every number with all its digits, None as nothing."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(table)
    rows.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    with replacing(path) as file:
        file.write(text.getvalue().encode())
    return path
