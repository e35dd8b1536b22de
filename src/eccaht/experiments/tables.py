"""Results as flat tables, in memory and as files a person can open."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from eccaht.files import replacing

Table = dict[str, NDArray[Any]]  # column name -> one value a row


def save_table(table: Table, path: Path) -> Path:
    """Write the table as CSV, every number with all its digits."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(table)
    rows.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    with replacing(path) as file:
        file.write(text.getvalue().encode())
    return path
