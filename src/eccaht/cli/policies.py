"""`eccaht policies`: the algorithms by name."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from eccaht.cli.imports import Imports, import_policies
from eccaht.cli.output import grid, option
from eccaht.streams import CATALOGUE
from eccaht.streams.policies.registry import unusable_policies


class _Line(NamedTuple):
    name: str
    summary: str
    source: str


def policies(
    import_: Imports = None, as_json: Annotated[bool, option(None, "Print a JSON list.", "--json")] = False
) -> None:
    """List the algorithms and where they come from.

    Your own are those of --import, and those that installed packages declare as entry points of eccaht.policies.
    """
    import_policies(import_)
    unusable = unusable_policies()  # first: it loads those that can be used
    rows = [_Line(name, entry.summary, entry.source) for name, entry in CATALOGUE.items()]
    if as_json:
        broken = [{"name": name, "error": error} for name, error in unusable.items()]
        typer.echo(json.dumps([*(row._asdict() for row in rows), *broken], indent=2))
        return
    if sys.stdout.isatty():
        Console(highlight=False).print(table(rows))
    else:  # one line each, so that other programs can search and cut
        width = max(len(name) for name, _, _ in rows)
        for name, summary, source in rows:
            typer.echo(f"{name:<{width}}  {summary} [{source}]")
    for error in unusable.values():
        typer.echo(f"not usable: {error}")


def table(rows: Sequence[tuple[str, str, str]]) -> Table:
    """Name and, beside it, the summary over the source: narrow terminals have no room for three columns."""
    lines = grid("name", "summary", header=False, unbroken=["name"])
    for name, summary, source in rows:
        lines.add_row(Text(name, style="bold"), Text.assemble(summary, "\n", (source, "dim italic")))
    return lines
