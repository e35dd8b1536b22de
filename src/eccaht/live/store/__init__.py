"""Where everything is kept: SQLite, or PostgreSQL by one URL."""

from eccaht.live.store.store import Store

__all__ = ["Store"]
