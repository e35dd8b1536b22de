"""Every source of ours passes the suite, and the suite sees what is wrong with others."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.base.clock import Clock
from eccaht.checks import CheckFailure, check_source
from eccaht.plants.data import Arrays, Batch, Source
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


def growing(path: Path) -> GrowingFile:
    expected = Expected(("a", "b", "c", "mode"), {"mode": ["AUTO", "MANUAL"]}, TimeRule(("time",)))
    return GrowingFile(csv_file(path), expected, timeout=0.01, poll=0.005)


def entity(path: Path) -> Source:
    return as_metrics(read_entity(find_entities(write_collection(path, ["e"]))[0])[1].rows)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "growing": growing,
    "array without times": lambda _: Arrays(VALUES),
    "array with times": lambda _: Arrays(VALUES, TIMES, ["a", "b", "c"]),
    "array with gaps": lambda _: Arrays(np.where(VALUES > 9.0, VALUES, np.nan), TIMES),
    "array in no order": lambda _: Arrays(VALUES, TIMES[::-1]),
    "server metrics": entity,
    "water network": lambda _: WaterRecording(FIRST + np.arange(ROWS), VALUES, ("P-1", "F-1", "L-1")).rows(),
}


@pytest.mark.parametrize("name", SOURCES)
def test_our_sources_pass(name: str, tmp_path: Path) -> None:
    skipped = check_source(SOURCES[name](tmp_path))
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
    """Tuples are batches, too; checks can be left out."""
    assert check_source(Own()) == {}
    assert check_source(Own(batches=lambda: iter([(TIMES[:90], VALUES[:90]), (TIMES[90:], VALUES[90:], None)]))) == {}
    assert check_source(Own(more=1), skip={"same_rows": "live"}) == {"same_rows": "live"}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"names": ("a", "a", "b")}, "distinct"),
        ({"names": ["a", "b", "c"]}, "tuple"),
        ({"names": ("a", "b")}, r"\(90, 2\)"),
        ({"clock": None}, "Clock"),
        ({"times": TIMES[::-1]}, "in order of time"),
        ({"times": TIMES.astype(np.int64)}, "datetime64"),
        ({"order": slice(None, None, -1)}, "begin before"),
        ({"order": slice(0)}, "there must be a row"),
        ({"values": np.where(VALUES > 12, np.inf, VALUES)}, "infinite"),
        ({"values": VALUES.astype(int)}, "floats"),
        ({"quality": np.ones(90, dtype=bool)}, "quality"),
        ({"batches": lambda: [(TIMES, VALUES.tolist())]}, "array"),
        ({"batches": iter([[Batch(TIMES, VALUES)], []]).__next__}, "the same times"),
        ({"more": 1}, "the same readings"),
        ({"levels": {"z": ["on"]}}, "none of the names"),
        ({"levels": {"a": ["on", "on"]}}, "distinct"),
        ({"levels": {"a": ["on"]}}, "places"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, Any], word: str) -> None:
    with pytest.raises(CheckFailure, match=f"^.*{word}.*$"):
        check_source(Own(**change))
