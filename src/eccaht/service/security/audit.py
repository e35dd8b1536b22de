"""Who did what, when, to which plant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from eccaht.service.store import schema
from eccaht.service.store.store import now

COMMAND_LINE = "command line"


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
