"""Counts are those of the drills one by one, and survive a file unless it was damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from eccaht.incident.counts import ALL, BINS, HEADINGS, Counts, count
from eccaht.incident.drilling import Drill, run_drills
from eccaht.incident.faults import KINDS, SIZED
from tests.incident.judges import Guessing, Perfect, believing, drill_of, example_counts, plant

ALPHA = 0.05


def drills_by(judge: Any, runs: int = 120) -> list[Drill]:
    quiet = plant()
    return run_drills(judge or Perfect(quiet), quiet, np.zeros(len(quiet)), runs=runs)


def test_a_perfect_judge_has_all_right() -> None:
    counts = count(drills_by(None), believing(), ALPHA)
    assert counts.faults == counts.right == 60
    assert counts.sure == counts.faults + counts.quiet == 90
    assert (counts.sure_and_wrong, counts.falsely_named, counts.alarms) == (0, 0, 0)
    assert counts.found == counts.present
    assert all(cell.share in (1.0, None) for cell in counts.cells)


def test_counts_are_those_of_the_drills_one_by_one() -> None:
    drills = drills_by(Guessing())
    counts, half = count(drills, believing(), ALPHA), drills[::2]
    faulty = [drill for drill in half if drill.kind != "quiet"]
    assert counts.faults == len(faulty)
    assert counts.present == sum(len(drill.sensors) for drill in faulty)
    assert counts.found == sum(drill.named[0] in drill.sensors for drill in faulty)
    assert counts.falsely_named == len(faulty) - counts.found
    assert counts.alarms == counts.quiet == len(half) - len(faulty)
    assert counts.quiet_windows == sum(drill.length for drill in half if drill.kind == "quiet")
    assert counts.sure_and_wrong == sum(set(drill.named) != set(drill.sensors) for drill in half)
    for kind in KINDS:
        of_kind = counts.of_kind(kind)
        assert of_kind.faults == sum(drill.kind == kind for drill in half)
        assert of_kind.found == sum(drill.found for drill in half if drill.kind == kind)


def test_every_size_belongs_to_one_range() -> None:
    sizes = [1.0, 1.999, 2.0, 2.5, 3.0, 4.999, 5.0, 10.0]
    counts = count([drill_of(True, 9.0, "count", size=size) for size in sizes], believing(), ALPHA)
    steps = [cell for cell in counts.cells if cell.kind == "step"]
    assert [(cell.low, cell.high) for cell in steps] == list(BINS)
    assert [cell.faults for cell in steps] == [2, 2, 2, 2]


def test_intervals_are_those_of_clopper_and_pearson() -> None:
    for cell in example_counts().cells:
        assert cell.interval is not None
        expected = stats.binomtest(cell.found, cell.present).proportion_ci(0.95, method="exact")
        assert_allclose(cell.interval, (expected.low, expected.high), rtol=1e-9, atol=1e-12)


def test_without_drills_there_is_no_share() -> None:
    empty = count([], believing(), ALPHA)
    assert all(cell.share is None and cell.interval is None for cell in empty.cells)
    assert empty.line(60.0).startswith("On your own history: 0 faults drilled, 0 sets right, no answer sure; 0 alarms")
    assert all(len(row) == len(HEADINGS) for row in empty.rows())


def test_the_line_says_what_was_counted() -> None:
    quiet: dict[str, Any] = {"kind": "quiet", "sensors": (), "length": 60}
    drills = [drill_of(k > 2, 9.0 if k < 30 else 1.0, "count") for k in range(40)]
    drills += [drill_of(True, 1.0, "count", **quiet, named=(), alarm=False)] * 9
    drills += [drill_of(False, 1.0, "count", **quiet)]
    counts = count(drills, believing(), ALPHA)
    said = (
        "On your own history: 40 faults drilled, 37 sets right, 3 of 39 sure answers wrong (8 %); 1 alarm in 10 quiet"
    )
    assert counts.line(60.0) == f"{said} hours"
    assert counts.line(None) == f"{said.removesuffix('10 quiet')}600 quiet windows"


def test_the_table_has_every_kind_and_size_and_all_of_them() -> None:
    rows = list(example_counts().rows())
    assert all(len(row) == len(HEADINGS) for row in rows)
    assert {row[0] for row in rows} == {*KINDS, ALL}
    assert [row[1] for row in rows if row[0] == "drift"] == ["1-2", "2-3", "3-5", "5-10"]
    assert [sum(row[0] == kind for row in rows) for kind in KINDS] == [4 if kind in SIZED else 1 for kind in KINDS]
    assert rows[-1][2:4] == ("240", str(example_counts().right))


@pytest.mark.parametrize("factor", [0.3, 1.0])
def test_counts_survive_a_file(factor: float) -> None:
    counts = example_counts(factor)
    again = Counts.build(json.loads(json.dumps(counts.header(), allow_nan=False)))
    assert again.header() == counts.header()
    assert list(again.rows()) == list(counts.rows())
    assert again.factor == factor


def put(name: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda header: header.update({name: value})


def in_cell(place: int, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda header: header["cells"][0].__setitem__(place, value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda header: header.pop("sure"),
        put("more", 1),
        *(put("factor", value) for value in (0.0, 1.5, -1.0, "1", True, float("nan"), float("inf"))),
        *(put("alpha", value) for value in (0.0, 1.0, None, "0.05")),
        *(put("sure", value) for value in (-1, 1.0, True, "3", 10**30, 281)),
        put("sure_and_wrong", 280),
        put("alarms", 41),
        put("quiet_windows", 39),
        put("quiet", 10**12),
        *(put("cells", value) for value in (None, [], [[1, 1, 1, 1]], "cells")),
        lambda header: header["cells"].append([0, 0, 0, 0]),
        lambda header: header["cells"][0].append(0),
        *(in_cell(place, value) for place in range(4) for value in (-1, 0.5, None, True, 10**12)),
        in_cell(1, 100),
        in_cell(3, 100),
        in_cell(2, 1),
    ],
)
def test_damaged_counts_are_refused(damage: Callable[[dict[str, Any]], object]) -> None:
    header = json.loads(json.dumps(example_counts().header()))
    damage(header)
    with pytest.raises(ValueError, match=r"count|factor|alpha|sure|quiet|cell"):
        Counts.build(header)


@pytest.mark.parametrize(("sure", "wrong"), [(0, 0), (20, 3), (20, 4), (100, 9), (100, 10), (3, 3)])
def test_a_promise_holds_unless_the_binomial_law_says_otherwise(sure: int, wrong: int) -> None:
    drills = [drill_of(k >= wrong, 9.0, "count") for k in range(sure)]
    counts = count(drills, believing(), ALPHA)
    assert (counts.sure, counts.sure_and_wrong) == (sure, wrong)
    assert counts.holds is bool(not sure or stats.binom.sf(wrong - 1, sure, ALPHA) >= 0.05)
