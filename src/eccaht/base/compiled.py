"""Inner loops that are compiled where numba is installed (`pip install eccaht[fast]`); numpy stays the reference.

A compiled loop does the same additions and multiplications in the same order as the numpy expression beside it and
leaves functions such as exp and products of matrices to numpy, so that every bit is the same: a search does not depend
on which of the two runs, and may change from one to the other on its way.
"""

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, cast

from eccaht.base.arrays import Array

__all__ = ["LONGEST_SUM", "Loops", "compiled", "sum_of"]

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


LONGEST_SUM = 128  # numbers that numpy adds up with eight sums side by side; more are split in two


@compiled
def sum_of(terms: Array, count: int) -> float:
    """The first `count` terms, up to 128, added up in numpy's order."""
    if count < 8:
        total = 0.0
        for k in range(count):
            total += terms[k]
        return total
    a, b, c, d = terms[0], terms[1], terms[2], terms[3]
    e, f, g, h = terms[4], terms[5], terms[6], terms[7]
    whole = count - count % 8
    for k in range(8, whole, 8):
        a += terms[k]
        b += terms[k + 1]
        c += terms[k + 2]
        d += terms[k + 3]
        e += terms[k + 4]
        f += terms[k + 5]
        g += terms[k + 6]
        h += terms[k + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for k in range(whole, count):
        total += terms[k]
    return total
