"""The store that commands of the service work on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from eccaht.cli.options import option

if TYPE_CHECKING:
    from eccaht.service.store import Store

StoreUrl = Annotated[
    str | None,
    option("URL", "sqlite:///FILE or postgresql://HOST/DATABASE. [default: that of the settings]", "--store"),
]
SchemaName = Annotated[str | None, option("NAME", "PostgreSQL: the schema of all tables.", "--schema")]
Config = Annotated[Path | None, option("FILE", "Settings of the service, as TOML.")]


@contextmanager
def opened(url: str | None, schema: str | None, config: Path | None, *, make: bool = False) -> Iterator[Store]:
    """The store of the options, or of the settings; make: whether it may be a new one."""
    from eccaht.service.settings import load_settings

    settings = load_settings(config).store
    with opened_at(url or settings.url.get_secret_value(), schema or settings.schema_name, make=make) as store:
        yield store


@contextmanager
def opened_at(url: str, schema: str | None, *, make: bool = False) -> Iterator[Store]:
    """The store at a URL; what is wrong with it is an error of one line."""
    import sqlalchemy as sa

    from eccaht.service.store import Store

    store = Store(url, None if url.startswith("sqlite") else schema)
    if not make and store.is_sqlite and not Path(store.url.database or "").is_file():
        raise ValueError(f"there is no store {store.shown}: 'eccaht serve' and 'eccaht token create' make one")
    try:
        if make:
            store.prepare()
        else:
            store.check()
        yield store
    except sa.exc.DBAPIError as error:
        raise ValueError(f"store {store.shown}: {store.error_line(error)}") from None
    finally:
        store.close()
