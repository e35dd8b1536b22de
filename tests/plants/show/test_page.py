"""The page of an answer stands on its own and shows all that the lines say."""

import re

import pytest

from eccaht.plants.show.page import write
from eccaht.plants.show.words import confidence, headline, reasons
from tests.plants.show.example_answers import answer_of
from tests.research.paper.test_report import Page

pytestmark = pytest.mark.usefixtures("plain_pictures")  # what they look like is tested elsewhere


def test_the_page_needs_nothing_else() -> None:
    answer = answer_of(
        ("step",), names=["<b>&", "$x_1$"], windows=70, cautions=("mind <this>.",), about=("Model: plant.model",)
    )
    text = write(answer)
    page = Page(text)
    assert "<script" not in text
    assert not re.search(r"""(?:src|href|url)\s*[=(]\s*["']?(?!#|["'])""", re.sub(r'xmlns(:\w+)?="[^"]*"', "", text))
    assert "<b>&" in page.text  # a sensor's name is text
    shown = [headline(answer), confidence(answer), *reasons(answer), *answer.cautions]
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
