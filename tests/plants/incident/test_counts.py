"""Counts are those of the trials one by one, and survive a file unless it was damaged."""

from dataclasses import replace
from typing import Any

import pytest
from numpy.testing import assert_allclose
from scipy import stats

from eccaht.base.codec import built, state_of
from eccaht.plants.incident.counts import BANDS, Cell, Counts, Quiet
from eccaht.plants.incident.drill import HEADINGS, count, rows
from eccaht.plants.incident.trials import DrilledAnswer, Trial

QUIET = Quiet(2880, 2, 36, (100, 900))
SURE, UNSURE = 0.97, 0.6


def trial(kind: str = "step", size: float = 3.0, **outcome: Any) -> Trial:
    return Trial(kind, size if kind in ("step", "drift", "noise", "concealed") else 0.0, (1, 4), 20, **outcome)


def found(delay: int, named: tuple[int, ...], onset: int, end: int | None, raised: tuple[int, ...]) -> dict[str, Any]:
    right = set(named) == {1, 4}
    sets = {"named": named, "raised": raised, "answers": (DrilledAnswer((3.0,), False, right),)}
    return {"found": True, "delay": delay, "onset_error": onset, "end_error": end, **sets}


TRIALS = [
    trial(**found(0, (4, 1), 0, 3, (1,))),
    trial(**found(3, (1, 4), -2, None, (1, 4))),
    trial(**found(10, (1,), 5, -6, (2,))),
    trial(found=False),
    trial(size=7.0, **found(0, (1, 4, 5), 1, 0, (1, 4, 5))),
    trial("stuck", **found(4, (1, 4), 0, 0, (1, 4))),
    trial("replay", found=False, answers=(DrilledAnswer((1.0,), False, False),)),
]
CONFIDENCES: list[list[float | None]] = [[SURE], [UNSURE], [SURE], [], [None], [SURE], [SURE]]


@pytest.fixture
def counts() -> Counts:
    return count(TRIALS, QUIET, 8640.0, 0.05, CONFIDENCES)


def test_counts_by_hand(counts: Counts) -> None:
    middle, large, stuck, replay = counts.cells
    expected = {"drills": 4, "found": 3, "right": 2, "at_alarm": 1, "onset": 2, "end": 1, "sensors": 8, "named": 5}
    assert middle == Cell("step", 2.0, 5.0, **expected, confident=2, wrong=1, delay=3.0)
    assert (large.kind, large.low, large.drills, large.right, large.named, large.confident) == ("step", 5.0, 1, 0, 2, 0)
    assert (stuck.kind, stuck.right, stuck.confident, stuck.wrong) == ("stuck", 1, 1, 0)
    assert (replay.found, replay.confident, replay.wrong) == (0, 1, 1)  # a false alarm that was confident
    assert (counts.drills, counts.total("found"), counts.confident) == (7, 5, (4, 2))
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


def test_false_alarms_beyond_chance_are_a_caution_with_what_to_do(counts: Counts) -> None:
    assert counts.caution == ""  # two where a third was expected happen in one history of twenty
    many = replace(counts, quiet=Quiet(2880, 10, 900))
    assert many.caution.startswith("10 ")


def test_without_drills_there_is_no_share() -> None:
    empty = count([], Quiet(10, 0, 0), 30.0, 0.05)
    assert empty.found_share is None
    assert empty.holds
    assert list(rows(empty)) == []


def test_the_table_has_a_row_for_each_kind_and_size(counts: Counts) -> None:
    table = list(rows(counts))
    assert table[0] == ("step", "2-5", "4", "75 %", "3", "67 %", "67 %", "33 %", "2", "1")
    assert table[-1] == ("replay", "", "1", "0 %", "", "", "", "", "1", "1")
    assert all(len(row) == len(HEADINGS) for row in table)
    assert [row[-1] for row in rows(counts, at_alarm=True)] == ["33 %", "0 %", "100 %", ""]


@pytest.mark.parametrize(
    ("part", "damage"),
    [
        ("", {"alpha": 0.0}),
        ("", {"alpha": 1.0}),
        ("quiet", {"windows": 10, "alarms": 11}),
        ("quiet", {"windows": 10, "in_alarm": 11}),
        *(("cell", {"kind": kind}) for kind in ("burst", "stuck")),
        ("cell", {"low": 3.0}),
        *(("cell", {name: 5}) for name in ("found", "right", "wrong")),
        ("cell", {"sensors": 0}),
    ],
)
def test_counts_that_do_not_agree_are_refused(counts: Counts, part: str, damage: dict[str, Any]) -> None:
    state = state_of(counts)
    {"": state, "quiet": state["quiet"], "cell": state["cells"][0]}[part].update(damage)
    with pytest.raises(ValueError, match="damaged"):
        built(Counts, state, {})


def test_a_kind_and_size_is_counted_once(counts: Counts) -> None:
    state = state_of(counts)
    with pytest.raises(ValueError, match="once"):
        built(Counts, state | {"cells": state["cells"] * 2}, {})


@pytest.mark.parametrize(("stated", "wrong"), [(0, 0), (20, 3), (20, 4), (100, 9), (100, 12), (3, 3)])
def test_confidence_holds_unless_the_binomial_law_says_otherwise(stated: int, wrong: int) -> None:
    given = [trial(found=True, delay=0, answers=(DrilledAnswer((3.0,), False, k >= wrong),)) for k in range(stated)]
    counts = count(given, QUIET, 100.0, 0.05, [[SURE]] * stated)
    assert counts.confident == (stated, wrong)
    assert counts.holds is bool(not stated or stats.binom.sf(wrong - 1, stated, 0.05) >= 0.025)
