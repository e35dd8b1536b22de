"""What all suites share: a failure of one line, comparisons that say by how much, and a way to run all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar
from unittest import SkipTest

import numpy as np

from eccaht.base.arrays import Array

Check = Callable[..., None]
Prepare = Callable[..., tuple[Any, ...]]
T = TypeVar("T")


class CheckFailure(AssertionError):
    """A property that every part of this kind must have does not hold; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def require(holds: object, message: str) -> None:
    if not holds:
        raise CheckFailure(message)


def require_equal(found: Any, expected: Any, message: str) -> None:
    """Fail unless two arrays are the same, number by number."""
    a, b = np.asarray(found), np.asarray(expected)
    if a.shape != b.shape:
        raise CheckFailure(f"{message}: shape {a.shape}, expected {b.shape}")
    if not np.array_equal(a, b):
        raise CheckFailure(f"{message}: {_worst(a, b)}")


def require_close(found: Any, expected: Any, message: str, *, rtol: float = 1e-9, atol: float | Array = 1e-9) -> None:
    """Fail unless |found - expected| <= atol + rtol |expected| everywhere."""
    a, b = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if a.shape != b.shape:
        raise CheckFailure(f"{message}: shape {a.shape}, expected {b.shape}")
    wrong = ~(np.abs(a - b) <= atol + rtol * np.abs(b))  # NaN is wrong, too
    if wrong.any():
        raise CheckFailure(f"{message}: {_worst(np.where(wrong, a, b), b)}")


def require_near(found: Any, expected: Any, message: str, tolerance: float = 1e-8) -> None:
    """Fail unless two arrays agree up to this share of the largest number in them, or of 1."""
    scale = max(1.0, float(np.abs(expected).max()))
    require_close(found, expected, message, rtol=tolerance, atol=tolerance * scale)


def require_refused(act: Callable[[], object], message: str, kind: type[Exception] = ValueError) -> None:
    """Fail unless the call raises this kind of error, with a message of one line."""
    try:
        act()
    except kind as error:
        if not str(error).strip() or "\n" in str(error):
            raise CheckFailure(f"{message}, in one line, but it says {str(error)!r:.80}") from error
        return
    except Exception as error:
        raise CheckFailure(f"{message}, but it raises {type(error).__name__}: {error}") from error
    raise CheckFailure(f"{message}, but it is accepted")


def attempt(act: Callable[[], T], what: str) -> T:
    """What a call returns; whatever it raises is a failure of one line."""
    try:
        return act()
    except (CheckFailure, SkipTest):
        raise
    except Exception as error:
        raise CheckFailure(f"{what} ended with {type(error).__name__}: {error}") from error


def require_parts(part: object, names: Iterable[str], what: str) -> None:
    """Fail unless an object has these attributes; what: the words for an object that has not."""
    for name in names:
        there = attempt(partial(hasattr, part, name), f"{name} of {type(part).__name__!r}")
        require(there, f"{what}: {type(part).__name__!r} has no {name}")


def by_name(*checks: Check) -> dict[str, Check]:
    return {check.__name__.removeprefix("_"): check for check in checks}


def single(checks: Mapping[str, Check], prepare: Prepare) -> Iterator[tuple[str, Check]]:
    """Each check with its name, as a function of what `prepare` makes its arguments of."""
    for name in checks:
        yield name, partial(run_one, checks, name, prepare)


def run_one(checks: Mapping[str, Check], name: str, prepare: Prepare, *given: Any) -> None:
    """Run one check; an error that the part itself raises is a failure, too."""
    arguments = prepare(*given)
    attempt(partial(checks[name], *arguments), f"the check of {name!r}")


def run_all(
    checks: Mapping[str, Check], skip: Mapping[str, str] | None, prepare: Prepare, *given: Any
) -> dict[str, str]:
    """Run the checks except those to skip; return the ones that did not apply, with the reason."""
    skipped = dict(skip or {})
    for name in skipped:
        if name not in checks:
            raise ValueError(f"there is no check {name!r}: known are {', '.join(checks)}")
    for name in checks:
        if name not in skipped:
            try:
                run_one(checks, name, prepare, *given)
            except SkipTest as reason:
                skipped[name] = str(reason)
    return skipped


def _worst(a: Array, b: Array) -> str:
    """The place where two arrays differ most."""
    if a.ndim == 0:
        return f"{a[()]} instead of {b[()]}"
    with np.errstate(invalid="ignore"):
        distance = np.where(a == b, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf))
    place = tuple(int(k) for k in np.unravel_index(distance.argmax(), a.shape))
    where = place[0] if len(place) == 1 else place
    return f"{a[place]} instead of {b[place]} at {where}"
