"""The tutorials run as notebooks, in order, and print what the pages show."""

import contextlib
import importlib.util
import io
import json
import re
from pathlib import Path

import pytest

from eccaht.streams.policies import CATALOGUE

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.stem for path in (DOCS / "tutorials").glob("*.md"))
PRINTS = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHELL = "wrong-sensors"  # whose commands tests/cli/test_engineers_guide.py runs


def test_the_notebooks_are_those_of_the_pages() -> None:
    """`python docs/notebooks.py` writes them again."""
    spec = importlib.util.spec_from_file_location("notebooks", DOCS / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    notebooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(notebooks)
    there = {path: path.read_text(encoding="utf-8") for path in (DOCS / "notebooks").glob("*.ipynb")}
    assert there == notebooks.written()


@pytest.mark.parametrize("page", [page for page in PAGES if page != SHELL])
def test_a_notebook_prints_what_the_page_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = PRINTS.findall((DOCS / "tutorials" / f"{page}.md").read_text(encoding="utf-8"))
    follows = [*blocks[1:], ("", "")]
    shown = [
        then if kind == "text" else ""
        for (each, _), (kind, then) in zip(blocks, follows, strict=True)
        if each == "python"
    ]
    document = json.loads((DOCS / "notebooks" / f"{page}.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("eccaht.streams.policies.catalogue.CATALOGUE", dict(CATALOGUE))
    names: dict[str, object] = {"__name__": "__main__"}
    for number, (cell, expected) in enumerate(zip(cells, shown, strict=True)):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(cell, f"{page}, cell {number}", "exec"), names)
        assert output.getvalue() == expected, f"cell {number}"
