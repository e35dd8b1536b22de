"""`eccaht demo`: one search to watch."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from eccaht.cli.output import Json, deliver, option, writable_directory
from eccaht.research.experiments.tables import Table, save_table
from eccaht.research.paper import fig1
from eccaht.research.paper.fig1 import HORIZON, Fig1Outcome, by_step

_FILES = ("fig1.pdf", "fig1.png", "fig1.csv")
_ONE = ("step", "champion", "challenger", "reading", "lead")


def demo(
    seed: Annotated[int, option("N", "Another seed is another run.", min=0)] = 0,
    out: Annotated[Path, option("DIR", "Where the figure goes.")] = Path("demo"),
    as_json: Json = False,
) -> None:
    """Watch a search for 3 anomalous streams among 15, and draw it.

    The streams are simulated: each shares noise with its neighbours, and 3 of them have shifted. ecc-aht
    chooses 20 measurements.
    """
    directory, table = writable_directory(out, files=_FILES), fig1.trace(seed)
    deliver(
        [_save(table, directory)],
        show=lambda: _show(table, seed),
        document=lambda files: _document(seed, table, files),
        as_json=as_json,
    )


def _show(table: Table, seed: int) -> None:
    """Print one plain line a measurement and the summary."""
    which = f"Which {fig1.N_ANOMALIES} of {fig1.STREAMS} correlated streams are anomalous?"
    typer.echo(f"{which} ({fig1.POLICY}, seed {seed})")
    for now in _steps(table):
        named = " ".join(f"{k:2d}" for k in now["decision"])
        typer.echo(
            "measurement {step:2d}: stream {champion:2d} against {challenger:2d}  reading {reading:+6.2f}".format(**now)
            + f"  set {named}  lead {now['lead']:5.2f}"
        )
    typer.echo("\n".join(summary(fig1.outcome(table))))


def _steps(table: Table) -> Iterator[dict[str, Any]]:
    """Each measurement and what is believed after it."""
    several = {"weights": "weight", "scores": "score", "beliefs": "belief"}
    columns = {name: by_step(table, name) for name in (*_ONE, *several.values(), "decided")}
    for t in range(1, len(columns["step"])):
        one = {name: columns[name][t, 0].item() for name in _ONE}
        yield (
            one
            | {name: columns[column][t].tolist() for name, column in several.items()}
            | {"decision": np.flatnonzero(columns["decided"][t]).tolist()}
        )


def summary(end: Fig1Outcome) -> list[str]:
    """Say how the search ended, in lines that fit a terminal."""
    if end.right:
        first = f"Named {_streams(end.decision)}: right, these are the anomalous streams."
        second = f"{HORIZON} measurements were made; the set is right for good from measurement {end.right_from} on."
    else:
        first = f"Named {_streams(end.decision)}: WRONG, anomalous are {_streams(end.truth)}."
        found = len({*end.decision} & {*end.truth})
        second = f"{HORIZON} measurements were made; {found} of the {len(end.truth)} anomalous streams are found."
    return [first, second]


def _streams(which: Sequence[int]) -> str:
    """Name several streams in a sentence."""
    return f"streams {', '.join(map(str, which[:-1]))} and {which[-1]}"


def _save(table: Table, directory: Path) -> Iterator[Path]:
    from eccaht.base.presentation.style import saving_figure
    from eccaht.research.paper.figures import draw_search

    yield from saving_figure(draw_search(table), directory / "fig1")
    yield save_table(table, directory / "fig1.csv")


def _document(seed: int, table: Table, files: list[str]) -> dict[str, Any]:
    end = fig1.outcome(table)
    return {
        "settings": {
            "policy": fig1.POLICY,
            "seed": seed,
            "streams": fig1.STREAMS,
            "n_anomalies": fig1.N_ANOMALIES,
            "shift": fig1.SHIFT,
            "covariance": {"family": "toeplitz", "rho": fig1.RHO},
            "budget": fig1.BUDGET,
            "measurements": fig1.HORIZON,
        },
        "steps": list(_steps(table)),
        "decision": end.decision,
        "truth": end.truth,
        "right": end.right,
        "right_from": end.right_from,
        "files": files,
    }
