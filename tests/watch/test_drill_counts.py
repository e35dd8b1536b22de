"""Counts of a watch's drills are those of the faults one by one, and survive a file unless it was damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from eccaht.incident.counts import ALL, BINS
from eccaht.incident.faults import KINDS, SIZED
from eccaht.watch.drill import QuietAlarm, WatchDrill, WatchDrilled, Watched
from eccaht.watch.drill_confidence import NamedSet, WatchConfidence
from eccaht.watch.drill_counts import Naming, QuietCounts, WatchCell, WatchCounts
from eccaht.watch.drill_document import document
from eccaht.watch.drill_picture import draw
from eccaht.watch.drill_words import HEADINGS, line, remarks, rows
from tests.watch.plants import plant, readings

MINUTE, DAY = 60.0, 1440
TIME = np.datetime64("2024-03-08T18:16:00", "us")


def fault(kind: str, found: int | None, *, named: tuple[int, ...] = (1,), size: float | None = None) -> WatchDrill:
    """A fault of sensor 1 that was found so many windows after its onset, by an alarm that named these."""
    size = (2.5 if kind in SIZED else 0.0) if size is None else size
    if found is None:
        return WatchDrill(kind, size, (1,), onset=70)
    told = NamedSet(named, (kind,) * len(named), "evidence", 0.9)
    return WatchDrill(kind, size, (1,), 70, told, found, told if found <= 190 else None, found)


def drilled(drills: list[WatchDrill], bases: tuple[Any, ...] = (), windows: int = 3 * DAY) -> WatchDrilled:
    """Drills of a watch that promised one false alarm a day."""
    alarms = tuple(QuietAlarm(TIME, basis, ("c1", "c2")) for basis in bases)
    plain = Watched(windows, windows - 10 * len(alarms), alarms, tuple(drills), 1)
    steps = tuple(drill for drill in drills if drill.kind == "step")
    return WatchDrilled(float(DAY), 200, plain, Watched(windows, windows, (), steps, 0), 0.25)


def some() -> WatchDrilled:
    """Twelve faults, two of each kind."""
    delays = iter([1, None, 40, 60, 4, 4, 2, None, 195, 30, 5, 5])
    found = [fault(kind, next(delays), named=(1, 3) if kind == "noise" else (1,)) for kind in KINDS for _ in range(2)]
    return drilled(found, ("evidence", "evidence", "stuck"))


def test_counts_are_those_of_the_faults_one_by_one() -> None:
    counts = WatchCounts.of(some())
    assert counts.faults == 12
    assert counts.quiet == QuietCounts(3 * DAY, 3 * DAY - 30, 2, 1, 0)
    assert counts.left_out == 1
    noise, replay = counts.of_kind("noise"), counts.of_kind("replay")
    assert noise == WatchCell("noise", 0.0, 0.0, 2, (2,), Naming(1, 0, 1, 1, 1, 1), Naming(1, 0, 1, 1, 1, 1))
    assert replay.delays == (30, 195)
    assert (replay.raised.sets, replay.settled.sets) == (2, 1)
    every = counts.of_kind(ALL)
    assert (every.found, every.within(5), every.within(200)) == (10, 6, 10)
    assert (counts.wander_faults, counts.wander_found) == (2, 1)


def test_kinds_told_are_compared_with_those_injected() -> None:
    told = NamedSet((0, 1, 2), ("step", "drift", "stuck"), "evidence", 0.5)
    drill = WatchDrill("drift", 2.0, (1, 2, 3), 70, told, 3, told, 3)
    cell = WatchCounts.of(drilled([drill])).of_kind("drift")
    assert cell.raised == Naming(sets=1, right=0, faulty=3, named=2, kinds=1, falsely=1)


def test_every_size_belongs_to_one_range() -> None:
    sizes = [1.0, 1.999, 2.0, 2.5, 3.0, 4.999, 5.0, 10.0]
    steps = [c for c in WatchCounts.of(drilled([fault("step", 1, size=s) for s in sizes])).cells if c.kind == "step"]
    assert [(cell.low, cell.high) for cell in steps] == list(BINS)
    assert [cell.faults for cell in steps] == [2, 2, 2, 2]


@pytest.mark.parametrize("number", [1, 2, 3, 10, 11, 30])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_delay_is_the_least_within_which_the_share_was_found(number: int, share: float) -> None:
    delays = np.sort(np.random.default_rng(number).integers(1, 200, number))
    cell = WatchCell("step", 0.0, 0.0, 40, tuple(delays.tolist()), Naming(), Naming())
    found = cell.delay(share)
    assert found == np.quantile(delays, share, method="inverted_cdf")
    assert found is not None
    assert cell.within(found) >= share * number


def test_intervals_are_exact() -> None:
    counts = WatchCounts.of(some())
    cell = counts.of_kind(ALL)
    assert cell.interval == pytest.approx(tuple(stats.binomtest(10, 12).proportion_ci(0.95, method="exact")))
    low, high = counts.quiet.interval(2, DAY) or (0.0, 0.0)
    days = counts.quiet.free / DAY
    assert_allclose([low * days, high * days], [stats.chi2.ppf(0.025, 4) / 2, stats.chi2.ppf(0.975, 6) / 2])


@pytest.mark.parametrize("alarms", range(9))
def test_a_promise_is_kept_unless_the_poisson_law_says_otherwise(alarms: int) -> None:
    quiet = QuietCounts(3 * DAY, 3 * DAY, alarms, 5, 5)
    assert quiet.keeps(DAY) is bool(stats.poisson.sf(alarms - 1, 3.0) >= 0.05)


def test_without_faults_and_windows_there_is_no_share_and_no_rate() -> None:
    counts = WatchCounts.of(drilled([], windows=0))
    assert counts.of_kind(ALL).share is None
    assert counts.of_kind(ALL).delay(0.5) is None
    assert counts.quiet.rate(0) is None
    assert all(len(row) == len(HEADINGS) for row in rows(counts))
    assert (
        line(counts, None)
        == "Watched 0 quiet windows: 0 alarms where 0 were promised at most; of 0 faults 0 were found"
    )
    assert all(remarks(counts, MINUTE))
    draw(counts).draw_without_rendering()


# -- words, document, picture --------------------------------------------------------------------------


def test_the_line_says_what_was_counted() -> None:
    counts = WatchCounts.of(some())
    assert line(counts, MINUTE) == (
        "Watched 3 quiet days: 2 alarms where 3 were promised at most, 1 more of sensors stuck or silent; "
        "of 12 faults 10 were found, half of them within 5 minutes"
    )
    assert line(counts, None).startswith("Watched 4320 quiet windows: 2 alarms")
    assert line(counts, None).endswith("half of them within 5 windows")


def test_the_table_has_every_kind_and_size_and_all_of_them() -> None:
    table = list(rows(WatchCounts.of(some())))
    assert all(len(row) == len(HEADINGS) for row in table)
    assert [sum(row[0] == kind for row in table) for kind in KINDS] == [4 if kind in SIZED else 1 for kind in KINDS]
    assert table[-1] == ("all", "", "12", "10", "0.83", "0.52 to 0.98", "0.50", "5", "60", "9/10", "8/9")


def test_remarks_say_whether_the_promise_was_kept() -> None:
    kept, broken = (" ".join(remarks(WatchCounts.of(drilled([], ("evidence",) * n)), MINUTE)) for n in (2, 9))
    assert "Alarms on evidence: 2, 0.67 a day (95 % interval 0.081 to 2.4); promised: at most 1 a day." in kept
    assert "promised: at most 1 a day; this is more than chance explains" in broken
    short = " ".join(remarks(WatchCounts.of(drilled([], windows=60)), MINUTE))
    assert "too short to check so rare a promise" in short
    assert "in 1000 windows" in " ".join(remarks(WatchCounts.of(some()), None))


def test_the_document_has_every_number() -> None:
    model = plant()[0]
    told = json.loads(json.dumps(document(some(), model.prepare(readings(100, 0))), allow_nan=False))
    assert told["quiet"]["alarms"]["all"]["count"] == 3
    assert told["quiet"]["promised"] == pytest.approx((3 * DAY - 30) / DAY)
    assert [len(told["kinds"]), len(told["faults"])] == [15, 12]
    assert told["all"]["delays"] == [1, 2, 4, 4, 5, 5, 30, 40, 60, 195]
    assert told["faults"][1]["raised"] is None
    assert told["faults"][0]["sensors"] == [model.names[1]]
    assert {cell["raised"]["kinds_right"] for cell in told["kinds"] if cell["kind"] == "replay"} == {2}


def test_the_picture_has_a_curve_a_kind_that_ends_at_its_share() -> None:
    counts = WatchCounts.of(some())
    (axes,) = draw(counts, line=line(counts, MINUTE), seconds=MINUTE).axes
    ends = {str(curve.get_label()): np.asarray(curve.get_ydata())[-1] for curve in axes.lines}
    assert ends["step, 1 of 2"] == 0.5
    assert ends["drift, 2 of 2"] == 1.0
    assert len(ends) == len(KINDS)
    assert "minutes" in axes.get_xlabel()


# -- confidence ----------------------------------------------------------------------------------------


def believed(belief: float, right: bool, later: bool = True) -> WatchDrill:
    first, last = (NamedSet((1,) if good else (2,), ("step",), "evidence", belief) for good in (right, later))
    return WatchDrill("step", 2.0, (1,), 70, first, 1, last, 1 if right else 11)


def test_a_confidence_is_the_lower_end_of_the_share_that_was_right() -> None:
    drills = [believed(0.5, right=False)] * 20 + [believed(0.9, right=True)] * 45
    stuck = NamedSet((1,), ("stuck",), "stuck")
    drills += [WatchDrill("stuck", 0.0, (1,), 70, stuck, 4, None, 4)] * 9
    drills += [WatchDrill("stuck", 0.0, (1,), 70, stuck, 4, stuck, 4)]
    confidence = drilled([*drills, WatchDrill("step", 1.0, (1,), 70)]).confidence
    assert confidence.counted("evidence", 0.95, 0) == pytest.approx(0.1 ** (1 / 45))
    assert confidence.counted("evidence", 0.6, 9) == 0.0
    assert confidence.counted("evidence", 0.6, 10) == pytest.approx(0.1 ** (1 / 65))
    assert confidence.counted("stuck", float("nan"), 0) == pytest.approx(0.1 ** (1 / 10))
    assert confidence.counted("stuck", float("nan"), 10) == pytest.approx(0.1)
    assert np.isnan(confidence.counted("silent", float("nan"), 0))
    assert np.isnan(confidence.counted("nothing", float("nan"), 0))
    again = WatchConfidence.build(json.loads(json.dumps(confidence.header(), allow_nan=False)))
    assert again.header() == confidence.header()


def test_without_drills_there_is_no_confidence() -> None:
    confidence = WatchConfidence.of([], [])
    assert np.isnan(confidence.counted("evidence", 0.99, 0))
    assert WatchConfidence.build(confidence.header()).header() == confidence.header()


@pytest.mark.parametrize("value", [-0.1, 1.1, "1", True, [], float("inf")])
@pytest.mark.parametrize("name", ["stuck", "silent", "table"])
def test_a_damaged_confidence_is_refused(name: str, value: Any) -> None:
    header = WatchConfidence.of([], []).header()
    for damaged in ({**header, "settled": {**header["settled"], name: value}}, {**header, "raised": value}, value):
        with pytest.raises(ValueError, match=r"share|confidence"):
            WatchConfidence.build(damaged)


# -- files of strangers --------------------------------------------------------------------------------


def test_counts_survive_a_file() -> None:
    counts = WatchCounts.of(some())
    assert WatchCounts.build(json.loads(json.dumps(counts.header(), allow_nan=False))) == counts


def put(name: str, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda header: header.update({name: value})


def inside(*places: Any) -> Callable[[dict[str, Any]], object]:
    *path, last, value = places

    def change(header: Any) -> None:
        for place in path:
            header = header[place]
        header[last] = value

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda header: header.pop("every"),
        put("more", 1),
        *(put("every", value) for value in (0.5, None, "5", float("nan"), True)),
        *(put("stretch", value) for value in (0, 201, 2.0, None)),
        *(put("left_out", value) for value in (-1, 5001, "1", True)),
        *(put("wander", value) for value in (-1.0, float("inf"), 1e9, None)),
        *(put("wander_found", value) for value in (3, -1, 0.5)),
        *(put("cells", value) for value in (None, [], [[1]], "cells")),
        *(put("quiet", value) for value in (None, [1, 2], [5, 6, 0, 0, 0], [10, 5, 6, 0, 0], [10, 5, 0, 11, 0])),
        *(inside("wandering", k, value) for k in range(5) for value in (-1, 10**12, 1.5, None, True)),
        *(inside("cells", 1, 0, value) for value in (0, -1, 1.5, None, 10**12)),
        *(inside("cells", 1, 1, value) for value in (None, [0], [201], [1.5], [1, 1], ["1"], [True])),
        *(inside("cells", 4, place, k, value) for place in (2, 3) for k in range(6) for value in (-1, 0.5, None)),
        inside("cells", 8, 1, [5, 4]),
        inside("cells", 1, 2, [1, 2, 1, 1, 1, 0]),
        inside("cells", 1, 2, [1, 1, 1, 2, 1, 0]),
        inside("cells", 1, 2, [1, 0, 1, 1, 2, 0]),
        inside("cells", 1, 2, [1, 1, 0, 1, 1, 0]),
        inside("cells", 1, 3, [2, 1, 2, 2, 1, 0]),
        inside("cells", 1, 0, 5001),
    ],
)
def test_damaged_counts_are_refused(damage: Callable[[dict[str, Any]], object]) -> None:
    header = json.loads(json.dumps(WatchCounts.of(some()).header()))
    damage(header)
    with pytest.raises(ValueError, match=r"count|every|stretch|wander|delay|watch") as error:
        WatchCounts.build(header)
    assert "\n" not in str(error.value)
