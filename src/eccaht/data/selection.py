"""Choosing columns by name."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from eccaht.data.sniffing import Layout, short_name
from eccaht.naming import did_you_mean


def matching(layout: Layout, wanted: Sequence[str], option: str) -> list[int]:
    """The places of the columns with these names, in the order of the file; * and ? stand for any characters.

    Both the name as the file has it and its short form are understood, and several names with commas between them.
    A name that fits nothing is refused.
    """
    found: set[int] = set()
    for name in wanted:
        place = place_of(layout, name)
        places = [place] if place is not None else _fitting(layout, name)
        if not places and "," in name:
            places = matching(layout, [part.strip() for part in name.split(",") if part.strip()], option)
        if not places:
            raise ValueError(f"{option}: {layout.path} has no column {name!r}{did_you_mean(name, layout.names)}")
        found.update(places)
    return sorted(found)


def place_of(layout: Layout, name: str) -> int | None:
    """The place of one column, called by its name, its full name or the last part of that; None if there is none."""
    for names in (layout.names, layout.full):
        if name in names:
            return names.index(name)
    shorts = [short_name(full) for full in layout.full]
    return shorts.index(short_name(name)) if shorts.count(short_name(name)) == 1 else None


def _fitting(layout: Layout, pattern: str) -> list[int]:
    return [k for k, name in enumerate(layout.names) if fnmatchcase(name, pattern)]
