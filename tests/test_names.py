"""One noun, one meaning: no two public classes have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import eccaht

SOURCE = Path(eccaht.__file__).parent


def test_no_two_public_classes_have_the_same_name() -> None:
    places = defaultdict[str, list[str]](list)
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(SOURCE).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
