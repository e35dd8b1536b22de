"""What users write for a problem: noise (a family, a matrix in a file, a model), anomalies and sizes of shifts."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from eccaht.base.presentation.text import unknown
from eccaht.cli.output import FAMILIES, STREAMS
from eccaht.plants import load_model
from eccaht.streams import Covariance, Problem, UnknownShift, families

Number = TypeVar("Number", int, float)
_NUMBER = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_RHO, _KRONECKER = 0.8, 8


def given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def noise_problem(
    model: Path | None, family: str | None, streams: int | None, rho: float | None, search: dict[str, Any]
) -> tuple[Problem, dict[str, Any]]:
    """The problem with the noise of a model or of a family, and how to call that noise."""
    if model is not None:
        if family is not None or streams is not None or rho is not None:
            raise ValueError("--model replaces --family, --streams and --rho: drop one or the other")
        return load_model(model).problem(**search), {"model": str(model)}
    S, called = family_noise(family, streams, rho)
    return Problem(S, **search), called


def family_noise(family: str | None, streams: int | None, rho: float | None) -> tuple[Covariance, dict[str, Any]]:
    """Return the covariance of a family, and its name with the number that shapes it; each has a default."""
    name, size = family or "toeplitz", streams or STREAMS
    if name not in FAMILIES:
        raise unknown(name, FAMILIES, "family", cutoff=0.0)
    if name == "identity":
        if rho is not None:
            raise ValueError("identity has no --rho: drop it")
        return families.identity(size), {"family": name}
    rho = _RHO if rho is None else rho
    called = {"family": name, "rho": rho}
    if name == "kronecker":
        if size % _KRONECKER:
            raise ValueError(f"kronecker needs a multiple of {_KRONECKER} streams, not {size}: change --streams")
        return families.kronecker(rho, shape=(size // _KRONECKER, _KRONECKER)), called
    if name == "exponential":
        if not 0 < rho < 1:
            raise ValueError(f"exponential needs 0 < rho < 1, not {rho!r}: change --rho")
        return families.exponential(size, -1.0 / math.log(rho)), called
    if name == "rbf":
        return families.rbf(size, rho=rho), called
    return getattr(families, name.replace("-", "_"))(size, rho), called


def parse_number(text: str) -> int | tuple[int, int]:
    """Read how many streams are anomalous: N, or LO-HI where the number is not known.

    >>> parse_number("5"), parse_number("0-8"), parse_number("3-3")
    (5, (0, 8), 3)
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"the number of anomalies is a whole number such as 5 or a range such as 0-8, not {text!r}")
    least, most = int(match[1]), int(match[2] or match[1])
    if least > most:
        raise ValueError(f"the number of anomalies {text!r} runs backwards: write {most}-{least}")
    if most < 1:
        raise ValueError(f"the number of anomalies {text!r} leaves nothing to find: the most must be at least 1")
    return least if least == most else (least, most)


def parse_list(text: str, kind: Callable[[str], Number], wrong: str, between: str = ",") -> list[Number]:
    """Read numbers with commas between, or say what is wrong.

    >>> parse_list("0.05, 0.01", float, "no numbers")
    [0.05, 0.01]
    """
    try:
        return [kind(part) for part in text.split(between)]
    except ValueError:
        raise ValueError(wrong) from None


def parse_shift(text: str) -> float | UnknownShift:
    """Read the size of an anomaly: D with its sign, or unknown:SCALE, if need be with :positive or :negative.

    >>> parse_shift("-2.5")
    -2.5
    >>> parse_shift("unknown:3"), parse_shift("unknown:3:positive")
    (UnknownShift(scale=3.0, sign='either'), UnknownShift(scale=3.0, sign='positive'))
    """
    word, *rest = (part.strip() for part in text.split(":"))
    try:
        if word == "unknown":
            return UnknownShift(float(rest[0]), *rest[1:])  # type: ignore[arg-type]
        if math.isfinite(size := float(text)) and size != 0:
            return size
    except (ValueError, IndexError, TypeError):
        pass
    ways = "a number such as 3 or -2.5 that is not 0, or unknown:SCALE such as unknown:3, perhaps with :positive"
    raise ValueError(f"a shift is {ways} or :negative, not {text!r}")
