"""`eccaht report`: one page with every figure, claim and verdict."""

from pathlib import Path
from typing import Annotated

import typer

from eccaht.cli.output import note, writable_directory
from eccaht.research.paper.report import FILES, write_report


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where 'eccaht reproduce' wrote its results.")],
) -> None:
    """Write the report on the results in DIR.

    One page, DIR/report.html, that needs no network, and the same as DIR/report.md: the paper's claims with our number
    and verdict, every figure, its setting, the command that makes it and its table. Works with some of the experiments.
    """
    if not directory.is_dir():
        raise ValueError(f"no results in {directory}: run 'eccaht reproduce all --out {directory}' first")
    place = writable_directory(directory, "DIR", FILES, {"the results in": directory.glob("*/cells/*")})
    page, *others = write_report(place, note=note)
    typer.echo(f"Open {page} in a browser.")
    typer.echo(f"Saved {', '.join(map(str, (page, *others)))}")
