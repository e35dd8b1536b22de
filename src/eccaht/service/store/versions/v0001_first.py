"""The tables of the first version."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None

_Long = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _long(name: str, *, nullable: bool = False, primary_key: bool = False) -> sa.Column[Any]:
    return sa.Column(name, _Long, nullable=nullable, primary_key=primary_key)


def _text(name: str, length: int | None = None, *, nullable: bool = False, unique: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.String(length), nullable=nullable, unique=unique)


def _json(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON, nullable=False)


def _bytes(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def _whole(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, nullable=False)


def _key(*names: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*names)


def upgrade() -> None:
    _plants()
    _rows()
    _events()
    _rest()


def _plants() -> None:
    op.create_table("meta", _text("name"), _text("value"), _key("name"))
    op.create_table(
        "models",
        _text("digest", 64),
        _text("name"),
        _bytes("content"),
        _long("size"),
        _long("uploaded"),
        _text("by"),
        _key("digest"),
    )
    op.create_table(
        "plants",
        _text("name"),
        sa.Column("digest", sa.String(64), sa.ForeignKey("models.digest"), nullable=False),
        _whole("era"),
        _json("options"),
        _long("created"),
        _key("name"),
    )
    eras = (_text("plant"), _whole("era"), _text("digest", 64), _long("number"), _long("created"))
    op.create_table("eras", *eras, _key("plant", "era"))


def _rows() -> None:
    checkpoints = (_text("plant"), _long("position", nullable=True), _long("windows"), _bytes("content"))
    op.create_table("checkpoints", *checkpoints, _key("plant"))
    pending = (_text("plant"), _long("number"), _long("last"), _bytes("content"))
    op.create_table("pending", *pending, _key("plant", "number"))
    counts = (_long(name) for name in ("late", "duplicate", "ahead", "waiting"))
    op.create_table("counts", _text("plant"), *counts, _key("plant"))
    op.create_table(
        "windows",
        _text("plant"),
        _long("start"),
        _long("number"),
        _whole("era"),
        _bytes("values"),
        _bytes("seen"),
        _long("rows"),
        _long("late"),
        sa.Column("evidence", sa.Float(53), nullable=False),
        sa.Column("state", sa.SmallInteger, nullable=False),
        _key("plant", "start"),
    )


def _events() -> None:
    events = (_text("plant"), _long("number"), _long("time"), _text("kind"), _json("document"))
    op.create_table("events", *events, _key("plant", "number"))
    op.create_index("events_by_kind", "events", ["plant", "kind", "number"])
    op.create_index("events_by_time", "events", ["time"])
    comments = (_text("plant"), _long("number"), _long("at"), _text("who"), _text("text"))
    op.create_table("comments", _long("id", primary_key=True), *comments)
    op.create_index("comments_by_event", "comments", ["plant", "number"])


def _rest() -> None:
    op.create_table(
        "tokens",
        _long("id", primary_key=True),
        _text("name", unique=True),
        _text("hash"),
        _text("scopes"),
        _long("created"),
        _long("expires", nullable=True),
        _long("revoked", nullable=True),
        _long("used", nullable=True),
    )
    audit = (_long("at"), _text("who"), _text("action"), _text("plant", nullable=True), _json("document"))
    op.create_table("audit", _long("id", primary_key=True), *audit)
    op.create_index("audit_by_time", "audit", ["at"])
    op.create_table(
        "outbox",
        _long("id", primary_key=True),
        _text("plant"),
        _long("number"),
        _text("channel"),
        _text("kind"),
        _text("status"),
        _whole("tries"),
        _long("next_at"),
        _json("document"),
        sa.UniqueConstraint("plant", "number", "channel"),
    )
    op.create_table("positions", _text("plant"), _text("source"), _json("document"), _key("plant", "source"))
