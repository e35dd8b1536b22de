"""The reference is what the code says, and the shelves of docs keep their form."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from docs.generate import pages, schema
from jsonschema_rs import Draft202012Validator  # comes with schemathesis

from eccaht.base.clock import Clock
from eccaht.cli.calibrate import document
from eccaht.plants.data import Arrays
from eccaht.plants.model import calibrate
from eccaht.plants.show.document import as_document
from eccaht.plants.watch.events import Event, Kind
from tests.plants.show.example_answers import answer_of

DOCS = Path(__file__).parents[1] / "docs"


def errors(name: str, document: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(json.loads(schema(name))).iter_errors(document)]


def test_the_reference_is_up_to_date() -> None:
    stale = [path.name for path, text in pages() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    assert stale == []  # `make reference` writes these pages again


def test_every_kind_of_event_is_explained() -> None:
    table = (DOCS / "reference" / "answers.md").read_text(encoding="utf-8").partition("## Kinds")[2]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)[1:]
    assert sorted(kind for row in rows for kind in re.findall("`(.+?)`", row)) == sorted(get_args(Kind))


@pytest.mark.parametrize("kinds", [("step", "silent"), ()])
def test_answers_fit_their_schema(kinds: Any) -> None:
    answer = answer_of(kinds, clock=Clock("UTC"), verdict="wrong" if kinds else "nothing")
    assert errors("identify", json.loads(json.dumps(as_document(answer)))) == []
    assert errors("identify", {"verdict": "perhaps"}) != []


def test_calibrations_fit_their_schema() -> None:
    rows = np.random.default_rng(0).standard_normal((400, 3))
    rows[:, 2] = 1.0  # dropped, and its value is in the document
    model = calibrate(Arrays(rows, names=["flow", "level", "setpoint"]))
    assert errors("calibrate", json.loads(json.dumps(document(model, "plant.model")))) == []


def test_events_fit_their_schema() -> None:
    event = Event("alarm", "2024-03-07T08:00:00", "text", 1, sizes=(1.5, None), onset_interval=("a", "b"))
    assert errors("event", json.loads(json.dumps(event.document()))) == []
