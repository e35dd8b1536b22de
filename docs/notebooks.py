"""The tutorials as notebooks, from the same text: `python docs/notebooks.py` writes docs/notebooks/*.ipynb again."""

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TUTORIALS, NOTEBOOKS = HERE / "tutorials", HERE / "notebooks"
BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+://|#)([^)]+)\)")


def notebook(text: str) -> dict[str, Any]:
    """A page as a notebook: python and sh blocks are cells, and texts what they print, as the tests of pages prove."""
    cells: list[dict[str, Any]] = []
    end = ran = 0
    for found in BLOCK.finditer(text):
        cells.append(_cell("markdown", LINK.sub(r"](../tutorials/\1)", text[end : found.start()]), len(cells)))
        end = found.end()
        if found[1] != "text":
            ran += 1
            cells.append(_cell("code", ("%%sh\n" if found[1] == "sh" else "") + found[2], len(cells)))
            cells[-1]["execution_count"] = ran
        elif last := [cell for cell in cells if cell["cell_type"] == "code"][-1:]:
            printed = found[2].splitlines(keepends=True)
            last[0]["outputs"] = [{"name": "stdout", "output_type": "stream", "text": printed}]
    cells.append(_cell("markdown", LINK.sub(r"](../tutorials/\1)", text[end:]), len(cells)))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": [cell for cell in cells if cell["source"]],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell(kind: str, source: str, number: int) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return cell | {"source": source.strip("\n").splitlines(keepends=True)}


def written() -> dict[Path, str]:
    """Every notebook as it should be on disk."""
    pages = sorted(TUTORIALS.glob("*.md"))
    documents = {page.stem: notebook(page.read_text(encoding="utf-8")) for page in pages}
    return {
        NOTEBOOKS / f"{name}.ipynb": json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        for name, document in documents.items()
    }


def main() -> None:
    """Write them."""
    NOTEBOOKS.mkdir(exist_ok=True)
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
