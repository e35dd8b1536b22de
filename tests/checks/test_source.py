"""Every source of ours passes the suite, and the suite sees what is wrong with others."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from eccaht.base.clock import Clock
from eccaht.checks import CheckFailure, check_source
from eccaht.plants.data import Arrays, Batch, Source, as_source, read_table
from eccaht.plants.data.growing import GrowingFile
from eccaht.plants.data.reading import TimeRule
from eccaht.plants.data.recorded import Expected
from eccaht.research.datasets.labelled import read_entity
from eccaht.research.datasets.water import FIRST, WaterRecording
from tests.plants.model.histories import clock, signals, write_csv
from tests.research.datasets.labelled_format import as_metrics, find_entities, write_collection

ROWS = 200
VALUES = signals(ROWS, 3)
TIMES = np.array(clock(ROWS), dtype="datetime64[us]")
MODES = ["AUTO" if k % 7 else "MANUAL" for k in range(ROWS)]


def csv_file(path: Path) -> Path:
    cells = [["" if k == 5 else f"{x:.3f}" for k, x in enumerate(column)] for column in VALUES.T]
    return write_csv(path / "a.csv", ["time", "a", "b", "c", "mode"], [clock(ROWS), *cells, MODES])


def packed(path: Path) -> Path:
    plain = csv_file(path)
    (path / "a.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    return path / "a.csv.gz"


def parquet(path: Path) -> Path:
    pl.read_csv(csv_file(path), try_parse_dates=True).write_parquet(path / "a.parquet")
    return path / "a.parquet"


def growing(path: Path) -> GrowingFile:
    expected = Expected(("a", "b", "c", "mode"), {"mode": ["AUTO", "MANUAL"]}, TimeRule(("time",)))
    return GrowingFile(csv_file(path), expected, timeout=0.01, poll=0.005)


def entity(path: Path) -> Source:
    return as_metrics(read_entity(find_entities(write_collection(path, ["e"]))[0])[1].rows)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "csv": csv_file,
    "gzip": packed,
    "parquet": parquet,
    "two files": lambda path: [csv_file(path), parquet(path)],
    "growing": growing,
    "array": lambda _: VALUES,
    "array with times": lambda _: Arrays(VALUES, TIMES, ["a", "b", "c"]),
    "array with bad values": lambda _: Arrays(VALUES, TIMES, quality=VALUES > 9.0),
    "array in no order": lambda _: Arrays(VALUES, TIMES[::-1]),
    "polars": lambda _: pl.DataFrame({"time": TIMES, "a": VALUES[:, 0], "mode": MODES}),
    "pandas": lambda _: pd.DataFrame({"time": TIMES, "a": VALUES[:, 0], "mode": MODES}),
    "pandas by index": lambda _: pd.DataFrame(VALUES, index=pd.DatetimeIndex(TIMES), columns=["a", "b", "c"]),
    "server metrics": entity,
    "water network": lambda _: WaterRecording(FIRST + np.arange(ROWS), VALUES, ("P-1", "F-1", "L-1")).rows(),
    "table": lambda path: read_table(csv_file(path)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_our_sources_pass(name: str, tmp_path: Path) -> None:
    skipped = check_source(as_source(SOURCES[name](tmp_path)))
    assert list(skipped) == (["same_rows"] if name == "growing" else [])


class Own:
    """A source of another package, good unless something is changed."""

    def __init__(self, **changes: Any) -> None:
        self.names: Any = ("a", "b", "c")
        self.clock = Clock()
        self.times, self.values, self.quality = TIMES, VALUES, None
        self.order, self.more = slice(None), 0  # of the batches; what each further call adds to the values
        vars(self).update(changes)

    def batches(self) -> Iterator[Batch]:
        values, self.values = self.values, self.values + self.more
        parts = [Batch(self.times[:90], values[:90], self.quality), Batch(self.times[90:], values[90:])]
        yield from parts[self.order]


def test_a_foreign_source_passes() -> None:
    assert check_source(Own()) == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ("a", "a", "b")}, "distinct"),
        ({"names": ("a", "b")}, r"floats of the shape \(90, 2\)"),
        ({"times": TIMES[::-1]}, "in order of time"),
        ({"times": TIMES.astype(np.int64)}, "datetime64"),
        ({"order": slice(None, None, -1)}, "no batch may begin before"),
        ({"order": slice(0)}, "there must be a row"),
        ({"values": np.where(VALUES > 12, np.inf, VALUES)}, "infinite"),
        ({"values": VALUES.astype(int)}, "must be floats"),
        ({"quality": np.ones(90, dtype=bool)}, "quality must be"),
        ({"more": 1}, "the same readings"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_source(Own(**change))


def test_tuples_are_batches_and_checks_can_be_left_out() -> None:
    parts = [(TIMES[:90], VALUES[:90]), (TIMES[90:], VALUES[90:], None)]
    own = Own(batches=lambda: iter(parts))
    assert check_source(own) == {}
    assert check_source(Own(more=1), skip={"same_rows": "live"}) == {"same_rows": "live"}
    with pytest.raises(ValueError, match="there is no check 'colour': known are names, batches, order, levels, "):
        check_source(own, skip={"colour": "none"})


class Bare:
    def batches(self) -> Iterator[Batch]:
        yield Batch(TIMES, VALUES)


class Named(Bare):
    names = ("a", "b", "c")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("rows.csv", "this is no source: 'str' has no batches"),
        (None, "this is no source: 'NoneType' has no batches"),
        (Bare(), "this is no source: 'Bare' has no names"),
        (Named(), "this is no source: 'Named' has no clock"),
        (Own(clock=None), "clock must be a Clock, not 'NoneType'"),
        (Own(names=None), "names must be texts, in a tuple"),
        (Own(names=["a", "b", "c"]), "names must be texts, in a tuple"),
        (Own(batches=5), "batches.. ended with TypeError: 'int' object is not callable"),
        (Own(batches=lambda: None), "batches.. ended with TypeError: 'NoneType' object is not iterable"),
        (Own(batches=lambda: [5]), r"batches.. must give Batch\(times, values\), not 'int'"),
        (Own(batches=lambda: [(TIMES,)]), r"batches.. must give Batch\(times, values\), not 'tuple'"),
        (Own(batches=lambda: [(TIMES, VALUES.tolist())]), "the values of a batch must be an array, not 'list'"),
        (Own(batches=iter([[Batch(TIMES, VALUES)], []]).__next__), "asked again for its batches, .*, not none"),
        (Own(levels={"z": ["on"]}), "levels has 'z', which is none of the names"),
        (Own(levels=5), "levels must be a dict of texts by name, not 'int'"),
        (Own(levels={"a": None}), "the check of 'levels' ended with TypeError: .*"),
    ],
)
def test_what_is_no_source_is_one_line(source: Any, words: str) -> None:
    with pytest.raises(CheckFailure, match=f"^{words}$"):
        check_source(source)
