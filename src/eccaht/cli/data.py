"""`eccaht data`: public collections of known incidents, for `eccaht incidents`."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from eccaht.base.presentation.text import counted, did_you_mean
from eccaht.cli.output import Json, option, show_lines, writable_directory
from eccaht.research.datasets.public import COLLECTIONS, SOURCE, fetch


def data(
    action: Annotated[Literal["fetch", "list"], typer.Argument(metavar="fetch|list")],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Of the collection to fetch.")] = None,
    out: Annotated[Path | None, option("DIR", "Where it goes. [default: NAME]")] = None,
    given: Annotated[
        Path | None, option("FILE", "The publisher's archive, or a folder with its files: downloads nothing.", "--from")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fetch public collections of known incidents, ready for 'eccaht incidents'.

    DIR/source.json says where the files are from, under which licence, and has the checksum of each.
    """
    if action == "list":
        rows = [[key, each.about, each.licence, each.source] for key, each in COLLECTIONS.items()]
        if as_json:
            typer.echo(
                json.dumps([dict(zip(("name", "about", "licence", "source"), row, strict=True)) for row in rows])
            )
        else:
            show_lines(rows)
        return
    if name not in COLLECTIONS:
        hint = did_you_mean(str(name), list(COLLECTIONS), otherwise=f": they are {', '.join(COLLECTIONS)}")
        raise ValueError(f"no collection {name!r}{hint}" if name else f"give a NAME{hint}")
    if given is not None and not given.exists():
        raise ValueError(f"--from: no file at {given}")
    place = writable_directory(Path(name) if out is None else out, files=(SOURCE,))
    document = fetch(name, place, given)
    if as_json:
        typer.echo(json.dumps(document))
    else:
        files = counted(len(document["sha256"]), "file")
        typer.echo(f"Saved {files} in {place}; from {document['source']}, licence: {document['licence']}")
