"""Records and results as flat tables, in memory and as files a person can open."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eccaht.base.files import replacing

Table = dict[str, NDArray[Any]]  # column name -> one value a row


def from_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Table:
    return {column: np.array([row[column] for row in rows]) for column in columns or rows[0]}


def cells(record: Any) -> dict[str, Any]:
    """A dataclass as cells of a row; several values in one field have semicolons between."""
    return {key: ";".join(map(_text, x)) if isinstance(x, tuple) else x for key, x in asdict(record).items()}


def _text(value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:g}" if isinstance(value, float) else str(int(value))


def save_table(table: Table, path: Path) -> Path:
    """Write the table as CSV, every number with all its digits, None as nothing."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(table)
    rows.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
    with replacing(path) as file:
        file.write(text.getvalue().encode())
    return path


def save_json(document: Any, path: Path, **options: Any) -> Path:
    with replacing(path) as file:
        file.write(json.dumps(document, indent=1, allow_nan=False, **options).encode() + b"\n")
    return path
