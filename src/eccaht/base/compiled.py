"""Inner loops that are compiled where numba is installed (`pip install eccaht[fast]`); numpy stays the reference.

A compiled loop does the same additions and multiplications in the same order as the numpy expression beside it and
leaves functions such as exp and products of matrices to numpy, so that every bit is the same: a search does not depend
on which of the two runs, and may change from one to the other on its way.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, cast

__all__ = ["Loops", "compiled"]

_VARIABLE = "ECCAHT_COMPILED"  # 0: never, 1: from the first call
_PATIENCE = 4000  # calls, some 100 steps of a search: loading numba takes longer than these

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Loops:
    """A module of compiled loops, loaded once they pay: a call returns it, or None where numpy is to be used."""

    def __init__(self, name: str) -> None:
        self._name, self._calls = name, 0
        self._module: ModuleType | None = None

    def __call__(self) -> Any:
        if self._module is None and _wanted():
            self._calls += 1
            if self._calls > _PATIENCE or os.environ.get(_VARIABLE) == "1":
                self._module = import_module(self._name)
        return self._module


@cache
def _wanted() -> bool:
    return os.environ.get(_VARIABLE) != "0" and find_spec("numba") is not None


def compiled(loop: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a loop at its first call and keep the machine code beside the source; as it is where numba is not."""
    if not _wanted():
        return loop
    compiler: Any = import_module("numba").njit
    try:
        return cast("Callable[_P, _R]", compiler(cache=True, error_model="numpy")(loop))
    except RuntimeError:  # no folder to keep it in
        return cast("Callable[_P, _R]", compiler(error_model="numpy")(loop))
