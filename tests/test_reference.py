"""The reference is what the code says, and the shelves of docs keep their form."""

from __future__ import annotations

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
from eccaht.plants.incident.document import as_document
from eccaht.plants.model import calibrate
from eccaht.plants.watch.events import Event, Kind
from tests.plants.incident.example_answers import answer_of

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def shelf(path: Path) -> str:
    return path.relative_to(DOCS).parts[0]


def errors(name: str, document: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(json.loads(schema(name))).iter_errors(document)]


def test_the_reference_is_up_to_date() -> None:
    stale = [path.name for path, text in pages() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    assert stale == []  # `make reference` writes these pages again


def test_every_kind_of_event_is_explained() -> None:
    table = (DOCS / "reference" / "events.md").read_text(encoding="utf-8").partition("## Kinds")[2]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)[1:]
    assert sorted(kind for row in rows for kind in re.findall("`(.+?)`", row)) == sorted(get_args(Kind))


@pytest.mark.parametrize("kinds", [("step", "silent"), ()])
def test_answers_fit_their_schema(kinds: Any) -> None:
    answer = answer_of(kinds) if kinds else answer_of(kinds, verdict="nothing")
    assert errors("identify", json.loads(json.dumps(as_document(answer, Clock("UTC"))))) == []
    assert errors("identify", {"verdict": "perhaps"}) != []


def test_calibrations_fit_their_schema() -> None:
    rows = np.random.default_rng(0).standard_normal((400, 3))
    rows[:, 2] = 1.0  # dropped, and its value is in the document
    model = calibrate(Arrays(rows, names=["flow", "level", "setpoint"]))
    assert errors("calibrate", json.loads(json.dumps(document(model, "plant.model")))) == []


def test_events_fit_their_schema() -> None:
    event = Event("alarm", "2024-03-07T08:00:00", "text", 1, sizes=(1.5, None), onset_interval=("a", "b"))
    assert errors("event", json.loads(json.dumps(event.document()))) == []


def test_lines_wrap_at_sentences() -> None:
    """Tables, code and the reference may have longer lines."""
    long = []
    for path in PAGES:
        text = re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        lines = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "!["))]
        if shelf(path) != "reference":
            long += [f"{path.relative_to(DOCS)}: {line[:60]}" for line in lines if len(line) > 240]
    assert long == []


def test_every_measured_table_says_when_and_how_it_was_measured() -> None:
    silent = []
    for path in sorted((DOCS / "measured").glob("*.md")):
        for section in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            numbers = re.search(r"^\|.*\d\.\d.*\|$", section, re.MULTILINE)
            if numbers and not re.search(r"^Measured 20\d\d-\d\d-\d\d, \d\.\d", section, re.MULTILINE):
                silent.append(f"{path.name}: {section.partition(chr(10))[0]}")
    assert silent == []
