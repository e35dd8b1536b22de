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
from functools import lru_cache
from threading import Lock
from types import ModuleType
from uuid import uuid4

from eccaht.base.presentation.text import explained
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
    """All policies of the user's own, for `learn`."""
    return packed((_HERE, own_entries()))


def packed(work: object) -> bytes:
    """What work needs to know, for `pickle.loads`; constraints and covariances in it may be the user's own."""
    with _sent_as_they_are():
        try:
            return bytes(cloudpickle.dumps(work))
        except Exception as error:  # whatever its parts raise
            raise ValueError(f"a part cannot be sent to other processes ({explained(error)}): use one job") from error


def learn(policies: bytes) -> None:
    """Have the policies of the process that packed them, and no others."""
    with _ONE_AT_A_TIME:  # dask runs several pieces of work in one process
        _take(policies)


@lru_cache(maxsize=1)
def _take(policies: bytes) -> None:
    try:
        home, own = pickle.loads(policies)
    except Exception as error:
        raise ValueError(f"a worker cannot load your policies ({explained(error)}): install them there") from error
    if home != _HERE:
        set_own_entries(own)


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
