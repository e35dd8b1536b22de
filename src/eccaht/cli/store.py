"""`eccaht store`: backups of what the service keeps; and the store that other commands open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from eccaht.cli.output import Json, check_outputs, option, shown_progress

if TYPE_CHECKING:
    from eccaht.service.operations.copying import CopiedTable
    from eccaht.service.store import Store

StoreUrl = Annotated[
    str | None,
    option("URL", "sqlite:///FILE or postgresql://HOST/DATABASE. [default: that of the settings]", "--store"),
]
Config = Annotated[Path | None, option("FILE", "Settings of the service, as TOML.")]


@contextmanager
def opened(url: str | None, config: Path | None, *, make: bool = False) -> Iterator[Store]:
    """The store of the options, or of the settings; what is wrong with it is an error of one line.

    make: whether it may be a new one.
    """
    import sqlalchemy as sa

    from eccaht.service.settings import load_settings
    from eccaht.service.store import Store

    settings = load_settings(config).store
    place = url or settings.url.get_secret_value()
    store = Store(place, None if place.startswith("sqlite") else settings.schema_name)
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


def store(
    action: Annotated[Literal["backup", "restore"], typer.Argument(metavar="backup|restore")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of the backup.")],
    store: StoreUrl = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Back up what the service keeps, and restore it.

    'backup FILE' writes everything to one file, 'restore FILE' fills an empty store from it, of either kind:
    that is how one moves from SQLite to PostgreSQL, or back. What a running service writes after the beginning
    is not in the backup.
    """
    from eccaht.service.operations.copying import Backup, Readable, backup, count, restore

    def advanced(source: Readable, work: Callable[[Callable[[int], None]], list[CopiedTable]]) -> list[CopiedTable]:
        with shown_progress("counting") as bar:
            bar.total(count(source), "copying")
            return work(bar.advance)

    if action == "backup":
        check_outputs({"FILE": file})
        with opened(store, config) as source:
            copied = advanced(source, lambda advance: backup(source, file, advance))
    else:
        with opened(store, config, make=True) as target:
            copied = advanced(Backup(file), lambda advance: restore(file, target, advance))
    rows = sum(table.rows for table in copied)
    if as_json:
        typer.echo(json.dumps({"action": action, "rows": rows, "tables": [table._asdict() for table in copied]}))
    else:
        typer.echo(f"{action}: {rows} rows of {len(copied)} tables")
