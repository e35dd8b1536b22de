"""`eccaht policies`: the algorithms by name."""

import json
from typing import Annotated

import typer

from eccaht.cli.output import option
from eccaht.streams import CATALOGUE


def policies(as_json: Annotated[bool, option(None, "Print a JSON list.", "--json")] = False) -> None:
    """List the algorithms and where they come from."""
    rows = [{"name": name, "summary": each.summary, "source": each.source} for name, each in CATALOGUE.items()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    width = max(map(len, CATALOGUE))  # one line each, so that other programs can search and cut
    for row in rows:
        typer.echo(f"{row['name']:<{width}}  {row['summary']} [{row['source']}]")
