"""Policies that installed packages declare: entry points of the group `eccaht.policies`.

Metadata are read when a name is not built in or names are listed, and a package is imported when its policy is used or
listed: `import eccaht` depends on neither.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "eccaht.policies"
# names are parts of file names and of lists with commas; "all" and NAME-diagonal mean something else there
_NAME, _TAKEN = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}"), re.compile(r"all|.+-diagonal")


def declared() -> dict[str, tuple[EntryPoint, ...]]:
    """The entry points by name; more than one where packages disagree."""
    return _declared(tuple(sys.path))


@lru_cache(maxsize=1)
def _declared(path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:  # noqa: ARG001 - what is found depends on it
    from importlib.metadata import entry_points  # takes a while to import

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        found[point.name] = (*found.get(point.name, ()), point)
    return found


def load(name: str) -> Any:
    """What the entry point of this name refers to; whatever goes wrong is a ValueError of one line."""
    check_name(name)
    first, *others = declared()[name]
    if others:
        raise ValueError(f"policy {name!r} is declared by {_owners(name)}: uninstall all but one")
    try:
        return first.load()
    except (Exception, SystemExit) as error:  # code of others may end in any way
        raise ValueError(f"{whose(name)} cannot be loaded: {explained(error)}") from error


def may_be_policy(name: object) -> bool:
    """May a policy of the user's own have this name?"""
    return isinstance(name, str) and bool(_NAME.fullmatch(name)) and not _TAKEN.fullmatch(name)


def check_name(name: object) -> None:
    """Refuse a name that no policy of the user's own may have."""
    if not may_be_policy(name):
        rule = "up to 64 of a-z, 0-9, '-', '_' and '.', neither 'all' nor NAME-diagonal"
        raise ValueError(f"{name!r} cannot be the name of a policy: use {rule}")


def whose(name: str) -> str:
    """What to call a declared policy in messages."""
    return f"policy {name!r} of {_owners(name)}"


def explained(error: BaseException) -> str:
    """The kind of an error and its message, in one line.

    >>> explained(KeyError("rho"))
    "KeyError: 'rho'"
    """
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")


def _owners(name: str) -> str:
    return " and ".join(point.dist.name if point.dist else "an unknown package" for point in declared()[name])
