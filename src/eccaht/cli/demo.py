"""`eccaht demo`: one search to watch."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from eccaht.base.arrays import as_number
from eccaht.cli import demo_view
from eccaht.cli.output import Json, deliver, option, writable_directory
from eccaht.research.experiments.tables import Table, save_table
from eccaht.research.paper import fig1
from eccaht.research.paper.fig1 import HORIZON, Fig1Outcome, Moment

# over seeds 0 to 199: runs whose set is right at the end, runs that the gap rule would have stopped,
# and those it would have stopped with the right set; tests/cli/test_demo.py counts them again
SEEDS, RIGHT, STOPPED, STOPPED_RIGHT = 200, 150, 157, 105
_FILES = ("fig1.pdf", "fig1.png", "fig1.csv")
_STEP = ("step", "champion", "challenger", "weights", "reading", "scores", "beliefs", "decision", "lead")
_NEEDED = ("problem", "policy", "times", "median", "never")


def demo(
    seed: Annotated[int, option("N", "Another seed is another run.", min=0)] = 0,
    out: Annotated[Path, option("DIR", "Where the figure goes.")] = Path("demo"),
    delay: Annotated[float, option("SECONDS", "Time for each measurement on the screen.", min=0, max=60)] = 0.8,
    as_json: Json = False,
) -> None:
    """Watch a search for 3 anomalous streams among 15, and draw it.

    The streams are simulated: each shares noise with its neighbours, and 3 of them have shifted. ecc-aht chooses 20
    measurements and names the 3. Seed 0 is simply the default; not every seed ends right. At the end its measurements
    are counted beside those of joint, which uses the exact likelihood of whole sets.
    """
    as_number(delay, "--delay")
    directory = writable_directory(out, files=_FILES)
    moments = list(fig1.watch(seed)) if as_json else _present(fig1.watch(seed), seed, delay)
    table, rows = fig1.tabulate(moments), list(fig1.side_by_side(seed))
    deliver(
        [_save(table, directory)],
        show=lambda: typer.echo("\n".join(beside(rows))),
        document=lambda files: _document(seed, moments, rows, files),
        as_json=as_json,
    )


def _present(moments: Iterable[Moment], seed: int, delay: float) -> list[Moment]:
    """Show the search as lively as the output allows, and return it."""
    console = Console(highlight=False)
    if sys.stdout.isatty() and demo_view.fits(console):
        seen = demo_view.show(moments, console, delay)
        console.print(demo_view.verdict(seen[-1], summary(fig1.outcome(fig1.tabulate(seen)))))
    else:
        seen = _show(moments, seed)
        typer.echo("\n".join(summary(fig1.outcome(fig1.tabulate(seen)))))
    return seen


def _show(moments: Iterable[Moment], seed: int) -> list[Moment]:
    """One plain line a measurement."""
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
    return seen


def summary(end: Fig1Outcome) -> list[str]:
    """Say how the search ended, in lines that fit a terminal."""
    if end.right:
        first = f"Named {demo_view.streams(end.decision)}: right, these are the anomalous streams."
        second = f"{HORIZON} measurements were made; the set is right for good from measurement {end.right_from} on."
    else:
        first = f"Named {demo_view.streams(end.decision)}: WRONG, anomalous are {demo_view.streams(end.truth)}."
        found = len({*end.decision} & {*end.truth})
        second = f"{HORIZON} measurements were made; {found} of the {len(end.truth)} anomalous streams are found."
    if end.stopped_at is None or end.stopped_decision is None:
        third = "The gap rule would not stop yet."
    elif end.stopped_right:
        third = f"The gap rule would stop at measurement {end.stopped_at}: right."
    else:
        named = demo_view.streams(end.stopped_decision)
        third = f"The gap rule would stop at measurement {end.stopped_at}: WRONG, {named}."
    return [
        first,
        second,
        third,
        f"Over seeds 0 to {SEEDS - 1} the set is right after {HORIZON} measurements in {RIGHT} of {SEEDS} runs;",
        f"the gap rule stops {STOPPED} of them, {STOPPED_RIGHT} of these with the right set.",
    ]


def beside(rows: list[fig1.Needed]) -> list[str]:
    """The policies side by side, in lines that fit a terminal."""
    many, most = fig1.RUNS, fig1.LONGEST
    lines = ["", f"Measurements until the set is right for good, in {many} searches of each kind:"]
    lines.append(f"{'':33}{'policy':10}{'median':>8}{'slowest':>9}   never in {most}")
    for k, row in enumerate(rows):
        name = row.problem if k == 0 or rows[k - 1].problem != row.problem else ""
        middle = f"over {most}" if row.median is None else f"{row.median:g}"
        slowest = "never" if row.slowest is None else f"{row.slowest}"
        lines.append(f"{name:33}{row.policy:10}{middle:>8}{slowest:>9}   {row.never} of {len(row.times)}")
    return lines


def _save(table: Table, directory: Path) -> Iterator[Path]:
    from eccaht.base.presentation.style import saving_figure
    from eccaht.research.paper.figures import draw_search

    yield from saving_figure(draw_search(table), directory / "fig1")
    yield save_table(table, directory / "fig1.csv")


def _document(seed: int, moments: list[Moment], rows: list[fig1.Needed], files: list[str]) -> dict[str, Any]:
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
        "side_by_side": [{name: getattr(row, name) for name in _NEEDED} for row in rows],
    }
