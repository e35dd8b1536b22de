"""`eccaht token`: who may use the service."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from eccaht.base.clock import parse_duration
from eccaht.cli.output import Json, note, option, show_lines
from eccaht.cli.store import Config, StoreUrl, opened

if TYPE_CHECKING:
    from eccaht.service.security.guard import Token

_COLUMNS = ("name", "scopes", "state", "created", "expires", "last used")


def token(
    action: Annotated[Literal["create", "list", "revoke"], typer.Argument(metavar="create|list|revoke")],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Of the token to create or revoke.")] = None,
    scope: Annotated[list[str] | None, option("SCOPE", "read, operate, ingest or admin; may be repeated.")] = None,
    expires: Annotated[str | None, option("TIME", "For how long it holds, as 90d. [default: until revoked]")] = None,
    store: StoreUrl = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Create, list and revoke the tokens of the service.

    Whoever has a token may do what its scopes say: read, operate (read, and act on alarms), ingest (send rows),
    admin (all). The token is printed once, when it is created; the store keeps a hash.
    """
    _check(action, name, scope, expires)
    seconds = None if expires is None else parse_duration(expires, "--expires")
    if action == "create":
        _create(str(name), scope or [], seconds, store, config, as_json=as_json)
    elif action == "revoke":
        _revoke(str(name), store, config, as_json=as_json)
    else:
        _list(store, config, as_json=as_json)


def _check(action: str, name: str | None, scope: list[str] | None, expires: str | None) -> None:
    if (name is None) != (action == "list"):
        raise ValueError(
            "which token? Give its NAME" if name is None else f"'token list' lists all: leave out {name!r}"
        )
    if action == "create":
        from eccaht.service.security.settings import checked_scopes

        checked_scopes(scope or [])
    elif scope or expires:
        raise ValueError("--scope and --expires are for 'token create': a token that is there keeps what it has")


def _create(name: str, scope: list[str], seconds: float | None, *place: Any, as_json: bool) -> None:
    from eccaht.service.security import guard
    from eccaht.service.store.store import now

    with opened(*place, make=True) as store, store.begin() as connection:
        text = guard.create(connection, name, scope, now=now(), seconds=seconds)
        made = next(known for known in guard.listed(connection) if known.name == name)
    if as_json:
        typer.echo(json.dumps({"token": text, **_document(made)}))
        return
    typer.echo(text)
    note("this is the only time that the token is shown")


def _revoke(name: str, *place: Any, as_json: bool) -> None:
    from eccaht.service.security import guard
    from eccaht.service.store.store import now

    with opened(*place) as store, store.begin() as connection:
        guard.revoke(connection, name, now=now())
    typer.echo(json.dumps({"name": name, "state": "revoked"}) if as_json else f"Revoked {name}")


def _list(*place: Any, as_json: bool) -> None:
    from eccaht.service.security import guard

    with opened(*place) as store, store.read() as connection:
        documents = [_document(known) for known in guard.listed(connection)]
    if as_json:
        typer.echo(json.dumps({"tokens": documents}))
    elif documents:
        rows = [[_cell(document[column.replace("last ", "")]) for column in _COLUMNS] for document in documents]
        show_lines([_COLUMNS, *rows])
    else:
        typer.echo("There is no token yet: 'eccaht token create NAME --scope read' makes one")


def _document(known: Token) -> dict[str, Any]:
    from eccaht.service.store.store import now

    times = {name: _time(getattr(known, name)) for name in ("created", "expires", "used")}
    return {"name": known.name, "scopes": list(known.scopes), "state": known.state(now()), **times}


def _time(microseconds: int | None) -> str | None:
    if microseconds is None:
        return None
    return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _cell(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value or "-")
