"""An answer says in plain words which sensors are wrong, from when to when, why, and how confident that is."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eccaht.base.clock import Clock
from eccaht.plants.answer import Answer, Interval, Reason, Suspect
from eccaht.plants.show.words import (
    WIDTH,
    confidence,
    headline,
    lines,
    outside,
    table,
    why,
)
from eccaht.streams.watch.alarm import Kind
from tests.plants.show.example_answers import BEFORE, MINUTE, NAMES, START, answer_of, with_incidents

KINDS: tuple[Kind, ...] = ("step", "drift", "noise", "replay", "stuck", "silent", "range", "moved", "free")


def printed(answer: Answer, **options: Any) -> str:
    return " ".join(" ".join(lines(answer, **options)).split())


def with_reason(answer: Answer, **changes: Any) -> tuple[Answer, Suspect]:
    """The answer with another reason for its first sensor."""
    first = replace(answer.sensors[0], reason=replace(answer.sensors[0].reason, **changes))
    if "z_given" in changes and first.difference is not None:
        first = replace(first, difference=replace(first.difference, size=changes["z_given"]))
    return changed(answer, sensors=(first, *answer.sensors[1:])), first


def changed(answer: Answer, **changes: Any) -> Answer:
    """The answer with another largest incident."""
    incident = replace(answer.largest, **changes)
    return replace(answer, incidents=(incident,) if answer.incidents else (), looked_at=incident)


def with_moved(*kinds: Kind) -> Answer:
    """The first sensor was constant in the history, at 3, and reads 5; others have these faults."""
    answer, unknown = answer_of(("moved", *kinds)), float("nan")
    reason = Reason(unknown, unknown, (), 5.0, 3.0)
    sizes: dict[str, Any] = {"size": unknown, "size_raw": 2.0, "size_raw_interval": Interval(2.0, 2.0)}
    first = replace(answer.sensors[0], reason=reason, evidence=unknown, **sizes)
    (incident,) = answer.incidents
    rankings = {
        name: tuple(row for row in ranking if row[0] != "LT-101") for name, ranking in incident.rankings.items()
    }
    return changed(answer, sensors=(first, *answer.sensors[1:]), rankings=rankings, courses=incident.courses[1:])


def test_several_incidents_are_lines_in_order_of_time_and_the_largest_is_shown_in_detail() -> None:
    small = answer_of(("stuck",), began=START, began_interval=(START, START), ended=START + 10 * MINUTE, evidence=-3.0)
    answer = with_incidents(answer_of(("step", "noise")), *small.incidents)
    text = lines(answer)
    assert "; the largest of 2 incidents" in headline(answer)
    place = text.index("2 incidents in order of time:")
    assert text[place + 1] == "  from 2024-03-07 07:00 until 07:10: LT-101 (stuck), confidence 96.3 %"
    assert text[place + 2].startswith("  since 2024-03-07 08:00")
    assert [row[0] for row in table(answer)[1:4]] == ["1 named", "2 named", "3 -"]
    assert "incidents in order" not in printed(answer_of())
    many = printed(
        with_incidents(answer_of(), *[replace(small.incidents[0], began=START + k * MINUTE) for k in range(30)])
    )
    assert "and 11 more: see --json" in many


def test_times_are_those_of_the_clock() -> None:
    assert "since 2024-03-07 09:00 (08:58 to 09:01)" in headline(answer_of(clock=Clock("Europe/Berlin")))
    assert "(times in Europe/Berlin)" in printed(answer_of(clock=Clock("Europe/Berlin")))
    rows = (np.arange(150) * 60 * 10**6).astype("datetime64[us]")
    answer = answer_of(
        clock=Clock(row_interval=60.0),
        began=rows[60],
        began_interval=(rows[58], rows[61]),
        first=rows[30],
        last=rows[-1],
    )
    assert "wrong since row 61 (row 59 to row 62)" in headline(answer)


def test_the_answer_comes_first_then_how_the_data_differ_from_the_history() -> None:
    text = lines(answer_of(cautions=("rounded more", "no drills"), compared=("rounded more",)))
    assert text[0].startswith("3 of 24 sensors are wrong")
    first, last = [k for k, line in enumerate(text) if line.startswith("CAUTION")]
    assert (text[first], text[last]) == ("CAUTION: rounded more", "CAUTION: no drills")
    assert first < text.index("") < last


def test_names_are_shortened_only_where_they_do_not_fit_and_never_alike() -> None:
    names = [f"Vibration of pump {k} (mm/s)" for k in range(24)]
    shown = [row[1] for row in table(answer_of(("step",) * 3, names=names), others=21)[1:]]
    assert len(set(shown)) == 24
    assert max(map(len, lines(answer_of(("step",) * 3, names=names)))) <= WIDTH
    short = [f"Accelerometer {k} RMS" for k in range(24)]
    assert [row[1] for row in table(answer_of(("step",) * 3, names=short))[1:]] == short[:7]


@pytest.mark.parametrize("kinds", [(), ("step",), KINDS, ("free",) * 30])
@pytest.mark.parametrize("prefix", ["", "SITE 4/LINE 2/AREA WITH A LONG NAME/"])
def test_everything_fits_a_hundred_columns(kinds: tuple[Kind, ...], prefix: str) -> None:
    names = [f"{prefix}{name}" for name in (*NAMES, *(f"X-{k}" for k in range(50)))]
    answer = answer_of(kinds, sensors=40, names=names, cautions=("a caution that is rather long, " * 9,), size=2e5)
    assert max(map(len, lines(answer))) <= WIDTH


def test_the_table_has_the_named_sensors_first_and_shows_their_numbers() -> None:
    answer = answer_of()
    header, *rows = table(answer)
    assert [row[0] for row in rows] == ["1 named", "2 named", "3 named", "4 -", "5 -", "6 -", "7 -"]
    assert [row[1] for row in rows] == [suspect.sensor for suspect in answer.sensors[:7]]
    for row, suspect in zip(rows, answer.sensors, strict=False):
        cells = dict(zip(header, row, strict=True))
        middle, low, high = map(float, re.findall(r"[+-][\d.]+", cells["size (95 %)"]))
        assert (middle, low, high) == pytest.approx(
            (suspect.size_raw, suspect.size_raw_interval.low, suspect.size_raw_interval.high), abs=0.01
        )
        for name, z in (("alone", suspect.reason.z_alone), ("given", suspect.reason.z_given)):
            assert float(cells[name]) == pytest.approx(z, abs=0.051)
        by_z = [sensor for sensor, _ in answer.largest.rankings["z_local"]].index(suspect.sensor) + 1
        assert int(cells["by z"]) == by_z
    assert [row[0] for row in table(answer_of(("step",) * 25, sensors=40)) if "more" in row[1]] == ["..."]


def test_beliefs_are_never_certain_and_sizes_below_the_resolution_are_not_shown() -> None:
    answer, unknown = answer_of(("step",)), float("nan")
    sizes: dict[str, Any] = {"size": unknown, "size_raw": unknown, "size_raw_interval": Interval(unknown, unknown)}
    first = replace(answer.sensors[0], belief=1.0, **sizes)
    others = tuple(replace(each, belief=1e-9) for each in answer.sensors[1:])
    answer = changed(answer, sensors=(first, *others))
    header, one, two, *_ = table(answer)
    assert (one[header.index("belief")], two[header.index("belief")]) == (">0.999", "<0.001")
    assert one[header.index("size (95 %)")] == ""
    assert one[header.index("kind")] == "step"
    assert "nan" not in printed(answer)


def test_the_headline_names_the_sensors_and_is_as_sure_as_the_answer() -> None:
    said = headline(answer_of())
    assert all(part in said for part in ("3 of 24", "are wrong", "08:00 (07:58 to 08:01)", "PT-402 (drift down)"))
    assert "seems to be wrong" in headline(answer_of(("stuck",), confident=False))
    end = START + 160 * MINUTE
    assert "was wrong" in headline(answer_of(("step",), ended=end))
    assert "until 09:40" in headline(answer_of(("step",), ended=end))


def test_what_is_not_known_is_never_said_to_be_nothing() -> None:
    assert printed(answer_of(())).startswith("Nothing is wrong")
    assert "as far as these windows show" in headline(answer_of((), quiet=0.9))
    undecided = printed(answer_of((), verdict="undecided", quiet=None, doubts=("PT-101 may be wrong",)))
    assert undecided.startswith("Undecided")
    assert "Why: PT-101 may be wrong." in undecided
    assert "othing is wrong" not in undecided
    assert "--start" in undecided


def test_where_nothing_is_named_the_table_begins_with_the_largest_belief() -> None:
    answer = answer_of((), quiet=None)
    beliefs = np.random.default_rng(0).uniform(0.0, 0.4, len(answer.sensors))
    sensors = tuple(replace(each, belief=float(b)) for each, b in zip(answer.sensors, beliefs, strict=True))
    answer = replace(answer, looked_at=replace(answer.looked_at, sensors=sensors))
    most = sorted(sensors, key=lambda each: -each.belief)
    assert [row[1] for row in table(answer)[1:]] == [each.sensor for each in most][: len(table(answer)) - 1]


def test_a_sensor_that_leaps_does_not_look_normal_by_itself() -> None:
    """Its mean may be near its level all the same."""
    answer = answer_of(("free",), size=0.0)
    incident, suspect = answer.largest, answer.sensors[0]
    suspect = replace(suspect, reason=replace(suspect.reason, z_alone=0.4))
    for leap, word in ((3.0, "looks normal"), (30.0, "leaps")):
        rankings = incident.rankings | {"z_local": ((suspect.sensor, leap),)}
        assert word in why(replace(incident, rankings=rankings), suspect)


def test_a_plant_where_the_history_never_was_is_undecided_and_says_what_to_do() -> None:
    doubts = ("which sensors are wrong",)
    answer = answer_of(("range",) * 20, verdict="undecided", confidence=None, confident=False, doubts=doubts)
    text = lines(answer)
    assert "the plant has changed" in text[0]
    assert any(line.startswith(f"Not known: {doubts[0]}") for line in text)
    assert any("2024-03-07T08:09:40" in line for line in text)
    assert [row[0] for row in table(answer)[1:3]] == ["1 differs", "2 differs"]  # which are wrong is not known


@pytest.mark.parametrize(
    ("kinds", "given", "word"),
    [
        (("step",), 0.963, "96.3 %"),
        (("step",), 0.8, "not confident"),
        (("step",), 0.0, "no answer"),
        (("step",), None, "none was estimated"),
        ((), 0.963, "drills"),
    ],
)
def test_the_confidence_is_the_one_estimated_in_drills(kinds: tuple[Kind, ...], given: float | None, word: str) -> None:
    assert word in confidence(answer_of(kinds, confidence=given))


def test_a_constant_that_moved_is_reported() -> None:
    text = printed(with_moved("step"))
    assert "LT-101 (moved up), TT-303 (step up)" in text
    assert "from 3 to 5" in text
    assert "LT-101 aside" in text
    assert "nan" not in text


def test_why_distinguishes_a_hidden_fault_from_an_open_one() -> None:
    answer, suspect = with_reason(answer_of(("step",)), z_alone=0.8, z_given=5.3, read=75.2, expected=72.1)
    hidden = why(answer.largest, suspect)
    for part in ("normal by itself", "LT-101 - 0.61 PT-101 + 0.32 FT-402 reads 5.3", "high", "72.100, not 75.200"):
        assert part in hidden
    answer, suspect = with_reason(answer, z_alone=-9.0, z_given=-4.0, read=70.0)
    assert "left its usual range" in why(answer.largest, suspect)
    assert "reads 4.0 standard deviations low" in why(answer.largest, suspect)
    assert "(since 08:20)" in why(answer.largest, replace(suspect, began=START + 80 * MINUTE))


def test_a_fault_that_the_mean_hides_is_reported_by_its_windows() -> None:
    answer, suspect = with_reason(answer_of(("noise",)), z_given=0.5)
    course = answer.largest.courses[0]
    beyond = [not low <= x <= high for low, x, high in zip(course.low, course.read, course.high, strict=True)]
    assert outside(answer.largest, course) == (sum(beyond[BEFORE:]), 90)
    assert "scatters by" in why(answer.largest, suspect)
    assert f"{sum(beyond[BEFORE:])} of 90 windows" in why(answer.largest, replace(suspect, difference=None))
    ended = answer_of(("step",), ended=START + 100 * MINUTE)
    assert outside(ended.largest, ended.largest.courses[0])[1] == 40


@pytest.mark.parametrize(("kind", "word"), [("stuck", "one value"), ("silent", "nothing"), ("range", "beyond")])
def test_sensors_that_are_wrong_by_themselves_are_reported_as_such(kind: Kind, word: str) -> None:
    answer = answer_of((kind,))
    assert word in why(answer.largest, answer.sensors[0])
    assert "nan" not in printed(answer)
