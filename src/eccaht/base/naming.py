"""The message for an unknown name: it suggests the nearest known one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: object, known: Iterable[str], *, cutoff: float = 0.4) -> str | None:
    """The known name that is most like this one; None if none is like it.

    >>> nearest("ecc-ath", ["joint", "ecc-aht"]), nearest("xyz", ["joint"])
    ('ecc-aht', None)
    """
    near = get_close_matches(str(name), list(known), n=1, cutoff=cutoff)
    return near[0] if near else None


def did_you_mean(name: object, known: Iterable[str], *, otherwise: str = "", cutoff: float = 0.4) -> str:
    """How a message about an unknown name goes on: the nearest known one, or what is to be said otherwise.

    >>> did_you_mean("tmep", ["temp", "flow"]), did_you_mean("xyz", ["temp"])
    (": did you mean 'temp'?", '')
    """
    near = nearest(name, known, cutoff=cutoff)
    return otherwise if near is None else f": did you mean {near!r}?"


def unknown(name: object, known: Iterable[str], what: str, *, cutoff: float = 0.4) -> ValueError:
    """The error for a name that is none of the known ones, which it lists.

    >>> unknown("fgi1", ["fig1", "fig2"], "experiment")
    ValueError("unknown experiment 'fgi1': did you mean 'fig1'? known: fig1, fig2")
    """
    known = list(known)
    hint = did_you_mean(name, known, otherwise=":", cutoff=cutoff)
    return ValueError(f"unknown {what} {name!r}{hint} known: {', '.join(known)}")
