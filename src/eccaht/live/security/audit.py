"""Who did what, when, to which plant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from eccaht.live.store import schema
from eccaht.live.store.store import now

COMMAND_LINE = "command line"
_SECRET = re.compile(r"password|passphrase|secret|token|credential", re.IGNORECASE)
_URL = re.compile(r"(://[^/@:\s]*:)[^/@\s]*@")


def record(
    connection: sa.Connection,
    who: str,
    action: str,
    *,
    plant: str | None = None,
    document: Mapping[str, Any] | None = None,
    at: int | None = None,
) -> None:
    """Add an action, in the transaction of what was done, so that neither is there without the other."""
    row = {"at": now() if at is None else at, "who": who, "action": action, "plant": plant}
    connection.execute(sa.insert(schema.audit).values(**row, document=dict(document or {})))


def masked(value: Any, name: str = "") -> Any:
    """A document without its secrets, for those who may read what was done but not log in elsewhere.

    >>> masked({"password": "x", "url": "postgresql://anna:x@host/db", "sasl.password": "x", "topic": "t"})
    {'password': '***', 'url': 'postgresql://anna:***@host/db', 'sasl.password': '***', 'topic': 't'}
    """
    if isinstance(value, dict):
        return {key: masked(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [masked(inner, name) for inner in value]
    if _SECRET.search(name) and value is not None:
        return "***"
    return _URL.sub(r"\1***@", value) if isinstance(value, str) else value
