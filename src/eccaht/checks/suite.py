"""What all suites share: a failure of one line, a comparison that says by how much, and a way to run all checks."""

from collections.abc import Callable, Mapping
from typing import Any
from unittest import SkipTest

import numpy as np

Check = Callable[..., None]


class CheckFailure(AssertionError):
    """A property that every part of this kind must have does not hold; the message is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def require(holds: object, message: str) -> None:
    if not holds:
        raise CheckFailure(message)


def require_close(found: Any, expected: Any, message: str, tolerance: float = 1e-9, scale: float = 1.0) -> None:
    """Fail unless |found - expected| <= tolerance (scale + |expected|) everywhere; NaN equals nothing."""
    a, b = np.asarray(found, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    require(a.shape == b.shape, f"{message}: shape {a.shape}, expected {b.shape}")
    with np.errstate(invalid="ignore"):
        excess = np.where(a == b, -np.inf, np.abs(a - b) - tolerance * (scale + np.abs(b)))
    wrong = ~(excess <= 0.0)
    if wrong.any():
        place = np.unravel_index(np.where(np.isnan(excess), np.inf, excess).argmax(), a.shape)
        where = f" at {', '.join(map(str, place))}" if place else ""
        raise CheckFailure(f"{message}: {a[place]} instead of {b[place]}{where}")


def require_equal(found: Any, expected: Any, message: str) -> None:
    """Fail unless two arrays are the same, number by number."""
    require_close(found, expected, message, tolerance=0.0)


def require_near(found: Any, expected: Any, message: str, tolerance: float = 1e-8) -> None:
    """Fail unless two arrays agree up to this share of the largest number in them, or of 1."""
    require_close(found, expected, message, tolerance, scale=max(1.0, float(np.abs(expected).max())))


def require_refused(act: Callable[..., object], *arguments: Any, message: str, **options: Any) -> None:
    """Fail unless the call raises a ValueError of one line."""
    try:
        act(*arguments, **options)
    except ValueError as error:
        one_line = str(error).strip() and "\n" not in str(error)
        require(one_line, f"{message}, in one line, but it says {str(error)!r:.80}")
    else:
        raise CheckFailure(f"{message}, but it is accepted")


def by_name(*checks: Check) -> dict[str, Check]:
    return {check.__name__.removeprefix("_"): check for check in checks}


def run_all(checks: Mapping[str, Check], skip: Mapping[str, str] | None, *arguments: Any) -> dict[str, str]:
    """Run the checks except those to skip; return the ones that did not apply, with the reason."""
    skipped = dict(skip or {})
    for name in skipped:
        if name not in checks:
            raise ValueError(f"there is no check {name!r}: known are {', '.join(checks)}")
    for name, check in checks.items():
        if name not in skipped:
            try:
                check(*arguments)
            except SkipTest as reason:
                skipped[name] = str(reason)
    return skipped
