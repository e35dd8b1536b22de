"""All tables; times are whole microseconds since 1970-01-01, documents are JSON."""

from __future__ import annotations

from typing import get_args

import sqlalchemy as sa

from eccaht.streams.watch.alarm import State

metadata = sa.MetaData()
_Long = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
STATES: tuple[State, ...] = get_args(
    State
)  # quiet, suspicious, alarm: a window's state is its place here, so that the worst is the largest


def _key(*names: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*names)


meta = sa.Table(
    "meta",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("value", sa.String, nullable=False),
)
models = sa.Table(
    "models",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("size", _Long, nullable=False),
    sa.Column("uploaded", _Long, nullable=False),
    sa.Column("by", sa.String, nullable=False),
)
plants = sa.Table(
    "plants",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("digest", sa.String(64), sa.ForeignKey("models.digest"), nullable=False),
    sa.Column("era", sa.Integer, nullable=False),
    sa.Column("options", sa.JSON, nullable=False),
    sa.Column("created", _Long, nullable=False),
)
# Another model has other sensors: windows say of which era they are, and an era has one model.
eras = sa.Table(
    "eras",
    metadata,
    sa.Column("plant", sa.String, nullable=False),
    sa.Column("era", sa.Integer, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("number", _Long, nullable=False),  # of the last event before it
    sa.Column("created", _Long, nullable=False),
    _key("plant", "era"),
)
checkpoints = sa.Table(
    "checkpoints",
    metadata,
    sa.Column("plant", sa.String, primary_key=True),
    sa.Column("position", _Long),
    sa.Column("windows", _Long, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
# Rows whose window is not complete, as they came; gone once all their windows are.
pending = sa.Table(
    "pending",
    metadata,
    sa.Column("plant", sa.String, nullable=False),
    sa.Column("number", _Long, nullable=False),
    sa.Column("last", _Long, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    _key("plant", "number"),
)
# waiting: late rows that no window has reported yet.
counts = sa.Table(
    "counts",
    metadata,
    sa.Column("plant", sa.String, primary_key=True),
    sa.Column("late", _Long, nullable=False),
    sa.Column("duplicate", _Long, nullable=False),
    sa.Column("ahead", _Long, nullable=False),
    sa.Column("waiting", _Long, nullable=False),
)
# values: in robust units, <f8. rows: the most readings that a mean is of. late: rows that the window reported.
# seen: which readings of it came, also too late, so that one that comes again is known.
windows = sa.Table(
    "windows",
    metadata,
    sa.Column("plant", sa.String, nullable=False),
    sa.Column("start", _Long, nullable=False),
    sa.Column("number", _Long, nullable=False),
    sa.Column("era", sa.Integer, nullable=False),
    sa.Column("values", sa.LargeBinary, nullable=False),
    sa.Column("seen", sa.LargeBinary, nullable=False),
    sa.Column("rows", _Long, nullable=False),
    sa.Column("late", _Long, nullable=False),
    sa.Column("evidence", sa.Float(53), nullable=False),
    sa.Column("state", sa.SmallInteger, nullable=False),
    _key("plant", "start"),
)
events = sa.Table(
    "events",
    metadata,
    sa.Column("plant", sa.String, nullable=False),
    sa.Column("number", _Long, nullable=False),
    sa.Column("time", _Long, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("document", sa.JSON, nullable=False),
    _key("plant", "number"),
)
sa.Index("events_by_kind", events.c.plant, events.c.kind, events.c.number)
sa.Index("events_by_time", events.c.time)
comments = sa.Table(
    "comments",
    metadata,
    sa.Column("id", _Long, primary_key=True, autoincrement=True),
    sa.Column("plant", sa.String, nullable=False),
    sa.Column("number", _Long, nullable=False),
    sa.Column("at", _Long, nullable=False),
    sa.Column("who", sa.String, nullable=False),
    sa.Column("text", sa.String, nullable=False),
)
sa.Index("comments_by_event", comments.c.plant, comments.c.number)
tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", _Long, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String, nullable=False, unique=True),
    sa.Column("hash", sa.String, nullable=False),
    sa.Column("scopes", sa.String, nullable=False),
    sa.Column("created", _Long, nullable=False),
    sa.Column("expires", _Long),
    sa.Column("revoked", _Long),
    sa.Column("used", _Long),
)
audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", _Long, primary_key=True, autoincrement=True),
    sa.Column("at", _Long, nullable=False),
    sa.Column("who", sa.String, nullable=False),
    sa.Column("action", sa.String, nullable=False),
    sa.Column("plant", sa.String),
    sa.Column("document", sa.JSON, nullable=False),
)
sa.Index("audit_by_time", audit.c.at)
outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", _Long, primary_key=True, autoincrement=True),
    sa.Column("plant", sa.String, nullable=False),
    sa.Column("number", _Long, nullable=False),
    sa.Column("channel", sa.String, nullable=False),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),  # queued, sent, doubtful or failed
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("next_at", _Long, nullable=False),
    sa.Column("document", sa.JSON, nullable=False),
    sa.UniqueConstraint("plant", "number", "channel"),
)
positions = sa.Table(
    "positions",
    metadata,
    sa.Column("plant", sa.String, nullable=False),
    sa.Column("source", sa.String, nullable=False),
    sa.Column("document", sa.JSON, nullable=False),
    _key("plant", "source"),
)
OF_A_PLANT = (checkpoints, pending, counts, windows, events, comments, outbox, positions, eras)
