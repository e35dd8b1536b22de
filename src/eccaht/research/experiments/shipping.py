"""The user's own policies and problems on their way to workers, which start with the built-in ones alone.

Functions and classes of a script, of a notebook and of files that are not installed are sent as they are now; a worker
would import an older state of them, or not find them. Those of installed packages are sent by name and imported there.
"""

from __future__ import annotations

import os
import pickle
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from threading import Lock
from types import ModuleType
from typing import NoReturn
from uuid import uuid4

from eccaht.streams.policies.catalogue import Entry
from eccaht.streams.policies.plugins import explained
from eccaht.streams.policies.registry import own_entries, set_own_entries

try:
    import cloudpickle  # type: ignore[import-untyped]
except ImportError:  # joblib before 1.6 brings it along
    from joblib.externals import cloudpickle  # type: ignore[import-untyped]

_HERE = uuid4().hex  # of this process: workers of some backends are threads of it
_ONE_AT_A_TIME = Lock()
_STANDARD = f"{sysconfig.get_path('stdlib')}{os.sep}"
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


def packed_policies() -> bytes:
    """All policies of the user's own, for `learn`; one that cannot be sent is refused where a worker needs it."""
    own = own_entries()
    if not own:
        return pickle.dumps((_HERE, {}))
    with _sent_as_they_are():
        return pickle.dumps((_HERE, {name: _packed(name, entry) for name, entry in own.items()}))


def packed_plan(plan: object) -> bytes:
    """What work needs to know, for `pickle.loads`; constraints and covariances in it may be the user's own."""
    with _sent_as_they_are():
        return bytes(cloudpickle.dumps(plan))


def learn(packed: bytes) -> None:
    """Have the policies of the process that packed them, and no others."""
    with _ONE_AT_A_TIME:  # dask runs several pieces of work in one process
        _take(packed)


@lru_cache(maxsize=1)
def _take(packed: bytes) -> None:
    home, own = pickle.loads(packed)
    if home != _HERE:
        set_own_entries({})  # a package that is imported now may register its own again
        set_own_entries({name: _unpacked(name, each) for name, each in own.items()})


def _packed(name: str, entry: Entry) -> bytes:
    try:
        return bytes(cloudpickle.dumps(entry))
    except Exception as error:  # whatever its parts raise
        reason = f"policy {name!r} cannot be sent to other processes ({explained(error)}): use one job"
        return pickle.dumps(replace(entry, compose=partial(_refuse, reason)))


def _unpacked(name: str, packed: bytes) -> Entry:
    try:
        entry: Entry = pickle.loads(packed)
    except Exception as error:
        reason = f"policy {name!r} cannot be loaded by a worker ({explained(error)}): install its package there"
        return Entry("", "", partial(_refuse, reason))
    return entry


def _refuse(reason: str, problem: object, **options: object) -> NoReturn:  # noqa: ARG001
    raise ValueError(reason)


@contextmanager
def _sent_as_they_are() -> Iterator[None]:
    """Let functions and classes of modules that are not installed be sent themselves instead of their names."""
    known = cloudpickle.list_registry_pickle_by_value()
    chosen = [module for name, module in list(sys.modules.items()) if _is_users(name, module) and name not in known]
    for module in chosen:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in chosen:
            cloudpickle.unregister_pickle_by_value(module)


def _is_users(name: str, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    named = getattr(module, "__name__", None) == name  # what is in sys.modules need not be a module
    if not isinstance(file, str) or not named or name.partition(".")[0] == "eccaht":
        return False
    return not file.startswith(_STANDARD) and not any(folder in file for folder in _INSTALLED)
