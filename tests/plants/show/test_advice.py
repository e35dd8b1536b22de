"""What to do about an undecided answer: the time up to which the plant was well is the user's own."""

import re
from typing import Any

import numpy as np
import polars as pl

import eccaht
from eccaht.base.clock import Clock
from eccaht.plants.answer import Answer
from eccaht.plants.show.words import what_to_do
from tests.plants.show.example_answers import answer_of


def until(answer: Answer) -> str:
    """The time before which all is taken to be well."""
    found = re.search(r"well before (\S+),", what_to_do(answer)[0])
    assert found is not None
    return found[1]


def test_the_history_ends_at_the_start_that_was_given_or_after_a_third() -> None:
    changed: dict[str, Any] = {"verdict": "undecided"}
    answer = answer_of(**changed, first=np.datetime64("2024-03-07T07:00", "us"))
    assert until(answer) == "2024-03-07T07:49:40"  # of 07:00 to 09:29
    assert until(answer_of(**changed, settings={"start": "2024-03-07T08:30"})) == "2024-03-07T08:30"
    rows = (np.arange(150) * 10**6).astype("datetime64[us]")
    clock = Clock(row_interval=1.0, counted=True)
    assert until(answer_of(**changed, first=rows[0], last=rows[-1], clock=clock)) == "51"


def test_an_answer_that_is_decided_needs_nothing() -> None:
    assert what_to_do(answer_of()) == []


def test_the_advice_leads_to_the_sensor() -> None:
    """The plant runs elsewhere than in its history, and its sensor b is wrong in the last third."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal(540)
    readings = common[:, None] + 0.3 * rng.standard_normal((540, 4))
    readings[270:] += 60.0
    readings[450:, 1] += 4.0
    table = pl.DataFrame({"abcd"[k]: readings[:, k].round(3) for k in range(4)})
    model = eccaht.calibrate(table[:270], drills=0, progress=False)
    answer = model.identify(table[270:], progress=False)
    assert answer.verdict == "undecided"
    new = eccaht.calibrate(table[270:], stop=until(answer), drills=0, progress=False)
    assert new.identify(table[270:], start=until(answer), progress=False).named == ("b",)
