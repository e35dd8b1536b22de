"""Counts are those of the trials one by one, and survive a file unless it was damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from numpy.testing import assert_allclose
from scipy import stats

from eccaht.plants.incident.counts import BANDS, Cell, Counts, Quiet
from eccaht.plants.incident.drill import AT_ALARM, HEADINGS, count, rows
from eccaht.plants.incident.faults import KINDS
from eccaht.plants.incident.trials import DrilledAnswer, Trial

QUIET = Quiet(2880, 2, 36, (100, 900))
SURE, UNSURE = 0.97, 0.6


def trial(kind: str = "step", size: float = 3.0, **outcome: Any) -> Trial:
    return Trial(kind, size if kind in ("step", "drift", "noise", "concealed") else 0.0, (1, 4), 20, **outcome)


def found(delay: int, named: tuple[int, ...], onset: int, end: int | None, raised: tuple[int, ...]) -> dict[str, Any]:
    right = set(named) == {1, 4}
    sets = {"named": named, "raised": raised, "answers": (DrilledAnswer(3.0, False, right),)}
    return {"found": True, "delay": delay, "onset_error": onset, "end_error": end, **sets}


TRIALS = [
    trial(**found(0, (4, 1), 0, 3, (1,))),
    trial(**found(3, (1, 4), -2, None, (1, 4))),
    trial(**found(10, (1,), 5, -6, (2,))),
    trial(found=False),
    trial(size=7.0, **found(0, (1, 4, 5), 1, 0, (1, 4, 5))),
    trial("stuck", **found(4, (1, 4), 0, 0, (1, 4))),
    trial("replay", found=False, answers=(DrilledAnswer(1.0, False, False),)),
]
CONFIDENCES: list[list[float | None]] = [[SURE], [UNSURE], [SURE], [], [None], [SURE], [SURE]]


@pytest.fixture
def counts() -> Counts:
    return count(TRIALS, QUIET, 8640.0, 0.05, CONFIDENCES)


def test_counts_by_hand(counts: Counts) -> None:
    middle, large, stuck, replay = counts.cells
    expected = {"drills": 4, "found": 3, "right": 2, "at_alarm": 1, "onset": 2, "end": 1, "sensors": 8, "named": 5}
    assert middle == Cell("step", 2.0, 5.0, **expected, sure=2, wrong=1, delay=3.0)
    assert (large.kind, large.low, large.drills, large.right, large.named, large.sure) == ("step", 5.0, 1, 0, 2, 0)
    assert (stuck.kind, stuck.right, stuck.sure, stuck.wrong) == ("stuck", 1, 1, 0)
    assert (replay.found, replay.sure, replay.wrong) == (0, 1, 1)  # a false alarm that was confident
    assert (counts.drills, counts.total("found"), counts.sure) == (7, 5, (4, 2))
    assert counts.found_share == pytest.approx(5 / 7)


def test_every_size_belongs_to_one_band() -> None:
    sizes = [1.0, 1.999, 2.0, 4.999, 5.0, 10.0]
    cells = count([trial(size=size, found=False) for size in sizes], QUIET, 100.0, 0.05).cells
    assert [(cell.low, cell.high) for cell in cells] == list(BANDS)
    assert [cell.drills for cell in cells] == [2, 2, 2]


def test_intervals_are_those_of_clopper_and_pearson(counts: Counts) -> None:
    for cell in counts.cells:
        expected = stats.binomtest(cell.found, cell.drills).proportion_ci(0.95, method="exact")
        assert_allclose(cell.interval, (expected.low, expected.high), rtol=1e-9, atol=1e-12)


def test_false_alarms_stand_beside_what_was_asked_for(counts: Counts) -> None:
    alarms, expected = counts.false_alarms
    assert alarms == 2
    assert expected == pytest.approx(1 / 3)
    assert counts.share_in_alarm == pytest.approx(0.0125)


def test_the_line_says_what_was_counted(counts: Counts) -> None:
    found = "On your own history: 5 of 7 injected faults were found, 3 with exactly the right sensors."
    start = f"{found} 2 of 4 answers with a confidence of 95 % were wrong. Without a fault: 2 false alarms"
    end = "(0.33 expected), 1 % of the time in alarm."
    assert counts.line(60.0) == f"{start} in 2 days {end}"  # of history, however many stretches were drilled
    assert counts.line(None) == f"{start} in 2880 windows {end}"
    assert counts.line(60.0) == " ".join(counts.sentences(60.0))


def test_false_alarms_beyond_chance_are_a_caution_with_what_to_do(counts: Counts) -> None:
    assert counts.caution == ""  # two where a third was expected happen in one history of twenty
    many = replace(counts, quiet=Quiet(2880, 10, 900))
    assert many.caution.startswith("10 false alarms where 0.33 were expected")
    assert "calibrate on a longer history" in many.caution


def test_without_drills_there_is_no_share() -> None:
    empty = count([], Quiet(10, 0, 0), 30.0, 0.05)
    assert empty.found_share is None
    assert empty.holds
    assert list(rows(empty)) == []
    assert "0 of 0 injected faults were found, 0 with exactly the right sensors." in empty.line(60.0)
    assert "No answer reached a confidence of 95 %." in empty.line(60.0)


def test_the_table_has_a_row_for_each_kind_and_size(counts: Counts) -> None:
    table = list(rows(counts))
    assert table[0] == ("step", "2-5", "4", "75 %", "3", "67 %", "67 %", "33 %", "2", "1")
    assert table[-1] == ("replay", "", "1", "0 %", "", "", "", "", "1", "1")
    assert all(len(row) == len(HEADINGS) for row in table)
    assert [row[-1] for row in rows(counts, at_alarm=True)] == ["33 %", "0 %", "100 %", ""]
    assert "alarm" in AT_ALARM


def test_counts_survive_a_file(counts: Counts) -> None:
    again = Counts.build(json.loads(json.dumps(counts.header(), allow_nan=False)))
    assert again.header() == counts.header()
    assert again.cells == counts.cells
    assert list(rows(again)) == list(rows(counts))


def put(name: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda header: header.update({name: value})


def in_cell(place: int, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda header: header["cells"][0].__setitem__(place, value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda header: header.pop("quiet"),
        put("more", 1),
        *(put("alpha", value) for value in (0.0, 1.0, None, "0.05")),
        *(put("every", value) for value in (0.0, -1.0, None, float("inf"), float("nan"), 1e300)),
        *(put("quiet", value) for value in (None, [1, 2], [10, 11, 0], [10, 0, 11], [10**12, 0, 0], [1.5, 0, 0])),
        *(put("cells", value) for value in (None, [[1, 1]], "cells", 3)),
        lambda header: header["cells"].append(header["cells"][0]),
        lambda header: header["cells"][0].append(0),
        *(in_cell(0, value) for value in (None, "burst", "stuck", 3, [1])),
        *(in_cell(1, value) for value in (None, 3.0, float("nan"))),
        *(in_cell(place, value) for place in range(3, 13) for value in (-1, 0.5, None, True, 10**12)),
        in_cell(4, 5),
        in_cell(5, 4),
        in_cell(12, 3),
        *(in_cell(13, value) for value in (-1.0, None, "1", float("inf"))),
    ],
)
def test_damaged_counts_are_refused(counts: Counts, damage: Callable[[dict[str, Any]], object]) -> None:
    header = json.loads(json.dumps(counts.header()))
    damage(header)
    with pytest.raises(ValueError, match=r"count|drills") as error:
        Counts.build(header)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("sure", "wrong"), [(0, 0), (20, 3), (20, 4), (100, 9), (100, 12), (3, 3)])
def test_confidence_holds_unless_the_binomial_law_says_otherwise(sure: int, wrong: int) -> None:
    given = [trial(found=True, delay=0, answers=(DrilledAnswer(3.0, False, k >= wrong),)) for k in range(sure)]
    counts = count(given, QUIET, 100.0, 0.05, [[SURE]] * sure)
    assert counts.sure == (sure, wrong)
    assert counts.holds is bool(not sure or stats.binom.sf(wrong - 1, sure, 0.05) >= 0.025)


def test_kinds_without_a_size_have_one_row() -> None:
    every = [trial(kind, found=False) for kind in KINDS]
    assert [cell.kind for cell in count(every, QUIET, 100.0, 0.05).cells] == list(KINDS)
