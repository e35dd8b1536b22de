"""Names that newcomers try first: the error says what to write instead."""

from __future__ import annotations

TYPE_CHECKING = False  # not from typing: the package itself imports this
if TYPE_CHECKING:
    from collections.abc import Mapping


def no_attribute(owner: object, what: str, name: str, hints: Mapping[str, str]) -> AttributeError:
    """The error of a name that is not there, with its hint if it has one; what: the owner in words."""
    hint = f": {hints[name]}" if name in hints else ""
    return AttributeError(f"{what} has no {name!r}{hint}", name=name, obj=owner)
