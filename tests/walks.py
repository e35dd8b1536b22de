"""Which files of the package a piece of work enters: the length of a walk through the code."""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import eccaht

SOURCE = Path(eccaht.__file__).parent
DOORS = str(SOURCE / "base" / "doors.py")
FLOORS = ("cli", "service", "plants", "streams", "base")


@contextmanager
def traced() -> Iterator[dict[str, int]]:
    """Fill a table with the files whose functions were entered, in the order of the first entry, and how often.

    Module and class bodies and import hooks are left out: they run at the import, whoever asks for it. All threads
    are followed.
    """
    entered: dict[str, int] = {}
    root = str(SOURCE)

    def follow(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        function = code.co_flags & 0x2 and code.co_name != "find_spec" and code.co_filename != DOORS  # 0x2: has locals
        if event == "call" and function and (file := code.co_filename).startswith(root):
            entered[file] = entered.get(file, 0) + 1

    threading.setprofile(follow)
    sys.setprofile(follow)
    try:
        yield entered
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def walked(entered: dict[str, int]) -> list[str]:
    """The files of a walk below the package, in the order of the first entry."""
    return [Path(file).relative_to(SOURCE).as_posix() for file in entered]


def purpose(file: str) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse((SOURCE / file).read_text())) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def table(walks: Mapping[str, Sequence[str]]) -> list[str]:
    """One row a file, floor by floor, with its place in each walk; for docs/reference/walks.md."""
    files = sorted(
        {file for walk in walks.values() for file in walk}, key=lambda file: (FLOORS.index(file.split("/")[0]), file)
    )
    head = ["| file | what it does | " + " | ".join(walks) + " |", "|---|---|" + "---:|" * len(walks)]
    rows = []
    for file in files:
        places = [str(walk.index(file) + 1) if file in walk else "" for walk in walks.values()]
        rows.append(f"| `{file}` | {purpose(file)} | " + " | ".join(places) + " |")
    total = " | ".join(f"**{len(walk)}**" for walk in walks.values())
    return [*head, *rows, f"| | files in all | {total} |"]
