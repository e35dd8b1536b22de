"""An answer says in plain words which sensors are wrong, from when to when, why, and how confident that is."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eccaht.base.clock import Clock
from eccaht.plants.incident.answer import Answer, Interval, Reason, Suspect, disagreements
from eccaht.plants.incident.words import (
    WIDTH,
    confidence,
    headline,
    lines,
    outside,
    shown_briefly,
    table,
    why,
)
from eccaht.streams.watch.alarm import Kind
from tests.plants.incident.example_answers import BEFORE, MINUTE, NAMES, START, answer_of, with_incidents

KINDS: tuple[Kind, ...] = ("step", "drift", "noise", "replay", "stuck", "silent", "range", "moved", "free")


def printed(answer: Answer, **options: Any) -> str:
    return " ".join(" ".join(lines(answer, **options)).split())


def with_reason(answer: Answer, **changes: Any) -> tuple[Answer, Suspect]:
    """The answer with another reason for its first sensor."""
    first = replace(answer.sensors[0], reason=replace(answer.sensors[0].reason, **changes))
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


def test_the_headline_says_which_how_and_since_when() -> None:
    assert headline(answer_of()) == (
        "3 of 24 sensors are wrong since 2024-03-07 08:00 (07:58 to 08:01), still going on at the end of the data: "
        "LT-101 (step up), TT-303 (noisy), PT-402 (drift down)"
    )
    assert headline(answer_of(("stuck",), sure=False)).startswith("1 of 24 sensors seems to be wrong since")
    assert headline(answer_of(("range",))).endswith(": LT-101 (out of range)")
    assert headline(answer_of(("step",) * 9)).endswith("DP-201 (step up) and 3 more")


def test_what_is_over_has_an_end_and_what_lasts_is_a_change() -> None:
    end = START + 160 * MINUTE
    over, lasts = (headline(answer_of(("step",), ended=end, changed=changed)) for changed in (False, True))
    assert "1 of 24 sensors was wrong from 2024-03-07 08:00 (07:58 to 08:01) until 09:40: LT-101" in over
    assert "1 of 24 sensors has changed since 2024-03-07 08:00 (07:58 to 08:01), a change that lasts: LT-101" in lasts
    assert headline(answer_of(ended=end, sure=False)).startswith("3 of 24 sensors seem to have been wrong from")
    next_day = headline(answer_of(ended=START + 24 * 60 * MINUTE))
    assert "until 2024-03-08 07:00" in next_day


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


def test_an_interval_that_begins_the_day_before_shows_both_days() -> None:
    midnight = np.datetime64("2024-03-08T00:01", "us")
    answer = answer_of(began=midnight, began_interval=(midnight - 3 * MINUTE, midnight + MINUTE))
    assert "since 2024-03-08 00:01 (2024-03-07 23:58 to 00:02)" in headline(answer)


def test_times_are_those_of_the_clock() -> None:
    assert "since 2024-03-07 09:00 (08:58 to 09:01)" in headline(answer_of(), Clock("Europe/Berlin"))
    assert "(times in Europe/Berlin)" in printed(answer_of(), clock=Clock("Europe/Berlin"))
    rows = (np.arange(150) * 60 * 10**6).astype("datetime64[us]")
    answer = answer_of(began=rows[60], began_interval=(rows[58], rows[61]), first=rows[30], last=rows[-1])
    assert "wrong since row 61 (row 59 to row 62)" in headline(answer, Clock(row_interval=60.0))


def test_nothing_is_wrong_is_said_with_the_evidence_that_is_lacking() -> None:
    quiet = printed(answer_of(()))
    assert quiet.startswith("Nothing is wrong: 120 windows from 2024-03-07 07:30 to 09:29")
    assert "Evidence: 1.9 below the threshold of one false alarm in 8600 windows." in quiet
    assert "Most suspect: LT-101" in quiet
    assert "Why" not in quiet
    assert headline(answer_of((), quiet=0.9)).startswith("Nothing is wrong, as far as these windows show: ")


def test_undecided_says_why_and_never_that_nothing_is_wrong() -> None:
    answer = answer_of((), verdict="undecided", quiet=None, doubts=("a detector came close", "PT-101 may be wrong"))
    text = printed(answer)
    assert text.startswith(
        "Undecided: whether a sensor is wrong is not clear from 120 windows from 2024-03-07 07:30 to 09:29."
    )
    assert "Why: a detector came close. Why: PT-101 may be wrong." in text
    assert "othing is wrong" not in text
    assert "Confidence: none, because the answer is undecided." in text


def test_a_plant_where_the_history_never_was_is_undecided_and_says_what_to_do() -> None:
    doubt = "which sensors are wrong: 20 of 24 read outside of everything in the history from the first window on"
    answer = answer_of(("range",) * 20, verdict="undecided", confidence=None, sure=False, doubts=(doubt,))
    text = lines(answer)
    assert text[0].startswith("Undecided: the plant has changed, or runs at an operating point")
    assert "Known: these read otherwise than in the history since" in text[1]
    assert f"Not known: {doubt}." in printed(answer)
    assert "    model = eccaht.calibrate(data, stop='2024-03-07T08:09:40')" in text
    assert "    answer = model.identify(data, start='2024-03-07T08:09:40')" in text
    assert "Confidence: none, because the answer is undecided." in text
    assert not any("%" in line and line.startswith("Confidence") for line in text)
    assert [row[0] for row in table(answer)[1:3]] == [
        "1 differs",
        "2 differs",
    ]  # not named: which are wrong is not known
    assert not any(line.startswith("By ") for line in text)  # nor would a ranking have missed one


def test_evidence_is_explained_once_and_has_no_other_name() -> None:
    text = printed(answer_of())
    assert text.count("2.3 more is ten times rarer") == 1
    assert "nats" not in text
    assert "nats" not in repr(answer_of().sensors[0])


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
    answer = changed(answer, sensors=(first, replace(answer.sensors[1], belief=1e-9), *answer.sensors[2:]))
    header, one, two, *_ = table(answer)
    assert (one[header.index("belief")], two[header.index("belief")]) == (">0.999", "<0.001")
    assert one[header.index("size (95 %)")] == ""
    assert one[header.index("kind")] == "step"
    assert "nan" not in printed(answer)


def test_the_confidence_is_the_one_estimated_in_drills_or_says_that_there_is_none() -> None:
    estimated = "that exactly these sensors are wrong, estimated in drills on your own history (95 % is asked for)."
    assert confidence(answer_of()) == f"Confidence: 96.3 % {estimated}"
    assert "not confident: 95 % is asked for" in confidence(answer_of(confidence=0.8))
    found = "drills on your own history found 96.3 % of their faults, and a fault that was missed would look the same"
    assert found in confidence(answer_of(()))
    never = confidence(answer_of(confidence=0.0))
    assert never == "Confidence: no drill with such evidence was right (not confident: 95 % is asked for)."
    assert confidence(answer_of(confidence=None)) == "Confidence: none was estimated (see the cautions)."


def test_the_confidence_is_not_about_what_is_seen_to_have_moved() -> None:
    assert "that exactly the other named sensors are wrong, LT-101 aside, estimated" in confidence(with_moved("step"))


def test_a_constant_that_moved_is_reported_and_has_no_place_in_rankings() -> None:
    answer = with_moved("step")
    text = printed(answer)
    assert "2 of 24 sensors are wrong" in text
    assert "LT-101 (moved up), TT-303 (step up)" in text
    why_moved = "Why: LT-101 never moved in the history and moves now: from 3 to 5 since 2024-03-07 08:00."
    assert why_moved in text
    assert all("LT-101" not in line for line in disagreements(answer.largest))
    assert "nan" not in text


def test_why_distinguishes_a_hidden_fault_from_an_open_one() -> None:
    answer, suspect = with_reason(answer_of(("step",)), z_alone=0.8, z_given=5.3, read=75.2, expected=72.1)
    assert why(answer.largest, suspect) == (
        "LT-101 looks normal by itself (0.8 standard deviations); given PT-101 and FT-402 it should read 3.100 lower "
        "(72.100, not 75.200: 5.3 standard deviations)."
    )
    answer, suspect = with_reason(answer, z_alone=-9.0, read=70.0)
    assert "left its usual range (9.0 standard deviations below its level before)" in why(answer.largest, suspect)
    assert "2.100 higher" in why(answer.largest, suspect)
    answer, suspect = with_reason(answer, predictors=())
    assert "by its level before it should read" in why(answer.largest, suspect)


def test_a_fault_that_the_mean_hides_is_reported_by_its_windows() -> None:
    answer, suspect = with_reason(answer_of(("noise",)), z_given=0.5)
    count, windows = outside(answer.largest, answer.largest.courses[0])
    course = answer.largest.courses[0]
    beyond = [not low <= x <= high for low, x, high in zip(course.low, course.read, course.high, strict=True)]
    assert (count, windows) == (sum(beyond[BEFORE:]), 90)
    assert f"{count} of 90 windows of the incident are outside the band that PT-101 and FT-402" in why(
        answer.largest, suspect
    )
    bare = replace(answer.largest, courses=())
    assert "no longer follows PT-101 and FT-402" in why(bare, suspect)


def test_stuck_and_silent_sensors_are_reported_as_such() -> None:
    answer = answer_of(("stuck", "silent"))
    stuck, silent = (why(answer.largest, suspect) for suspect in answer.sensors[:2])
    assert re.match(r"LT-101 repeats one value, [\d.]+, since 2024-03-07 08:00; given PT-101 and FT-402 it", stuck)
    assert re.match(r"TT-303 delivers nothing since 2024-03-07 08:00; given PT-101 and FT-402 it should", silent)
    assert "nan" not in printed(answer)
    ended = answer_of(("silent",), ended=START + 100 * MINUTE)
    assert "LT-101 delivers nothing from 2024-03-07 08:00 to 08:40; given" in why(ended.largest, ended.sensors[0])
    far = answer_of(("range",))
    words = r"LT-101 reads [\d.]+ since 2024-03-07 08:00, beyond everything in the history; given PT-101 and FT-402"
    assert re.match(words, why(far.largest, far.sensors[0]))


def test_only_windows_of_the_incident_count_as_outside() -> None:
    answer = answer_of(("step",), ended=START + 100 * MINUTE)
    assert outside(answer.largest, answer.largest.courses[0])[1] == 40


def test_a_sensor_that_joined_later_says_so() -> None:
    answer = answer_of(("step",))
    later = replace(answer.sensors[0], began=START + 80 * MINUTE)
    assert why(answer.largest, later).startswith("LT-101 (since 08:20) ")


def test_where_plain_rankings_disagree_is_reported_with_the_reason() -> None:
    by_z, by_distance = disagreements(with_reason(answer_of(), z_alone=0.8)[0].largest)
    assert by_z == (
        "By z-score against the windows before one would miss LT-101 (24th, 0.8 alone), looking normal alone; "
        "and name AT-301 (3rd, 1.5 given the others), doing what the others predict."
    )
    assert by_distance == "By Mahalanobis contribution the same sensors come first."
    same = answer_of().largest
    agreeing = replace(same, rankings=dict.fromkeys(same.rankings, same.rankings["mahalanobis"]))
    assert len(disagreements(agreeing)) == 1
    swapped = replace(same, rankings={"mahalanobis": same.rankings["z_local"]})
    assert "miss LT-101 (24th), deviation shared out among correlated sensors" in disagreements(swapped)[0]


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
    assert printed(answer_of(names=long)).count("SITE 4") == 1


@pytest.mark.parametrize(
    ("kinds", "evidence", "words"),
    [
        (("step",), 2.0, "evidence 2.0, where 6.5 are needed."),
        (("step",), 9.0, "more than the 6.5 that are needed, but a sensor with a larger score lacks them."),
        ((), 9.0, "more than the 6.5 that are needed, but no detector reaches its threshold."),
    ],
)
def test_the_runner_up_is_reported_with_what_it_lacks(kinds: tuple[Kind, ...], evidence: float, words: str) -> None:
    answer = answer_of(kinds)
    sensors = tuple(
        replace(each, evidence=evidence) if each.sensor == answer.largest.runner_up else each for each in answer.sensors
    )
    assert words in printed(changed(answer, sensors=sensors))
