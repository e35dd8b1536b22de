"""The page stands on its own and shows every check; pictures do not depend on anything but the model."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from eccaht.base.presentation.document import Code, Paragraph, html
from eccaht.base.presentation.style import embedded_png
from eccaht.base.randomness import rng_for
from eccaht.plants.diagnose import diagnose, page
from eccaht.plants.diagnose.page import write
from eccaht.plants.diagnose.view import ModelView
from eccaht.plants.model.model import Model
from tests.plants.diagnose.worlds import model_of, white
from tests.research.paper.test_report import Page

PNG = b"\x89PNG\r\n\x1a\n"


def renamed(model: Model, names: tuple[str, ...]) -> Model:
    columns = tuple(replace(c, name=name) for c, name in zip(model.columns, names, strict=True))
    return replace(model, names=names, columns=columns)


def test_the_page_needs_nothing_else() -> None:
    x = white(600, 8)
    x[:, 5] = x[:, 0]
    odd = ("<b>&", r"C:\plant\1_LT_001", "$x_1$", "ünï", "a b", "copy,1", "`tick", "last")
    diagnosis = diagnose(renamed(model_of(x), odd), n_anomalies=1, shift=3.0, runs=2, horizon=20)
    text = write(diagnosis, "model <1>")
    page = Page(text)
    assert "<script" not in text
    assert "<title>Diagnosis of model &lt;1&gt;</title>" in text
    assert not [t for t in page.targets if not t.startswith(("#", "data:image/png;base64,"))]
    assert page.tags.count("img") == 5
    assert {t[1:] for t in page.targets if t.startswith("#")} <= set(page.ids)
    for check in diagnosis.checks:
        assert check.name.capitalize() in page.text
        assert check.shown in page.text
    assert page.text.count("not fit") >= 2
    assert "<b>&" in page.text  # a sensor's name is text


def test_the_same_model_gives_the_same_picture() -> None:
    seen = ModelView(model_of(white(400, 6)))
    assert embedded_png(page.draw_whiteness(seen)) == embedded_png(page.draw_whiteness(seen))


@pytest.mark.parametrize("size", [1, 2, 60])
def test_every_picture_can_be_drawn_for_any_number_of_sensors(size: int) -> None:
    seen = ModelView(model_of(rng_for(0, "any").standard_normal((200, size))))
    for draw in (
        page.draw_correlation,
        page.draw_spectrum,
        page.draw_whiteness,
        page.draw_normality,
        page.draw_drift,
    ):
        assert embedded_png(draw(seen)).startswith(PNG)


def test_sensors_of_one_group_stand_together() -> None:
    rng = rng_for(0, "groups")
    group = rng.permutation(np.repeat([0, 1, 2], 5))
    causes = rng.standard_normal((3000, 3))
    sign = rng.choice([-1.0, 1.0], size=15)  # opposite directions belong together, too
    x = sign * causes[:, group] + 0.7 * rng.standard_normal((3000, 15))
    order = page.clustered(np.asarray(np.corrcoef(x, rowvar=False)))
    assert sorted(order) == list(range(15))
    assert (np.diff(group[order]) != 0).sum() == 2


def test_text_of_a_check_is_one_line() -> None:
    for check in diagnose(model_of(white(100, 24))).checks:
        assert not re.search(r"\s{2}|\n", check.meaning + check.action + check.limits)


def test_names_of_options_stay_in_one_piece_and_lists_break_after_commas() -> None:
    """Browsers break lines after hyphens, and `--` at the end of a line is no option."""
    long = "/a-long/path-of/many-folders/plant.model"
    page = html("t", [Paragraph(Code(f"eccaht x --start 'a <b' --exclude PT-101,PT-102 {long}"))])
    (code,) = re.findall(r"<code>(.*?)</code>", page)
    words = ["eccaht", "x", "--start", "&#x27;a", "&lt;b&#x27;", "--exclude"]
    assert code == (
        " ".join(f"<span>{word}</span>" for word in words) + f" <span>PT-101</span>,<wbr><span>PT-102</span> {long}"
    )
    assert re.search(r"code span \{[^}]*white-space: nowrap", page)
    assert Page(page).text.count(f"eccaht x --start 'a <b' --exclude PT-101,PT-102 {long}") == 1
