"""The ledger: one row a measurement, for people (CSV) and programs (Parquet)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eccaht.arrays import Array, Index
from eccaht.data.clock import PLAIN, Clock
from eccaht.files import replacing
from eccaht.problem import Problem
from eccaht.run.record import name_of
from eccaht.run.search import Entry

SUFFIXES = (".csv", ".parquet")
_MOVED = 0.005  # a score that moved less is not listed
_SEPARATOR = "; "

Pairs = list[tuple[str, float]]  # sensor and number


def rows(problem: Problem, entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """The entries with names in place of numbers; lists where a cell holds several."""
    return [
        {
            "measurement": entry.number,
            "time": entry.time,
            "window": entry.window,
            "weights": _pairs(problem, entry.weights, np.flatnonzero(entry.weights)),
            "reading": entry.reading,
            "noise": entry.noise,
            "set": _names(problem, entry.held),
            "champion": name_of(problem, entry.champion),
            "challenger": name_of(problem, entry.challenger),
            "expected": entry.expected,
            "expected_if_swapped": entry.expected_swapped,
            "evidence": entry.evidence,
            "moved": _pairs(problem, entry.moved, np.flatnonzero(np.abs(entry.moved) >= _MOVED)),
            "lead": entry.lead,
            "set_after": _names(problem, entry.decision),
        }
        for entry in entries
    ]


def save_ledger(problem: Problem, entries: Sequence[Entry], path: Path, clock: Clock = PLAIN) -> Path:
    """Write .csv, in which a list is one cell `name=number; name=number`, or .parquet, in which it is a list.

    A measurement compares the set held with the one in which challenger replaces champion: `expected` and
    `expected_if_swapped` are the mean readings under either, `evidence` is the log-likelihood ratio.
    """
    table = rows(problem, entries)
    with replacing(path) as file:
        if path.suffix == ".csv":
            file.write(_csv(table, clock).encode())
        elif path.suffix == ".parquet":
            import polars as pl

            structs = [row | {key: _structs(row[key]) for key in ("weights", "moved")} for row in table]
            for row in structs:  # rows without times have numbers
                row["time"] = row["time"].item() if clock.row_interval is None else clock.show(row["time"])
            pairs = pl.List(pl.Struct({"sensor": pl.String, "value": pl.Float64}))
            kind = pl.Datetime("us") if clock.row_interval is None else pl.String()
            frame = pl.DataFrame(structs, schema_overrides={"weights": pairs, "moved": pairs, "time": kind})
            if clock.zone is not None:
                times = pl.col("time").dt.replace_time_zone("UTC").dt.convert_time_zone(clock.zone_for_tables)
                frame = frame.with_columns(times)
            frame.write_parquet(file)
        else:
            raise ValueError(f"a ledger ends in {' or '.join(SUFFIXES)}, not {path.name!r}")
    return path


def _csv(table: list[dict[str, Any]], clock: Clock) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(table[0]) if table else [], lineterminator="\n")
    writer.writeheader()
    for row in table:
        lists = {key: _SEPARATOR.join(row[key]) for key in ("set", "set_after")}
        lists |= {
            key: _SEPARATOR.join(f"{name}={value:.6g}" for name, value in row[key]) for key in ("weights", "moved")
        }
        writer.writerow(row | lists | {"time": clock.exact(row["time"])})
    return text.getvalue()


def _names(problem: Problem, streams: Index) -> list[str]:
    return [name_of(problem, k) for k in streams]


def _pairs(problem: Problem, values: Array, which: Index) -> Pairs:
    """Sensors and their values, the largest first."""
    order = which[np.argsort(-np.abs(values[which]), kind="stable")]
    return [(name_of(problem, k), float(values[k])) for k in order]


def _structs(pairs: Pairs) -> list[dict[str, Any]]:
    return [{"sensor": name, "value": value} for name, value in pairs]
