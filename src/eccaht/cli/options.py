"""Options that several commands have, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eccaht.cli.noise import FAMILIES, STREAMS

_NOISE = ", ".join(FAMILIES)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
Jobs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Processes. [default: all cores]")]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Another seed is another set of runs.")]
OtherSearches = Annotated[int, typer.Option(min=0, metavar="N", help="Another seed is other searches.")]
Runs = Annotated[int, typer.Option(min=1, metavar="N", help="Runs of each policy.")]
Budget = Annotated[float, typer.Option(metavar="B", help="Limit on a measurement: sum of |weights|.")]
Estimator = Annotated[str, typer.Option(metavar="NAME", help="Of the covariance.")]
Policies = Annotated[
    str | None, typer.Option(metavar="NAMES", help="With commas between; NAME-diagonal ignores correlation.")
]
ModelOrNoise = Annotated[Path | None, typer.Option(metavar="MODEL", help="What 'eccaht calibrate' wrote.")]
Streams = Annotated[int | None, typer.Option(min=2, metavar="K", help=f"How many streams. [default: {STREAMS}]")]
Rho = Annotated[float | None, typer.Option(help="Correlation of the family. [default: 0.8]")]
LengthScale = Annotated[float | None, typer.Option(help="Instead of --rho, for exponential and rbf.")]
AlphaMix = Annotated[float | None, typer.Option(help="Weight of the common factor: spectral-mixture.")]
