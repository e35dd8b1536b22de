"""What a caller may do, in four words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from eccaht.base.naming import did_you_mean

Scope = Literal["read", "operate", "ingest", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
_INCLUDED: dict[str, frozenset[str]] = {
    "read": frozenset({"read"}),
    "operate": frozenset({"read", "operate"}),
    "ingest": frozenset({"ingest"}),
    "admin": frozenset(SCOPES),
}


def checked(scopes: Iterable[str]) -> tuple[str, ...]:
    """Scopes in their usual order, each once; unknown ones and none at all are refused.

    >>> checked(["operate", "read", "read"])
    ('read', 'operate')
    """
    given = set(scopes)
    for scope in sorted(given - {*SCOPES}):
        instead = did_you_mean(scope, SCOPES, otherwise=f": scopes are {', '.join(SCOPES)}")
        raise ValueError(f"there is no scope {scope!r}{instead}")
    if not given:
        raise ValueError(f"a token without a scope opens nothing: give one or more of {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in given)


def allows(granted: Iterable[str], needed: str) -> bool:
    """Whether these scopes open what needs that one, or "any"; a word that is no scope opens nothing.

    >>> allows(["operate"], "read"), allows(["operate"], "ingest"), allows(["admin"], "ingest")
    (True, False, True)
    """
    return any(needed in {"any", *_INCLUDED[scope]} for scope in granted if scope in _INCLUDED)
