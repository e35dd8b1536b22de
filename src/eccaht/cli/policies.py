"""`eccaht policies`: the algorithms by name."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eccaht.cli.output import grid, option
from eccaht.streams import CATALOGUE


def policies(as_json: Annotated[bool, option(None, "Print a JSON list.", "--json")] = False) -> None:
    """List the algorithms and where they come from."""
    rows = [(name, entry.summary, entry.source) for name, entry in CATALOGUE.items()]
    if as_json:
        keys = ("name", "summary", "source")
        typer.echo(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
    elif sys.stdout.isatty():
        Console(highlight=False).print(table(rows))
    else:  # one line each, so that other programs can search and cut
        width = max(len(name) for name, _, _ in rows)
        for name, summary, source in rows:
            typer.echo(f"{name:<{width}}  {summary} [{source}]")


def table(rows: list[tuple[str, str, str]]) -> Table:
    """Name and, beside it, the summary over the source: narrow terminals have no room for three columns."""
    lines = grid("name", "summary", header=False, unbroken=["name"])
    for name, summary, source in rows:
        lines.add_row(Text(name, style="bold"), Text.assemble(summary, "\n", (source, "dim italic")))
    return lines
