"""Where everything is kept: SQLite, or PostgreSQL by one URL."""

from eccaht.service.store.store import Store as Store
