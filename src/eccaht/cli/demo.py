"""`eccaht demo`: one search to watch."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from eccaht.paper.fig1 import Moment, Outcome
    from eccaht.paper.side_by_side import Needed

# over seeds 0 to 199: runs whose set is right at the end, runs that the gap rule would have stopped,
# and those it would have stopped with the right set; tests/cli/test_demo.py counts them again
SEEDS, RIGHT, STOPPED, STOPPED_RIGHT = 200, 150, 157, 105
_FILES = ("fig1.pdf", "fig1.png", "fig1.csv")


def demo(
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed is another run.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the figure goes.")] = Path("demo"),
    delay: Annotated[
        float, typer.Option(min=0, max=60, metavar="SECONDS", help="Time for each measurement on the screen.")
    ] = 0.8,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
) -> None:
    """Watch a search for 3 anomalous streams among 15, and draw it.

    The streams are simulated: each shares noise with its neighbours, and 3 of them have shifted. ecc-aht chooses 20
    measurements and names the 3. Seed 0 is simply the default; not every seed ends right. At the end its measurements
    are counted beside those of joint, which uses the exact likelihood of whole sets.
    """
    from eccaht.arrays import as_number
    from eccaht.cli.output import deliver, writable_directory
    from eccaht.paper.fig1 import outcome, tabulate, watch
    from eccaht.paper.side_by_side import side_by_side

    as_number(delay, "--delay")
    directory = writable_directory(out, files=_FILES)
    moments = list(watch(seed)) if as_json else _present(watch(seed), seed, delay)
    table, rows = tabulate(moments), list(side_by_side(seed))

    def document(files: list[str]) -> dict[str, Any]:
        told = _document(seed, moments, outcome(table), files)
        return told | {"side_by_side": [_needed(row) for row in rows]}

    def tell() -> None:
        for line in beside(rows):
            typer.echo(line)

    deliver([_save(table, directory)], tell=tell, document=document if as_json else None)


def _present(moments: Iterable[Moment], seed: int, delay: float) -> list[Moment]:
    """Show the search as lively as the output allows, and return it."""
    from eccaht.paper.fig1 import outcome, tabulate

    if sys.stdout.isatty():
        from rich.console import Console

        from eccaht.cli.live import fits, show, verdict

        console = Console(highlight=False)
        if fits(console):
            seen = show(moments, console, delay)
            console.print(verdict(seen[-1], summary(outcome(tabulate(seen)))))
            return seen
    seen = _tell(moments, seed)
    for line in summary(outcome(tabulate(seen))):
        typer.echo(line)
    return seen


def _tell(moments: Iterable[Moment], seed: int) -> list[Moment]:
    """One plain line a measurement."""
    from eccaht.paper.fig1 import N_ANOMALIES, POLICY, STREAMS

    seen = []
    typer.echo(f"Which {N_ANOMALIES} of {STREAMS} correlated streams are anomalous? ({POLICY}, seed {seed})")
    for now in moments:
        if now.step:
            named = " ".join(f"{k:2d}" for k in now.decision)
            typer.echo(
                f"measurement {now.step:2d}: stream {now.champion:2d} against {now.challenger:2d}"
                f"  reading {now.reading:+6.2f}  set {named}  lead {now.lead:5.2f}"
            )
        seen.append(now)
    return seen


def summary(end: Outcome) -> list[str]:
    """Say how the search ended, in lines that fit a terminal."""
    from eccaht.cli.live import streams
    from eccaht.paper.fig1 import HORIZON

    if end.right:
        first = f"Named {streams(end.decision)}: right, these are the anomalous streams."
        second = f"{HORIZON} measurements were made; the set is right for good from measurement {end.right_from} on."
    else:
        first = f"Named {streams(end.decision)}: WRONG, anomalous are {streams(end.truth)}."
        found = len({*end.decision} & {*end.truth})
        second = f"{HORIZON} measurements were made; {found} of the {len(end.truth)} anomalous streams are found."
    if end.stopped_at is None or end.stopped_decision is None:
        third = "The gap rule would not stop yet."
    elif end.stopped_right:
        third = f"The gap rule would stop at measurement {end.stopped_at}: right."
    else:
        named = streams(end.stopped_decision)
        third = f"The gap rule would stop at measurement {end.stopped_at}: WRONG, {named}."
    return [
        first,
        second,
        third,
        f"Over seeds 0 to {SEEDS - 1} the set is right after {HORIZON} measurements in {RIGHT} of {SEEDS} runs;",
        f"the gap rule stops {STOPPED} of them, {STOPPED_RIGHT} of these with the right set.",
    ]


def beside(rows: list[Needed]) -> list[str]:
    """The policies side by side, in lines that fit a terminal."""
    from eccaht.paper.side_by_side import HORIZON, RUNS

    lines = ["", f"Measurements until the set is right for good, in {RUNS} searches of each kind:"]
    lines.append(f"{'':33}{'policy':10}{'median':>8}{'slowest':>9}   never in {HORIZON}")
    for k, row in enumerate(rows):
        name = row.problem if k == 0 or rows[k - 1].problem != row.problem else ""
        middle = f"over {HORIZON}" if row.median is None else f"{row.median:g}"
        slowest = "never" if row.slowest is None else f"{row.slowest}"
        lines.append(f"{name:33}{row.policy:10}{middle:>8}{slowest:>9}   {row.never} of {len(row.times)}")
    return lines


def _needed(row: Needed) -> dict[str, Any]:
    return {"problem": row.problem, "policy": row.policy, "times": row.times, "median": row.median, "never": row.never}


def _save(table: dict[str, Any], directory: Path) -> Iterator[Path]:
    from eccaht.experiments.tables import save_table
    from eccaht.paper.fig1 import draw
    from eccaht.presentation.style import saving_figure

    yield from saving_figure(draw(table), directory / "fig1")
    yield save_table(table, directory / "fig1.csv")


def _document(seed: int, moments: list[Moment], end: Outcome, files: list[str]) -> dict[str, Any]:
    from eccaht.paper import fig1

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
        "steps": [_step(moment) for moment in moments if moment.step],
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


def _step(moment: Moment) -> dict[str, Any]:
    import numpy as np

    names = ("step", "champion", "challenger", "weights", "reading", "scores", "beliefs", "decision", "lead")
    return {name: np.asarray(getattr(moment, name)).tolist() for name in names}
