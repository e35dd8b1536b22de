"""`eccaht reproduce`: the experiments of the paper, from runs to figures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal

import typer
from joblib import cpu_count  # type: ignore[import-untyped]

from eccaht.cli.imports import Imports, import_policies
from eccaht.cli.output import Jobs, Seed, note, option, shown_progress, writable_directory
from eccaht.research.paper import runner
from eccaht.research.paper.catalogue import EXPERIMENTS, beside, choose
from eccaht.research.paper.runner import Progress

_RUNS = 20
_EVERY = 20.0  # seconds between two lines where there is no terminal


def reproduce(
    experiments: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Figures, tables, or all.")] = None,
    out: Annotated[Path, option("DIR", "Where results are and go on.")] = Path("results"),
    runs: Annotated[
        int | None, option("N", "Runs of each policy; 2 give a quick version. [default: 20]", min=1)
    ] = None,
    with_: Annotated[
        str | None, option("NAMES", "Policies to show beside the paper's, as joint; with commas between.", "--with")
    ] = None,
    import_: Imports = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    backend: Annotated[
        Literal["loky", "dask"], option(None, "This machine, or the workers of a dask scheduler.")
    ] = "loky",
    scheduler: Annotated[str | None, option("ADDR", "Of the dask scheduler, as tcp://host:8786.")] = None,
    fresh: Annotated[bool, option(None, "Discard earlier results of these experiments.", "--fresh")] = False,
) -> None:
    """Run the paper's experiments and draw their figures.

    Everything is written to DIR/ID: what was run, the hits after each measurement, tables and the figure. A run that
    was interrupted, or killed, goes on where it was; what is complete is not run again. The numbers do not depend on
    the number of processes or on where they run. What --with adds is kept, and shown from then on.
    """
    import_policies(import_)
    if not experiments:
        raise ValueError(f"name what to reproduce: all, {', '.join(EXPERIMENTS)}")
    chosen = choose(experiments)
    if runs is not None and not any(experiment.cells for experiment in chosen):
        ids = " and ".join(experiment.id for experiment in chosen)
        raise ValueError(f"nothing is repeated in {ids}: drop --runs")
    if backend == "dask" and scheduler is None:
        raise ValueError("--backend dask needs the address of a scheduler: add --scheduler ADDR")
    if backend != "dask" and scheduler is not None:
        raise ValueError("--scheduler is for the dask backend: add --backend dask")
    chosen = beside(chosen, [] if with_ is None else [name.strip() for name in with_.split(",")], note)
    files = [str(path) for experiment in chosen for path in runner.files(Path(), experiment)]
    directory, start = writable_directory(out, files=files), monotonic()
    many: dict[str, Any] = {"runs": runs or _RUNS, "seed": seed, "jobs": jobs or cpu_count(), "note": note}
    with _shown() as progress:
        runner.reproduce(
            chosen, directory, **many, backend=backend, scheduler=scheduler, fresh=fresh, progress=progress
        )
    what = f"{len(chosen)} experiments are" if len(chosen) > 1 else f"{chosen[0].id} is"
    typer.echo(f"{what} complete in {directory} ({monotonic() - start:.0f} s)")


@contextmanager
def _shown() -> Iterator[Callable[[Progress], object]]:
    """A bar on a terminal, a line now and then elsewhere; nothing if there is nothing to do."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    with shown_progress("starting", 1.0) as bar:
        yield lambda now: bar.stage(_stage(now), now.share)


class _Lines:
    """Say how far it is every 20 seconds and at the end of each stage."""

    def __init__(self) -> None:
        self._start, self._last, self._stage = monotonic(), monotonic(), ""

    def __call__(self, now: Progress) -> None:
        if now.runs == now.of_runs and now.finished == now.of_finished:
            return
        time, stage = monotonic(), "figures" if now.runs == now.of_runs else "runs"
        if stage == self._stage and time - self._last < _EVERY:
            return
        self._last, self._stage = time, stage
        spent = time - self._start
        left = f", about {spent / now.share - spent:.0f} s left" if now.share > 0.02 else ""
        typer.echo(f"{100 * now.share:3.0f} %: {_stage(now)}{left}", err=True)


def _stage(now: Progress) -> str:
    if now.runs < now.of_runs:
        return f"{now.runs:,} of {now.of_runs:,} runs" + f", now {now.experiment}" * bool(now.experiment)
    return f"tables and figures {now.finished} of {now.of_finished}"
