"""The door of a floor: names of its rooms, found there when they are first asked for.

A floor exports what its rooms export (their `__all__`). Nothing is imported before it is used, because the command
line must be ready for Ctrl-C, and a search able to start, without what only others need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module


def open_rooms(floor: str, rooms: Sequence[str]) -> Callable[[str], object]:
    """What a floor's `__init__` has as `__getattr__`; rooms from below, so that a name loads as little as possible."""

    def find(name: str) -> object:
        if name not in rooms and not name.startswith("_"):  # rooms are found by the import itself
            for room in rooms:
                module = import_module(f"{floor}.{room}")
                if name in module.__all__:
                    return getattr(module, name)
        raise AttributeError(f"module {floor!r} has no attribute {name!r}")

    return find
