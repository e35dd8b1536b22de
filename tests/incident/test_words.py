"""An answer says in plain words who is wrong, since when, why, how sure that is, and whom others would have named."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eccaht.data.clock import Clock
from eccaht.incident.answer import Answer, Interval, Kind, Reason, Suspect
from eccaht.incident.names import shown_briefly
from eccaht.incident.why import disagreements, outside, why
from eccaht.incident.words import WIDTH, confidence, headline, lines, table
from tests.incident.example_answers import BEFORE, MINUTE, NAMES, START, answer_of

KINDS: tuple[Kind, ...] = ("step", "drift", "noise", "replay", "stuck", "silent", "moved", "free")


def told(answer: Answer, **options: Any) -> str:
    return " ".join(" ".join(lines(answer, **options)).split())


def with_reason(answer: Answer, **changes: Any) -> tuple[Answer, Suspect]:
    """The answer with another reason for its first sensor."""
    first = replace(answer.sensors[0], reason=replace(answer.sensors[0].reason, **changes))
    return replace(answer, sensors=(first, *answer.sensors[1:])), first


def with_moved(*kinds: Kind) -> Answer:
    """The first sensor was constant in the history, at 3, and reads 5; others have these faults."""
    answer, unknown = answer_of(("moved", *kinds)), float("nan")
    reason = Reason(unknown, unknown, (), 5.0, 3.0)
    sizes: dict[str, Any] = {"size": unknown, "size_raw": 2.0, "size_raw_interval": Interval(2.0, 2.0)}
    first = replace(answer.sensors[0], reason=reason, evidence=unknown, **sizes)
    rankings = {name: tuple(row for row in ranking if row[0] != "LT-101") for name, ranking in answer.rankings.items()}
    return replace(answer, sensors=(first, *answer.sensors[1:]), rankings=rankings, courses=answer.courses[1:])


def test_the_headline_tells_who_how_and_since_when() -> None:
    assert headline(answer_of()) == (
        "3 of 24 sensors are wrong since 2024-03-07 08:00 (07:58 to 08:01): "
        "LT-101 (step up), TT-303 (noisy), PT-402 (drift down)"
    )
    assert headline(answer_of(("stuck",), sure=False)).startswith("1 of 24 sensors seems to be wrong since")
    assert headline(answer_of(("step",) * 9)).endswith("DP-201 (step up) and 3 more")


def test_an_interval_that_begins_the_day_before_shows_both_days() -> None:
    midnight = np.datetime64("2024-03-08T00:01", "us")
    answer = answer_of(onset=midnight, onset_interval=(midnight - 3 * MINUTE, midnight + MINUTE))
    assert "since 2024-03-08 00:01 (2024-03-07 23:58 to 00:02)" in headline(answer)


def test_times_are_those_of_the_clock() -> None:
    assert "since 2024-03-07 09:00 (08:58 to 09:01)" in headline(answer_of(), Clock("Europe/Berlin"))
    assert "(times in Europe/Berlin)" in told(answer_of(), clock=Clock("Europe/Berlin"))
    rows = (np.arange(150) * 60 * 10**6).astype("datetime64[us]")
    answer = answer_of(onset=rows[60], onset_interval=(rows[58], rows[61]), first=rows[30], last=rows[-1])
    assert "wrong since row 61 (row 59 to row 62)" in headline(answer, Clock(row_interval=60.0))


def test_nothing_is_wrong_is_said_with_the_evidence_that_is_lacking() -> None:
    quiet = told(answer_of(()))
    assert quiet.startswith("Nothing is wrong: 120 windows from 2024-03-07 07:30 to 09:29")
    assert "Evidence: 1.9 (-log of the share of quiet stretches" in quiet
    assert "Closest to being named: LT-101" in quiet
    assert "Why" not in quiet
    assert headline(answer_of((), sure=False)).startswith("Nothing is wrong, as far as these windows tell: ")


@pytest.mark.parametrize("kinds", [(), ("step",), KINDS, ("free",) * 30])
@pytest.mark.parametrize("prefix", ["", "SITE 4/LINE 2/AREA WITH A LONG NAME/"])
def test_everything_fits_a_hundred_columns(kinds: tuple[Kind, ...], prefix: str) -> None:
    names = [f"{prefix}{name}" for name in (*NAMES, *(f"X-{k}" for k in range(50)))]
    answer = answer_of(kinds, sensors=40, names=names, cautions=("a caution that is rather long, " * 9,), size=2e5)
    assert max(map(len, lines(answer))) <= WIDTH


def test_the_table_has_the_named_sensors_first_and_tells_their_numbers() -> None:
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
        by_z = [sensor for sensor, _ in answer.rankings["z_local"]].index(suspect.sensor) + 1
        assert int(cells["by z"]) == by_z
    assert [row[0] for row in table(answer_of(("step",) * 25, sensors=40)) if "more" in row[1]] == ["..."]


def test_the_confidence_is_the_counted_one_or_says_why_there_is_none() -> None:
    assert confidence(answer_of()).startswith("Confidence: 96.3 % that exactly these sensors are wrong, counted in")
    assert "not sure: 95 % is asked for" in confidence(answer_of(confidence=0.8, sure=False))
    assert "see the cautions" in confidence(answer_of(sure=False))
    assert "that nothing is wrong" in confidence(answer_of(()))
    never = confidence(answer_of(confidence=0.0, sure=False))
    assert never == "Confidence: no drill with such evidence was right (not sure: 95 % is asked for)."
    assert "no drill that named nothing was right" in confidence(answer_of((), confidence=0.0, sure=False))
    none = confidence(answer_of(confidence=None, sure=False))
    assert none.startswith("Confidence: none was counted (see the cautions). The model by itself says above 99.9 %")


def test_a_searched_onset_is_told_beside_the_confidence() -> None:
    words = "counted in drills, which were told where to look (95 % is asked for)"
    assert words in confidence(answer_of(searched=True))
    assert "told" not in confidence(answer_of())


def test_the_confidence_is_not_about_what_is_seen_to_have_moved() -> None:
    assert "that exactly the other named sensors are wrong, LT-101 aside, counted" in confidence(with_moved("step"))
    assert "that nothing else is wrong, LT-101 aside, counted" in confidence(with_moved())


def test_a_constant_that_moved_is_told_and_has_no_place_in_rankings() -> None:
    answer = with_moved("step")
    text = told(answer)
    assert "2 of 24 sensors are wrong" in text
    assert "LT-101 (moved up), TT-303 (step up)" in text
    why_moved = "Why: LT-101 never moved in the history and moves now: from 3 to 5 since 2024-03-07 08:00."
    assert why_moved in text
    assert all("LT-101" not in line for line in disagreements(answer))
    assert "nan" not in text


def test_why_tells_a_hidden_fault_from_an_open_one() -> None:
    answer, suspect = with_reason(answer_of(("step",)), z_alone=0.8, z_given=5.3, read=75.2, expected=72.1)
    assert why(answer, suspect) == (
        "LT-101 looks normal by itself (0.8 deviations); given PT-101 and FT-402 it should read 3.100 lower "
        "(72.100, not 75.200: 5.3 deviations)."
    )
    answer, suspect = with_reason(answer, z_alone=-9.0, read=70.0)
    assert "left its usual range (9.0 deviations below its level before)" in why(answer, suspect)
    assert "2.100 higher" in why(answer, suspect)
    answer, suspect = with_reason(answer, predictors=())
    assert "by its level before it should read" in why(answer, suspect)


def test_a_fault_that_the_mean_hides_is_told_by_its_windows() -> None:
    answer, suspect = with_reason(answer_of(("noise",)), z_given=0.5)
    count, windows = outside(answer, answer.courses[0])
    course = answer.courses[0]
    beyond = [not low <= x <= high for low, x, high in zip(course.low, course.read, course.high, strict=True)]
    assert (count, windows) == (sum(beyond[BEFORE:]), 90)
    assert f"{count} of 90 windows since the onset are outside the band that PT-101 and FT-402" in why(answer, suspect)
    bare = replace(answer, courses=())
    assert "no longer follows PT-101 and FT-402" in why(bare, suspect)


def test_stuck_and_silent_sensors_are_told_as_such() -> None:
    answer = answer_of(("stuck", "silent"))
    stuck, silent = (why(answer, suspect) for suspect in answer.sensors[:2])
    assert re.match(r"LT-101 repeats one value, [\d.]+, since 2024-03-07 08:00; given PT-101 and FT-402 it", stuck)
    assert re.match(r"TT-303 delivers nothing since 2024-03-07 08:00; given PT-101 and FT-402 it should", silent)
    assert "nan" not in told(answer)


def test_a_sensor_that_joined_later_says_so() -> None:
    answer = answer_of(("step",))
    later = replace(answer.sensors[0], since=START + 80 * MINUTE)
    assert why(answer, later).startswith("LT-101 (since 08:20) ")


def test_where_plain_rankings_disagree_is_told_with_the_reason() -> None:
    by_z, by_distance = disagreements(with_reason(answer_of(), z_alone=0.8)[0])
    assert by_z == (
        "By z-score against the hour before one would miss LT-101 (24th, 0.8 alone), looking normal alone; "
        "and name AT-301 (3rd, 1.5 given the others), doing what the others predict."
    )
    assert by_distance == "By Mahalanobis contribution the same sensors come first."
    same = answer_of()
    agreeing = replace(same, rankings=dict.fromkeys(same.rankings, same.rankings["mahalanobis"]))
    assert len(disagreements(agreeing)) == 1
    swapped = replace(same, rankings={"mahalanobis": same.rankings["z_local"]})
    assert "miss LT-101 (24th), its deviation shared out among correlated sensors" in disagreements(swapped)[0]


def test_cautions_and_the_drill_line_come_last() -> None:
    text = lines(answer_of(cautions=("first.", "second.")))
    cautions = [k for k, line in enumerate(text) if line.startswith("CAUTION: ")]
    drill = next(k for k, line in enumerate(text) if line.startswith("On your own history: 200 faults drilled"))
    assert len(cautions) == 2
    assert max(cautions) < drill
    assert " ".join(" ".join(text[drill:]).split()) == answer_of().drill


def test_what_all_names_have_in_common_is_cut_once_and_everywhere() -> None:
    long = [f"SITE 4/AREA 1/{name}" for name in (*NAMES, *(f"X-{k}" for k in range(14)))]
    brief, part = shown_briefly(answer_of(names=long))
    assert part == "SITE 4/AREA 1/"
    assert brief.named == answer_of().named
    assert part not in repr(brief)
    assert shown_briefly(answer_of())[1] == ""
    assert told(answer_of(names=long)).count("SITE 4") == 1


@pytest.mark.parametrize(
    ("kinds", "evidence", "words"),
    [
        (("step",), 2.0, "would add 2.0 nats of evidence, where 6.5 are needed."),
        (("step",), 9.0, "more than the 6.5 that are needed, too little to tell it from chance."),
        ((), 9.0, "more than the 6.5 that are needed, but the windows as a whole are not unusual."),
    ],
)
def test_the_runner_up_is_told_with_what_it_lacks(kinds: tuple[Kind, ...], evidence: float, words: str) -> None:
    answer = answer_of(kinds)
    sensors = tuple(
        replace(each, evidence=evidence) if each.sensor == answer.runner_up else each for each in answer.sensors
    )
    assert words in told(replace(answer, sensors=sensors))
