"""Policies of the user's own beside those of the catalogue: how they get their names, and who has which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from eccaht.streams.policies import catalogue, plugins
from eccaht.streams.policies.catalogue import BUILT_IN, Entry, find_entry


def register_policy(name: str, entry: Entry, *, replace: bool = False) -> Entry:
    """Add a policy under a name of its own, for make_policy, compare, check_policy and the command line.

    replace: another policy that was registered under this name gives way, as when a cell of a notebook is run again.
    Returns the entry.

    >>> from eccaht.streams.policies.choosers import compose_joint
    >>> register_policy("joint", Entry("my own joint", "this example", compose_joint))
    Traceback (most recent call last):
    ValueError: policy 'joint' is built in: choose another name
    """
    plugins.check_name(name)
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


@contextmanager
def registered(entries: Mapping[str, Entry]) -> Iterator[None]:
    """Have these policies for a while."""
    for name in entries:
        if name in catalogue.CATALOGUE:
            raise ValueError(f"there is a policy {name!r} already: choose another name")
    try:
        for name, entry in entries.items():
            register_policy(name, entry)
        yield
    finally:
        for name in entries:
            catalogue.CATALOGUE.pop(name, None)


def unusable_policies() -> dict[str, str]:
    """Why policies that installed packages declare cannot be used, by name."""
    found = {}
    for name in plugins.declared():
        if name in BUILT_IN:
            found[name] = f"{plugins.whose(name)} is not used: a policy of this name is built in"
            continue
        try:
            find_entry(name)
        except ValueError as error:
            found[name] = str(error)
    return found
