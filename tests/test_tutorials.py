"""The tutorials run as printed, in order, and print what they show."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from eccaht.streams.policies import CATALOGUE

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
PAGES = sorted(path.name for path in TUTORIALS.glob("*.md"))
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_there_are_three_of_them() -> None:
    assert PAGES == ["first-search.md", "your-own-plant.md", "your-own-policy.md"]


@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_prints_what_it_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (TUTORIALS / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("eccaht.streams.policies.catalogue.CATALOGUE", dict(CATALOGUE))
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""  # by the block before
    for number, (kind, block) in enumerate(BLOCK.findall(text)):
        if kind == "text":
            assert printed == block, f"block {number}"
            printed = ""
            continue
        assert printed == "", f"block {number - 1} prints what the page does not show"
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(block, f"{page}, block {number}", "exec"), names)
        printed = output.getvalue()
    assert printed == ""
