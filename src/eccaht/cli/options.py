"""Options that several commands have, each described once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from eccaht.cli.noise import FAMILIES, STREAMS


def option(metavar: str | None, help: str, *names: str, **limits: Any) -> Any:
    """An option: what stands for its value in the help, and what it is for; `min` and `max` limit a number."""
    return typer.Option(*names, metavar=metavar, help=help, **limits)


FAMILY_NAMES = ", ".join(FAMILIES)
Json = Annotated[bool, option(None, "Print one JSON document instead.", "--json")]
Jobs = Annotated[int | None, option("N", "Processes. [default: all cores]", min=1)]
Seed = Annotated[int, option("N", "Another seed is another set of runs.", min=0)]
Runs = Annotated[int, option("N", "Runs of each policy.", min=1)]
Budget = Annotated[float, option("B", "Limit on a measurement: sum of |weights|.")]
Estimator = Annotated[str, option("NAME", "Of the covariance.")]
PolicyName = Annotated[str, option("NAME", "'eccaht policies' lists them.")]
Policies = Annotated[str | None, option("NAMES", "With commas between; NAME-diagonal ignores correlation.")]
ModelOrNoise = Annotated[Path | None, option("MODEL", "What 'eccaht calibrate' wrote.")]
Streams = Annotated[int | None, option("K", f"How many streams. [default: {STREAMS}]", min=2)]
Rho = Annotated[float | None, option(None, "Correlation of the family. [default: 0.8]")]
LengthScale = Annotated[float | None, option(None, "Instead of --rho, for exponential and rbf.")]
AlphaMix = Annotated[float | None, option(None, "Weight of the common factor: spectral-mixture.")]
Missing = Annotated[Literal["refuse", "allow"], option(None, "What to do if the data lack sensors of the model.")]
Timezone = Annotated[
    str | None, option("ZONE", "Of times without an offset and of what is shown. [default: the history's]")
]
NoHeader = Annotated[bool, option(None, "The data have no column names.", "--no-header")]
DecimalComma = Annotated[
    bool | None, option(None, "Numbers are written as 1,5. [default: found by itself]", show_default=False)
]
