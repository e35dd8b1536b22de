"""Programs get every number of an answer, and never one that JSON does not have."""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from eccaht.base.clock import Clock
from eccaht.plants.show.document import as_document
from tests.plants.show.example_answers import MINUTE, START, answer_of, with_incidents


def read(**changes: Any) -> dict[str, Any]:
    text = json.dumps(as_document(answer_of(("step", "silent"), clock=Clock("UTC"), **changes)), allow_nan=False)
    document: dict[str, Any] = json.loads(text)
    return document


def test_all_sensors_best_first_and_the_named_ones_apart() -> None:
    answer, document = answer_of(("step", "silent")), read()
    assert [sensor["sensor"] for sensor in document["sensors"]] == [suspect.sensor for suspect in answer.sensors]
    assert document["named"] == document["sensors"][:2]
    assert [sensor["kind"] for sensor in document["sensors"][:3]] == ["step", "silent", None]
    first = document["named"][0]
    assert first["size_raw_low"] < first["size_raw"] < first["size_raw_high"]
    assert {"belief", "evidence", "z_alone", "z_given", "predictors", "why"} <= first.keys()


def test_the_top_is_that_of_the_largest_incident() -> None:
    large, small = answer_of(("step", "silent")), answer_of(("range",), ended=START + 20 * MINUTE, evidence=3.0)
    early = replace(small.incidents[0], began=START)
    document = json.loads(json.dumps(as_document(with_incidents(large, early)), allow_nan=False))
    assert document["verdict"] == "wrong"
    first, second = document["incidents"]
    assert (first["kinds"], first["end"], first["changed"]) == (["range"], "2024-03-07 07:20:00", False)
    assert (second["kinds"], second["end"]) == (["step", "silent"], None)
    for name in ("named", "sensors", "onset", "end", "confidence", "confident", "sure", "kinds"):
        assert document[name] == second[name]
    assert {"onset", "end", "named", "sensors", "confidence", "kinds"} <= first.keys()


def test_without_an_incident_no_sensor_is_named_and_there_is_no_date() -> None:
    for verdict in ("nothing", "undecided"):
        document = json.loads(json.dumps(as_document(answer_of((), verdict=verdict, doubts=("why",)))))
        assert (document["verdict"], document["named"], document["incidents"]) == (verdict, [], [])
        assert (document["onset"], document["onset_interval"], document["end"]) == (None, None, None)
        assert len(document["sensors"]) == len(document["rankings"]["z_local"]) == 24
        assert ("Nothing is wrong" in document["headline"]) == (verdict == "nothing")


def test_what_is_not_known_is_null() -> None:
    document = read(confidence=None, drill="", evidence=np.nan)
    assert [document[name] for name in ("confidence", "drill", "end")] == [None] * 3
    assert document["sure"] is False
    assert document["named"][1]["size_raw"] is None


def test_times_rankings_and_drill_are_those_of_the_answer() -> None:
    answer, document = answer_of(("step", "silent")), read()
    assert document["onset"] == "2024-03-07 08:00:00+00:00"
    assert document["onset_interval"] == ["2024-03-07 07:58:00+00:00", "2024-03-07 08:01:00+00:00"]
    assert document["drill"] == {"text": answer.drill}
    assert (document["confidence"], document["sure"]) == (answer.confidence, True)
    for name in ("z_local", "mahalanobis"):
        ranking = answer.largest.rankings[name]
        assert [(row["sensor"], row["score"]) for row in document["rankings"][name]] == [*ranking]
