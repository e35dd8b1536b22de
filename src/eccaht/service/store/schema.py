"""All tables. Times are whole microseconds since 1970-01-01, documents are JSON."""

from typing import Any, get_args

import sqlalchemy as sa

from eccaht.plants.watch.plant import State

metadata = sa.MetaData()
# quiet, suspicious, changed, alarm: a window's state is its place here, so that the worst is the largest
STATES: tuple[State, ...] = get_args(State)
UNJUDGED = -1  # in the place of a state: the window was not watched
_LONG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(name, metadata, *parts)


def _text(name: str, length: int | None = None, **more: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.String(length), **{"nullable": False, **more})


def _long(name: str, **more: Any) -> sa.Column[Any]:
    return sa.Column(name, _LONG, **{"nullable": False, **more})


def _int(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, nullable=False)


def _json(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.JSON, nullable=False)


def _bytes(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def _id() -> sa.Column[Any]:
    return _long("id", primary_key=True, autoincrement=True)


_key = sa.PrimaryKeyConstraint
meta = _table("meta", _text("name", primary_key=True), _text("value"))
models = _table(
    "models",
    _text("digest", 64, primary_key=True),
    _text("name"),
    _bytes("content"),
    _long("size"),
    _long("uploaded"),
    _text("by"),
)
plants = _table(
    "plants",
    _text("name", primary_key=True),
    sa.Column("digest", sa.String(64), sa.ForeignKey("models.digest"), nullable=False),
    _int("era"),
    _json("options"),
    _long("created"),
)
# Another model has other sensors: windows say of which era they are, and an era has one model.
# number: of the last event before the era.
eras = _table(
    "eras", _text("plant"), _int("era"), _text("digest", 64), _long("number"), _long("created"), _key("plant", "era")
)
checkpoints = _table(
    "checkpoints",
    _text("plant", primary_key=True),
    _long("position", nullable=True),
    _long("windows"),
    _bytes("content"),
)
# Rows whose window is not complete, as they came; gone once all their windows are.
pending = _table("pending", _text("plant"), _long("number"), _long("last"), _bytes("content"), _key("plant", "number"))
# waiting: late rows that no window has reported yet.
counts = _table(
    "counts", _text("plant", primary_key=True), _long("late"), _long("duplicate"), _long("ahead"), _long("waiting")
)
# values: in robust units, <f8. rows: the most readings that a mean is of. late: rows that the window reported.
# seen: which readings of it came, so that one that comes again is known.
windows = _table(
    "windows",
    _text("plant"),
    _long("start"),
    _long("number"),
    _int("era"),
    _bytes("values"),
    _bytes("seen"),
    _long("rows"),
    _long("late"),
    sa.Column("evidence", sa.Float(53), nullable=False),
    sa.Column("state", sa.SmallInteger, nullable=False),
    _key("plant", "start"),
)
# Readings that came too late for their window, as its `seen`; apart, so that they rewrite nothing.
late_readings = _table("late_readings", _id(), _text("plant"), _long("start"), _bytes("seen"))
sa.Index("late_readings_by_window", late_readings.c.plant, late_readings.c.start)
events = _table(
    "events", _text("plant"), _long("number"), _long("time"), _text("kind"), _json("document"), _key("plant", "number")
)
sa.Index("events_by_kind", events.c.plant, events.c.kind, events.c.number)
sa.Index("events_by_time", events.c.time)
comments = _table("comments", _id(), _text("plant"), _long("number"), _long("at"), _text("who"), _text("text"))
sa.Index("comments_by_event", comments.c.plant, comments.c.number)
tokens = _table(
    "tokens",
    _id(),
    _text("name", unique=True),
    _text("hash"),
    _text("scopes"),
    _long("created"),
    _long("expires", nullable=True),
    _long("revoked", nullable=True),
    _long("used", nullable=True),
)
audit = _table(
    "audit", _id(), _long("at"), _text("who"), _text("action"), _text("plant", nullable=True), _json("document")
)
sa.Index("audit_by_time", audit.c.at)
outbox = _table(
    "outbox",
    _id(),
    _text("plant"),
    _long("number"),
    _text("channel"),
    _text("kind"),
    _text("status"),  # queued, sent, doubtful or failed
    _int("tries"),
    _long("next_at"),
    _json("document"),
    sa.UniqueConstraint("plant", "number", "channel"),
)
positions = _table("positions", _text("plant"), _text("source"), _json("document"), _key("plant", "source"))
# Who watches a plant now: see `runtime/owners.py`. steps: that were stored of it, for services that only show it.
owners = _table("owners", _text("plant", primary_key=True), _text("service"), _long("revision"), _long("steps"))
services = _table("services", _text("name", primary_key=True), _text("address"), _long("beat"))
OF_A_PLANT = (checkpoints, pending, counts, windows, late_readings, events, comments, outbox, positions, eras, owners)
COPIED = tuple(table for table in metadata.sorted_tables if table not in (owners, services))

VERSION = 2  # of all tables together; a store of another one is refused


def version_of(connection: sa.Connection) -> int:
    """The version of the tables, 0 if there are none."""
    if not sa.inspect(connection).has_table(meta.name, schema=schema_of(connection)):
        return 0
    return int(connection.execute(sa.select(meta.c.value).where(meta.c.name == "version")).scalar() or 0)


def make_tables(connection: sa.Connection) -> None:
    """Make the tables where there are none, in the transaction of the connection; refuse those of another version."""
    found = version_of(connection)
    if not found:
        metadata.create_all(connection)
        connection.execute(sa.insert(meta).values(name="version", value=str(VERSION)))
    elif found != VERSION:
        raise ValueError(f"the store has version {found}, this eccaht knows {VERSION}: use the eccaht that made it")


def schema_of(connection: sa.Connection) -> str | None:
    """The schema of PostgreSQL in which a connection finds the tables, None if it is the usual one."""
    return (connection.get_execution_options().get("schema_translate_map") or {}).get(None)
