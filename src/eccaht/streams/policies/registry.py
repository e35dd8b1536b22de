"""Policies of the user's own beside those of the catalogue: how they get their names, and who has which."""

from __future__ import annotations

import re
from collections.abc import Mapping

from eccaht.streams.policies import catalogue
from eccaht.streams.policies.catalogue import BUILT_IN, Entry

# names are parts of file names and of lists with commas; "all" and NAME-diagonal mean something else there
_NAME = re.compile(r"(?!all$)(?!.+-diagonal$)[a-z0-9][a-z0-9._-]{0,63}")


def register_policy(name: str, entry: Entry, *, replace: bool = False) -> Entry:
    """Add a policy under a name of its own, for make_policy, compare and check_policy.

    replace: another policy that was registered under this name gives way, as when a cell of a notebook is run again.
    Returns the entry.

    >>> from eccaht.streams.policies.choosers import compose_joint
    >>> register_policy("joint", Entry("my own joint", "this example", compose_joint))
    Traceback (most recent call last):
    ValueError: policy 'joint' is built in: choose another name
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        rule = "up to 64 of a-z, 0-9, '-', '_' and '.', neither 'all' nor NAME-diagonal"
        raise ValueError(f"{name!r} cannot be the name of a policy: use {rule}")
    if not isinstance(entry, Entry):
        raise ValueError(f"policy {name!r} must be an Entry, not {type(entry).__name__}: from_ask_tell makes one")
    if name in BUILT_IN:
        raise ValueError(f"policy {name!r} is built in: choose another name")
    if not replace and catalogue.CATALOGUE.get(name, entry) != entry:
        raise ValueError(f"policy {name!r} is registered already: choose another name, or add replace=True")
    catalogue.CATALOGUE[name] = entry
    return entry


def own_entries() -> dict[str, Entry]:
    """The policies that were registered in this process, by name."""
    return {name: entry for name, entry in catalogue.CATALOGUE.items() if name not in BUILT_IN}


def set_own_entries(entries: Mapping[str, Entry]) -> None:
    """Have these and no other policies of the user's own, as another process has them."""
    for name in own_entries():
        del catalogue.CATALOGUE[name]
    catalogue.CATALOGUE.update(entries)
