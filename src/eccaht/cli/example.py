"""`eccaht example`: files to try the tools for sensor data on."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from eccaht.cli.output import Json, option, writable_directory
from eccaht.plants.example import FILES, write_example


def example(
    out: Annotated[Path, option("DIR", "Where the files go.")] = Path("example"),
    kind: Annotated[Literal["step", "replay", "concealed"], option("KIND", "What is wrong in the incident.")] = "step",
    seed: Annotated[int, option("N", "Another seed is another plant.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Write sensor data of a small simulated plant, to try with.

    DIR/history.csv holds two days of normal operation of 24 sensors, DIR/incident.csv four hours in which some
    of them are wrong from the third hour on, DIR/truth.json says which. --kind step: three sensors read too
    high. replay: one shows its recording of the two hours before. concealed: one reads too high, and two of its
    neighbours are replayed.
    """
    files = write_example(writable_directory(out, files=FILES), seed, kind)
    if as_json:
        truth = json.loads(files[-1].read_text(encoding="utf-8"))
        typer.echo(json.dumps({"files": [str(file) for file in files], "truth": truth}))
    else:
        typer.echo(f"Saved {', '.join(map(str, files))}")
