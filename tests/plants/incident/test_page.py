"""The page of an answer stands on its own and shows all that the lines say."""

from __future__ import annotations

import re

import pytest

from eccaht.plants.incident.answer import disagreements
from eccaht.plants.incident.page import write
from eccaht.plants.incident.words import confidence, headline, reasons
from tests.plants.incident.example_answers import MINUTE, START, answer_of, with_incidents
from tests.research.paper.test_report import Page

pytestmark = pytest.mark.usefixtures("plain_pictures")  # what they look like is tested elsewhere


def test_the_page_needs_nothing_else() -> None:
    answer = answer_of(("step",), names=["<b>&", "$x_1$"], windows=70, cautions=("mind <this>.",))
    text = write(answer, about=["Model: plant.model"])
    page = Page(text)
    assert "<script" not in text
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?(?!#|["'])""", re.sub(r'xmlns(:\w+)?="[^"]*"', "", text))
    assert "<b>&" in page.text  # a sensor's name is text
    shown = [headline(answer), confidence(answer), *reasons(answer), *disagreements(answer.largest), *answer.cautions]
    for line in (*shown, answer.drill, "Model: plant.model"):
        assert line in page.text
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("svg") == 2  # for wide and narrow screens
    assert "prefers-color-scheme: dark" in text


def test_drawings_have_the_colours_of_the_page() -> None:
    text = write(answer_of(("step",), windows=90))
    drawings = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert set(re.findall(r"#[0-9a-fA-F]{6}\b", drawings)) == set()
    used = set(re.findall(r"var\((--\w+)\)", drawings))
    assert {"--ink", "--read", "--mark", "--band", "--dim"} == used
    for name in used:
        assert len(re.findall(rf"{name}: #", text)) == 2  # light and dark


def test_the_same_answer_gives_the_same_page() -> None:
    quiet = answer_of((), windows=70)
    text = write(quiet)
    assert text == write(quiet)
    assert "Why" not in Page(text).text


def test_several_incidents_are_listed_in_order_of_time() -> None:
    other = answer_of(("stuck",), windows=70, evidence=1.0, ended=START + 50 * MINUTE, began=START + 20 * MINUTE)
    page = Page(write(with_incidents(answer_of(("step",), windows=70), *other.incidents)))
    listed = page.text.partition("2 incidents in order of time:")[2].partition("What the sensors read")[0]
    early, _, late = listed.partition("until 07:50: LT-101 (stuck)")
    assert "from 2024-03-07 07:20" in early
    assert "still going on at the end of the data: LT-101 (step up), confidence 96.3 %" in late


def test_an_undecided_page_does_not_say_that_nothing_is_wrong() -> None:
    page = Page(write(answer_of((), windows=70, verdict="undecided", doubts=("PT-101 may be wrong",), quiet=None)))
    assert "Undecided: whether a sensor is wrong is not clear from 40 windows" in page.text
    assert "Why: PT-101 may be wrong." in page.text
    assert "othing is wrong" not in page.text
    assert "nothing wrong" not in page.text
