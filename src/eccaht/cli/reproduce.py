"""`eccaht reproduce`: the experiments of the paper, from runs to figures."""

from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal

import typer
from joblib import cpu_count  # type: ignore[import-untyped]

from eccaht.cli.output import Jobs, Seed, note, option, shown_progress, writable_directory
from eccaht.research.paper import runner
from eccaht.research.paper.catalogue import EXPERIMENTS, choose
from eccaht.research.paper.runner import Progress

_RUNS = 20


def reproduce(
    experiments: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Figures, tables, or all.")] = None,
    out: Annotated[Path, option("DIR", "Where results are and go on.")] = Path("results"),
    runs: Annotated[
        int | None, option("N", "Runs of each policy; 2 give a quick version. [default: 20]", min=1)
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    backend: Annotated[
        Literal["loky", "dask"], option(None, "This machine, or the workers of a dask scheduler.")
    ] = "loky",
    scheduler: Annotated[str | None, option("ADDR", "Of the dask scheduler, as tcp://host:8786.")] = None,
    fresh: Annotated[bool, option(None, "Discard earlier results of these experiments.", "--fresh")] = False,
) -> None:
    """Run the paper's experiments and draw their figures.

    Everything is written to DIR/ID: what was run, the hits after each measurement, tables and the figure. A run
    that was interrupted goes on where it was.
    """
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
    files = [str(path) for experiment in chosen for path in runner.files(Path(), experiment)]
    directory, start = writable_directory(out, files=files), monotonic()
    many: dict[str, Any] = {"runs": runs or _RUNS, "seed": seed, "jobs": jobs or cpu_count(), "note": note}
    with shown_progress("starting", 1.0) as bar:
        runner.reproduce(
            chosen,
            directory,
            **many,
            backend=backend,
            scheduler=scheduler,
            fresh=fresh,
            progress=lambda now: bar.stage(_stage(now), now.share),
        )
    what = f"{len(chosen)} experiments are" if len(chosen) > 1 else f"{chosen[0].id} is"
    typer.echo(f"{what} complete in {directory} ({monotonic() - start:.0f} s)")


def _stage(now: Progress) -> str:
    if now.runs < now.of_runs:
        return f"{now.runs:,} of {now.of_runs:,} runs" + f", now {now.experiment}" * bool(now.experiment)
    return f"tables and figures {now.finished} of {now.of_finished}"
