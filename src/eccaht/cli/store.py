"""`eccaht store`: backups and copies of what the service keeps; and the store that other commands open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from eccaht.cli.output import Json, check_outputs, option, shown_progress

if TYPE_CHECKING:
    from eccaht.service.operations.copying import Copied, Readable
    from eccaht.service.store import Store

    Work = Callable[[Callable[[int], None]], list[Copied]]


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


def store(
    action: Annotated[Literal["backup", "restore", "copy"], typer.Argument(metavar="backup|restore|copy")],
    first: Annotated[str, typer.Argument(metavar="FILE|FROM", help="File of the backup; to copy, a URL.")],
    second: Annotated[str | None, typer.Argument(metavar="[TO]", help="URL to copy to.")] = None,
    store: StoreUrl = None,
    schema: SchemaName = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Back up, restore and copy what the service keeps.

    'backup FILE' writes everything to one file, 'restore FILE' fills an empty store from it, 'copy FROM TO' fills an
    empty store from another one: that is how one moves from SQLite to PostgreSQL, or back. The service may run
    meanwhile: what it writes after the beginning is not copied, so stop it before you move. Every row is compared
    afterwards; when something is wrong, or the command is interrupted, nothing is kept.
    """
    if (second is None) != (action != "copy"):
        raise ValueError(
            "copy to where? Give FROM and TO" if second is None else f"leave out {second!r}: {action} takes one file"
        )
    if action == "copy":
        if store is not None or config is not None:
            raise ValueError("'store copy' takes two URLs: leave out --store and --config")
        copied = _copy(first, str(second), schema)
    elif action == "backup":
        copied = _backup(Path(first), store, schema, config)
    else:
        copied = _restore(Path(first), store, schema, config)
    rows = sum(table.rows for table in copied)
    if as_json:
        typer.echo(json.dumps({"action": action, "rows": rows, "tables": [table._asdict() for table in copied]}))
    else:
        typer.echo(f"{action}: {rows} rows of {len(copied)} tables, each compared with what it was")


def _backup(path: Path, *place: object) -> list[Copied]:
    from eccaht.service.operations.copying import backup

    check_outputs({"FILE": path})
    with opened(*place) as source:  # type: ignore[arg-type]
        return _shown(source, lambda advance: backup(source, path, advance))


def _restore(path: Path, *place: object) -> list[Copied]:
    from eccaht.service.operations.copying import Backup, restore

    with opened(*place, make=True) as target:  # type: ignore[arg-type]
        return _shown(Backup(path), lambda advance: restore(path, target, advance))


def _copy(source: str, target: str, schema: str | None) -> list[Copied]:
    from eccaht.service.operations.copying import copy

    with opened_at(source, schema) as reading, opened_at(target, schema, make=True) as writing:
        return _shown(reading, lambda advance: copy(reading, writing, advance, f"the store {writing.shown}"))


def _shown(source: Readable, work: Work) -> list[Copied]:
    from eccaht.service.operations.copying import count

    with shown_progress("counting") as bar:
        bar.total(2 * count(source), "copying and comparing")
        return work(bar.advance)
