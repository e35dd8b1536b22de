"""`eccaht demo`: one search to watch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from eccaht.cli.output import Json, deliver, option, writable_directory
from eccaht.research.experiments.tables import Table, save_table
from eccaht.research.paper import fig1
from eccaht.research.paper.fig1 import HORIZON, Fig1Outcome, Moment

_FILES = ("fig1.pdf", "fig1.png", "fig1.csv")
_STEP = ("step", "champion", "challenger", "weights", "reading", "scores", "beliefs", "decision", "lead")


def demo(
    seed: Annotated[int, option("N", "Another seed is another run.", min=0)] = 0,
    out: Annotated[Path, option("DIR", "Where the figure goes.")] = Path("demo"),
    as_json: Json = False,
) -> None:
    """Watch a search for 3 anomalous streams among 15, and draw it.

    The streams are simulated: each shares noise with its neighbours, and 3 of them have shifted. ecc-aht
    chooses 20 measurements.
    """
    directory = writable_directory(out, files=_FILES)
    moments = list(fig1.watch(seed)) if as_json else _show(fig1.watch(seed), seed)
    deliver(
        [_save(fig1.tabulate(moments), directory)],
        show=lambda: None,
        document=lambda files: _document(seed, moments, files),
        as_json=as_json,
    )


def _show(moments: Iterable[Moment], seed: int) -> list[Moment]:
    """Print one plain line a measurement and the summary, and return the search."""
    seen, which = [], f"Which {fig1.N_ANOMALIES} of {fig1.STREAMS} correlated streams are anomalous?"
    typer.echo(f"{which} ({fig1.POLICY}, seed {seed})")
    for now in moments:
        if now.step:
            named = " ".join(f"{k:2d}" for k in now.decision)
            typer.echo(
                f"measurement {now.step:2d}: stream {now.champion:2d} against {now.challenger:2d}"
                f"  reading {now.reading:+6.2f}  set {named}  lead {now.lead:5.2f}"
            )
        seen.append(now)
    typer.echo("\n".join(summary(fig1.outcome(fig1.tabulate(seen)))))
    return seen


def summary(end: Fig1Outcome) -> list[str]:
    """Say how the search ended, in lines that fit a terminal."""
    if end.right:
        first = f"Named {_streams(end.decision)}: right, these are the anomalous streams."
        second = f"{HORIZON} measurements were made; the set is right for good from measurement {end.right_from} on."
    else:
        first = f"Named {_streams(end.decision)}: WRONG, anomalous are {_streams(end.truth)}."
        found = len({*end.decision} & {*end.truth})
        second = f"{HORIZON} measurements were made; {found} of the {len(end.truth)} anomalous streams are found."
    if end.stopped_at is None or end.stopped_decision is None:
        third = "The gap rule would not stop yet."
    elif end.stopped_right:
        third = f"The gap rule would stop at measurement {end.stopped_at}: right."
    else:
        named = _streams(end.stopped_decision)
        third = f"The gap rule would stop at measurement {end.stopped_at}: WRONG, {named}."
    return [first, second, third]


def _streams(which: Sequence[int]) -> str:
    """Name several streams in a sentence."""
    return f"streams {', '.join(map(str, which[:-1]))} and {which[-1]}"


def _save(table: Table, directory: Path) -> Iterator[Path]:
    from eccaht.base.presentation.style import saving_figure
    from eccaht.research.paper.figures import draw_search

    yield from saving_figure(draw_search(table), directory / "fig1")
    yield save_table(table, directory / "fig1.csv")


def _document(seed: int, moments: list[Moment], files: list[str]) -> dict[str, Any]:
    end = fig1.outcome(fig1.tabulate(moments))
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
            "alpha": fig1.ALPHA,
        },
        "steps": [
            {name: np.asarray(getattr(moment, name)).tolist() for name in _STEP} for moment in moments if moment.step
        ],
        "decision": end.decision,
        "truth": end.truth,
        "right": end.right,
        "right_from": end.right_from,
        "gap_rule": {
            "threshold": moments[-1].threshold,
            "stopped_at": end.stopped_at,
            "decision": end.stopped_decision,
            "right": end.stopped_right,
        },
        "files": files,
    }
