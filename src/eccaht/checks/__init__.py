"""Conformance suites that users run on their own parts."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eccaht.checks.posterior import check_posterior
    from eccaht.checks.source import check_source

_PLACES = {"check_posterior": "posterior", "check_source": "source"}

__all__ = ["check_posterior", "check_source"]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
