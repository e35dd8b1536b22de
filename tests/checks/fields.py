"""States damaged field by field, generated from the declarations of their classes."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from eccaht.base.codec import Field, Fields, Moment, Part, State


def damages(value: Any, state: State, sizes: Mapping[str, int], fields: Fields = ()) -> Iterator[tuple[str, State]]:
    """Each state that differs from a sound one in one field, as its declaration forbids, with what was done."""
    yield "an unknown field", {**state, "more": 1}
    for field in fields or value.FIELDS:
        rest, sound = {key: each for key, each in state.items() if key != field.key}, state[field.key]
        yield f"no {field.key}", rest
        wrong = _wrong_part(value, field, sound, sizes) if isinstance(field, Part) else _wrong(field, sound, sizes)
        for how, other in wrong:
            yield f"{field.key} {how}", {**rest, field.key: other}


def _wrong_part(holder: Any, part: Part, sound: Any, sizes: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
    yield "is a number", 3
    inner = getattr(holder, part.name)
    if part.many:
        for how, other in damages(inner[0], sound[0], sizes, part.fields) if inner else ():
            yield how, [other, *sound[1:]]
    elif inner is not None:
        yield from damages(inner, sound, sizes, part.fields)


def _wrong(field: Field, sound: Any, sizes: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
    if not field.optional:
        yield "missing", None
    if field.shape == (...,):
        return
    if sound is None or field.kind is np.random.Generator:
        yield "of another kind", {}
    elif field.keyed:
        yield "no table", 3
        yield "with a list in it", {"x": []}
    elif not field.shape:
        yield from _wrong_single(field)
    elif isinstance(sound, list):
        yield "no list", 3
        if sound:
            yield from ((how, [other, *sound[1:]]) for how, other in _wrong_single(field))
        if any(isinstance(length, int) or not str(length).isidentifier() for length in field.shape):
            yield "truncated", sound[:-1]
    else:
        yield from _wrong_array(field, sound, sizes)


def _wrong_single(field: Field) -> Iterator[tuple[str, Any]]:
    yield "a list", []
    if field.kind is str:
        yield "a number", 3
        if field.among:
            yield "another text", "nothing"
        return
    yield "a text", "nothing"
    if field.kind is bool:
        yield "a number", 1
    elif field.kind in (Moment, np.datetime64):
        yield "half a number", 0.5
    else:
        yield from (("beyond", number) for number in _beyond(field))
        if field.kind is int:
            yield "half a number", 0.5
        elif not field.nan:
            yield "NaN", "nan"


def _wrong_array(field: Field, sound: Any, sizes: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
    yield "a list", [1.0]
    yield "of another dtype", np.zeros(sound.shape, np.int64 if sound.dtype.kind == "f" else np.float64)
    yield "of one dimension more", sound[None]
    for axis, length in enumerate(field.shape):
        if isinstance(length, int) or not str(length).isidentifier() or length in sizes:
            yield "truncated", sound[(slice(None),) * axis + (slice(-1),)]
    if sound.size:
        numbers = [*_beyond(field), *([math.nan] if sound.dtype.kind == "f" and not field.nan else [])]
        for number in numbers:
            other = sound.copy()
            other.flat[-1] = number
            yield f"with {number}", other


def _beyond(field: Field) -> list[float]:
    """Numbers that are too small or too large, whatever the sizes."""
    low, high = field._range(dict.fromkeys(("K", "n", "t"), 100))
    unit = 1 if field.kind in (int, bool, np.datetime64) else max(abs(low), abs(high), 1.0)
    return [number for number in (low - unit, high + unit) if not math.isnan(number) and math.isfinite(number)]


def same(one: Any, other: Any) -> bool:
    """Are two states the same, bit for bit?"""
    if isinstance(one, np.ndarray):
        alike = isinstance(other, np.ndarray) and one.dtype == other.dtype and one.shape == other.shape
        return alike and one.tobytes() == other.tobytes()
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and type(one) is type(other)
