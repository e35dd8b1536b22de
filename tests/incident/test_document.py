"""Programs get every number of an answer, and never one that JSON does not have."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from eccaht.data.clock import Clock
from eccaht.incident.document import as_document
from tests.incident.example_answers import answer_of


def read(**changes: Any) -> dict[str, Any]:
    text = json.dumps(as_document(answer_of(("step", "silent"), **changes), Clock("UTC")), allow_nan=False)
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


def test_what_is_not_known_is_null() -> None:
    assert read()["onset_searched"] is False
    document = read(confidence=None, drill="", onset=None, onset_interval=None, posterior=np.nan, runner_up=None)
    unknown = ("confidence", "drill", "onset", "onset_interval", "posterior", "runner_up")
    assert [document[name] for name in unknown] == [None] * 6
    assert document["named"][1]["size_raw"] is None


def test_times_rankings_and_drill_are_those_of_the_answer() -> None:
    answer, document = answer_of(("step", "silent")), read()
    assert document["onset"] == "2024-03-07 08:00:00+00:00"
    assert document["onset_interval"] == ["2024-03-07 07:58:00+00:00", "2024-03-07 08:01:00+00:00"]
    assert document["drill"] == {"text": answer.drill}
    assert (document["confidence"], document["sure"]) == (answer.confidence, True)
    for name in ("z_local", "mahalanobis"):
        assert [(row["sensor"], row["score"]) for row in document["rankings"][name]] == [*answer.rankings[name]]
