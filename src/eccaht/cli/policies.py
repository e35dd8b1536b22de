"""`eccaht policies`: the algorithms by name."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table


def policies(
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the algorithms and where they come from."""
    from eccaht.policies import CATALOGUE

    rows = [(name, entry.summary, entry.source) for name, entry in CATALOGUE.items()]
    if as_json:
        keys = ("name", "summary", "source")
        typer.echo(json.dumps([dict(zip(keys, row, strict=True)) for row in rows], indent=2))
    elif sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False).print(table(rows))
    else:  # one line each, so that other programs can search and cut
        width = max(len(name) for name, _, _ in rows)
        for name, summary, source in rows:
            typer.echo(f"{name:<{width}}  {summary} [{source}]")


def table(rows: list[tuple[str, str, str]]) -> Table:
    """Name and, beside it, the summary over the source: narrow terminals have no room for three columns."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for name, summary, source in rows:
        grid.add_row(Text(name, style="bold"), Text.assemble(summary, "\n", (source, "dim italic")))
    return grid
