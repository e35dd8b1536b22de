"""One codec for all files: what a class declares of its fields gives its state, and checks and restores one.

A state is plain data: numbers, texts, arrays, lists and further states, by the names of the fields. `files` writes it,
and what it reads again may come from an untrusted sender. So every value is compared with its declaration before it is
used. What no single field can say (that a matrix is positive definite, that sums agree) is for the method
`check_restored(sizes)` of the class, or for the constructor of a class whose objects do not change.

>>> class Counter:
...     FIELDS = (Field("_counts", ("K",), int, high="t"),)
...     def __init__(self):
...         self._counts = np.array([1, 0])
>>> state_of(Counter())
{'counts': array([1, 0])}
>>> restore(Counter(), {"counts": np.array([1, 3])}, {"K": 2, "t": 2})
Traceback (most recent call last):
    ...
ValueError: its counts is damaged: it must hold whole numbers from 0 to 2
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import LARGEST_SUM
from eccaht.base.clock import microseconds
from eccaht.base.files import check_keys

State = dict[str, Any]
Sizes = Mapping[str, int]
Built = TypeVar("Built")
_BOUNDS: dict[type, tuple[float, float]] = {bool: (0, 1), int: (0, 2**53), np.datetime64: (-(2**60), 2**60)}
_LONGEST_TEXT = 100_000  # characters
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_FINITE = {"inf", "-inf", "nan"}  # texts, because JSON has no such numbers
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", re.ASCII)
_SUM = re.compile(r"([A-Za-z_]\w*)([+-]\d+)?")


class Moment:
    """The kind of a time where it may also be the number of a window: a file holds a text or a whole number."""


@dataclass(frozen=True)
class Field:
    """A number, a text, a time or an array of one kind; the name of the attribute, less a leading underscore.

    shape: () for a single value; a length is a number, or one of the sizes that the caller knows, as "K" or "K+1". Any
    other name stands for a length that the first array to use it has. (...,) is any shape.
    kind: float, np.float32, int, bool, str, np.datetime64, Moment, or np.random.Generator, which is restored in place.
    low, high: the range, both included; a number or a size. Of a text, high is the largest length.
    nan: may be NaN where something is missing. optional: may be None, and so may values of a table or a row.
    among: the values that it may have. keyed: is a table, of such values by their names.
    row: makes a row of single values of a list, as texts and moments are (a tuple, unless it is said): a list in files.
    """

    name: str
    shape: tuple[int | str | EllipsisType, ...] = ()
    kind: type = float
    low: float | str | None = None
    high: float | str | None = None
    nan: bool = False
    optional: bool = False
    among: Sequence[Any] = ()
    keyed: bool = False
    row: Callable[[Any], Any] | None = None

    @property
    def key(self) -> str:
        return self.name.lstrip("_")

    @property
    def _is_row(self) -> bool:
        return self.row is not None or self.kind in (str, Moment)

    def stored(self, value: Any) -> Any:
        if self.keyed and value is not None:
            return {key: self._stored(each) for key, each in value.items()}
        return self._stored(value)

    def _stored(self, value: Any) -> Any:
        if value is None:
            return None
        if not self.shape:
            return self._stored_one(value)
        if self._is_row:
            each = [None if one is None else self._stored_one(one) for one in value]
            return sorted(each) if isinstance(value, frozenset) else each
        array = np.asarray(value, dtype="datetime64[us]" if self.kind is np.datetime64 else self.kind)
        return array.astype(np.float64 if array.dtype.kind == "f" else np.int64, copy=False)

    def _stored_one(self, value: Any) -> Any:
        if self.kind is np.random.Generator:
            return value.bit_generator.state
        if self.kind is np.datetime64:
            return microseconds(value)
        if self.kind is Moment:
            return str(value.astype("datetime64[us]")) if isinstance(value, np.datetime64) else int(value)
        if self.kind is float:
            return float(value) if math.isfinite(value) else str(float(value))
        return self.kind(value)

    def checked(self, value: Any, sizes: dict[str, int]) -> Any:
        """The value that was stored so, or a ValueError; sizes: gain the lengths that it is the first to have."""
        if value is None and not self.optional:
            self._refuse("it is missing")
        if not self.keyed or value is None:
            return self._checked(value, sizes)
        if not isinstance(value, dict):
            self._refuse("it must be a table by name")
        return {key: self._checked(each, dict(sizes)) for key, each in value.items()}

    def _checked(self, value: Any, sizes: dict[str, int]) -> Any:
        if not self.shape or (value is None and self.optional):
            return self._checked_one(value, sizes)
        if not self._is_row:
            return self._checked_array(value, sizes)
        if not isinstance(value, list):
            self._refuse("it must be a list")
        self._fit((len(value),), sizes)
        return (self.row or tuple)([self._checked_one(each, sizes) for each in value])

    def _checked_one(self, value: Any, sizes: Sizes) -> Any:
        if value is None and self.optional:
            return None
        if self.among and not any(type(value) is type(each) and value == each for each in self.among):
            self._refuse(f"{value!r:.40} is no value for it")
        if self.kind is Moment and type(value) is str:
            return np.datetime64(value, "us") if _TIME.fullmatch(value) else self._refuse("it is no time")
        if self.kind is bool or self.kind is str:
            good = type(value) is self.kind and (self.kind is bool or self._can_be_shown(str(value)))
            return value if good else self._refuse(f"{value!r:.40} is no value for it")
        if self.kind is float and type(value) is str and value in _NOT_FINITE:
            value = float(value)
        if type(value) is not int and not (type(value) is float and self.kind is float):
            self._refuse(f"it must be a {'number' if self.kind is float else 'whole number'}, not {value!r:.40}")
        low, high = self._range(sizes)
        if not (low <= value <= high or (self.nan and math.isnan(value))):
            self._refuse(f"it must lie between {low:g} and {high:g}, and is {value!r:.40}")
        if self.kind is np.datetime64:
            return np.datetime64(value, "us")
        return float(value) if self.kind is float else value

    def _can_be_shown(self, text: str) -> bool:
        """Is it short enough, and without characters that a terminal or a page could not show as they are?"""
        longest = _LONGEST_TEXT if self.high is None else self.high
        assert not isinstance(longest, str)
        return len(text) <= longest and not _CONTROL.search(text)

    def _checked_array(self, value: Any, sizes: dict[str, int]) -> NDArray[Any]:
        dtype = np.dtype("datetime64[us]" if self.kind is np.datetime64 else self.kind)
        stored = np.dtype(np.float64 if dtype.kind == "f" else np.int64)
        what = "numbers" if stored.kind == "f" else "whole numbers"
        if not isinstance(value, np.ndarray) or value.dtype != stored:
            self._refuse(f"it must be an array of {what}")
        if self.shape != (...,):
            self._fit(value.shape, sizes)
        low, high = self._range(sizes)
        inside = (value >= low) & (value <= high)
        if self.nan:
            inside |= np.isnan(value)
        if not inside.all():
            self._refuse(f"it must hold {what} from {low:g} to {high:g}")
        return value.astype(dtype, copy=False)

    def _range(self, sizes: Sizes) -> tuple[float, float]:
        usual = _BOUNDS.get(self.kind, (-LARGEST_SUM, LARGEST_SUM))
        low, high = (
            known if given is None else _size(given, sizes) if isinstance(given, str) else given
            for given, known in zip((self.low, self.high), usual, strict=True)
        )
        return low, high

    def _fit(self, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
        good = len(shape) == len(self.shape)
        for length, wanted in zip(shape, self.shape, strict=False):
            if isinstance(wanted, str) and wanted.isidentifier():
                wanted = sizes.setdefault(wanted, length)
            good = good and length == (_size(wanted, sizes) if isinstance(wanted, str) else wanted)
        if not good:
            self._refuse(f"its shape is {shape}, not ({', '.join(map(str, self.shape))})")

    def _refuse(self, why: str) -> Any:
        raise ValueError(f"its {self.key} is damaged: {why}")


@dataclass(frozen=True)
class Part:
    """An object that has fields of its own.

    kind: the class, of which it is built anew; without it the object, or None, is there already and restored in place.
    many: is it a list of such objects? fields: those of the class, where it does not declare them itself.
    """

    name: str
    kind: Callable[..., Any] | None = None
    optional: bool = False
    many: bool = False
    fields: tuple[Field | Part, ...] = ()

    @property
    def key(self) -> str:
        return self.name.lstrip("_")

    def stored(self, value: Any) -> Any:
        if self.many:
            return [state_of(each, self.fields) for each in value]
        return None if value is None else state_of(value, self.fields)

    def restored(self, holder: Any, state: Any, sizes: Sizes) -> None:
        if self.kind is None:
            there = getattr(holder, self.name)
            if there is not None:
                restore(there, state, sizes, self.fields, self.key)
            elif state is not None:
                raise ValueError(f"its {self.key} is damaged: it must be missing")
        else:
            setattr(holder, self.name, self.checked(state, dict(sizes)))

    def checked(self, state: Any, sizes: dict[str, int]) -> Any:
        assert self.kind is not None
        if state is None and self.optional:
            return None
        if not self.many:
            return built(self.kind, state, sizes, self.fields, self.key)
        if not isinstance(state, list):
            raise ValueError(f"its {self.key} is damaged: it must be a list")
        return tuple(built(self.kind, each, sizes, self.fields, self.key) for each in state)


Fields = tuple[Field | Part, ...]


def state_of(value: Any, fields: Fields = ()) -> State:
    """The fields of an object; arrays are not copied."""
    return {field.key: field.stored(getattr(value, field.name)) for field in fields or value.FIELDS}


def restore(value: Any, state: Any, sizes: Sizes, fields: Fields = (), what: str = "state") -> None:
    """Give an object the state that one of the same kind had, or raise a ValueError that names the field."""
    fields, known = fields or value.FIELDS, dict(sizes)
    check_keys(state, {field.key for field in fields}, what)
    for field in fields:
        if isinstance(field, Part):
            field.restored(value, state[field.key], known)
        elif field.kind is np.random.Generator:
            _restore_generator(getattr(value, field.name), state[field.key])
        else:
            setattr(value, field.name, field.checked(state[field.key], known))
    if hasattr(value, "check_restored"):
        value.check_restored(known)


def built(kind: Callable[..., Built], state: Any, sizes: Sizes, fields: Fields = (), what: str = "state") -> Built:
    """A new object of a class whose arguments are its fields."""
    fields, known = fields or kind.FIELDS, dict(sizes)  # type: ignore[attr-defined]
    check_keys(state, {field.key for field in fields}, what)
    value = kind(**{field.name: field.checked(state[field.key], known) for field in fields})
    if hasattr(value, "check_restored"):
        value.check_restored(known)
    return value


def settle(value: Any, sizes: Sizes | None = None) -> None:
    """Check the fields of an object that does not change, and make its arrays read-only copies of their kind."""
    known = dict(sizes or {})
    for field in value.FIELDS:
        given = getattr(value, field.name)
        if isinstance(field, Field):
            found = field.checked(deepcopy(field.stored(given)), known)
            if isinstance(found, np.ndarray):
                found.setflags(write=False)
                object.__setattr__(value, field.name, found)


def _size(text: str, sizes: Sizes) -> int:
    """A size, and what is added to it.

    >>> _size("K+1", {"K": 3})
    4
    """
    match = _SUM.fullmatch(text)
    assert match is not None
    return sizes[match[1]] + int(match[2] or 0)


def _restore_generator(rng: np.random.Generator, saved: Any) -> None:
    """Drawing changes nothing but the inner state of a generator, and the half of a number that may be left over."""
    fresh: Any = rng.bit_generator.state
    good = isinstance(saved, dict) and set(saved) == set(fresh) and isinstance(saved["state"], dict)
    good = good and saved["bit_generator"] == fresh["bit_generator"] and set(saved["state"]) == set(fresh["state"])
    if not good or saved["state"]["inc"] != fresh["state"]["inc"]:
        raise ValueError("its generator is not the one of its seed")
    limits = {1 << 128: saved["state"]["state"], 2: saved["has_uint32"], 1 << 32: saved["uinteger"]}
    if not all(type(number) is int and 0 <= number < limit for limit, number in limits.items()):
        raise ValueError("the state of its generator is damaged")
    rng.bit_generator.state = saved
