"""Names that users call say what they are; others need a docstring only where it adds something."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import eccaht


def public() -> Iterator[tuple[str, Any]]:
    """Every name of the package, those of its public modules included, and the members of its classes."""
    for name in eccaht.__all__:
        found = getattr(eccaht, name)
        if isinstance(found, ModuleType):
            inside = getattr(found, "__all__", ())
            yield from ((f"{name}.{each}", getattr(found, each)) for each in inside)
        else:
            yield name, found


def members(name: str, found: Any) -> Iterator[tuple[str, Any]]:
    """A class and its public methods and properties, or a function."""
    yield name, found
    if inspect.isclass(found):
        for each, member in inspect.getmembers_static(found):
            if not each.startswith("_") and (
                isinstance(member, property | staticmethod | classmethod) or inspect.isfunction(member)
            ):
                yield f"{name}.{each}", getattr(found, each)


@pytest.mark.parametrize(("name", "found"), list(public()), ids=lambda each: each if isinstance(each, str) else "")
def test_a_public_name_says_what_it_is(name: str, found: Any) -> None:
    silent = [
        each
        for each, member in members(name, found)
        if callable(member) | isinstance(member, property) and not inspect.getdoc(member)
    ]
    assert silent == []
