"""Stores with something in every table."""

from typing import Any

import numpy as np
import sqlalchemy as sa

from eccaht.service.store import Store, schema

_TEXTS = ["mill 2", "Kühlung Ω", 'a "quoted" \\ name', "x" * 300]


def value(column: sa.Column[Any], k: int, rng: np.random.Generator) -> Any:
    """A value that a column may have, odd ones first."""
    kind = column.type
    if isinstance(kind, sa.JSON):
        return {"sizes": [0.1 + 0.2, None, -1e-300, 10**15], "named": _TEXTS, "deep": {"true": True}, "k": k}
    if isinstance(kind, sa.LargeBinary):
        return [b"", b"\x00\xff" * 500, rng.bytes(100)][k % 3]
    if isinstance(kind, sa.Float):
        return [0.0, 1e-308, 0.1, float(np.nextafter(1.0, 2.0)), 1e300][k % 5]
    if isinstance(kind, sa.SmallInteger):
        return k % 3
    if isinstance(kind, sa.Integer):
        return k + 1 if isinstance(kind, sa.Integer) and not isinstance(kind, sa.BigInteger) else 2**50 + k
    if column.nullable and k % 2:
        return None
    return _TEXTS[k % 4] if not (column.primary_key or column.unique) else f"{_TEXTS[k % 4]} {k}"


def fill(store: Store, rows: int = 7) -> None:
    """Put rows into all tables."""
    rng = np.random.default_rng(3)
    with store.begin() as connection:
        for table in schema.COPIED:
            made = [{column.name: value(column, k, rng) for column in table.columns} for k in range(rows)]
            for k, row in enumerate(made):
                for key in table.foreign_keys:
                    row[key.parent.name] = f"{_TEXTS[k % 4]} {k}"
                for name in ("digest", "hash"):
                    if name in row and isinstance(row[name], str):
                        row[name] = f"{k:064x}"
            connection.execute(sa.insert(table), made)


def contents(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, in an order of their own."""
    with store.read() as connection:
        return {
            table.name: sorted((tuple(row) for row in connection.execute(sa.select(table))), key=repr)
            for table in schema.COPIED
        }
