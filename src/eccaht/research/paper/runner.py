"""Run experiments: cells on many processes or machines, each stored when it is complete, then tables and figures.

No number depends on how many processes there are, on what else runs, or on where an earlier call was interrupted.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eccaht.base.arrays import as_count
from eccaht.base.randomness import check_seed
from eccaht.research.experiments.comparison import run_policy
from eccaht.research.experiments.tables import Table, save_table
from eccaht.research.experiments.workers import Backend, Start, local, workers
from eccaht.research.paper import fig1, storage
from eccaht.research.paper.experiment import Cell, Experiment, Kind
from eccaht.research.paper.lemmas import follow
from eccaht.research.paper.results import (
    Results,
    column_table,
    curve_table,
    error_table,
    rank_table,
    run_table,
    slope_table,
    stopped_search,
    stopping_times,
    summary_table,
)
from eccaht.version import __version__

_PIECES = 20  # of a cell


class Progress(NamedTuple):
    """Where the work stands: runs, and experiments whose tables and figures are there.

    experiment: that of the latest runs.
    """

    runs: int
    of_runs: int
    finished: int
    of_finished: int
    experiment: str = ""

    @property
    def share(self) -> float:
        """Of all that is counted, each experiment like one run."""
        whole = self.of_runs + self.of_finished
        return (self.runs + self.finished) / whole if whole else 1.0


class Piece(NamedTuple):
    """Some runs of one cell: all that a worker needs to know."""

    experiment: Experiment
    cell: Cell
    seed: int
    runs: range
    version: str = __version__

    @property
    def key(self) -> tuple[str, Cell]:
        return self.experiment.id, self.cell


def reproduce(
    experiments: Sequence[Experiment],
    directory: Path,
    *,
    runs: int = 20,
    seed: int = 0,
    jobs: int = 1,
    backend: Backend = "loky",
    scheduler: str | None = None,
    fresh: bool = False,
    progress: Callable[[Progress], object] = lambda _: None,
    note: Callable[[str], object] = lambda _: None,
) -> None:
    """Bring the results of some experiments in `directory` to completion; what is there already stays as it is.

    backend: "loky" runs `jobs` processes on this machine, "dask" the workers of the scheduler at that address; tables
    and figures are always made here. fresh: discard earlier results of these experiments first. note: called with
    the cells that are run again because their files were damaged or changed.
    """
    runs, jobs = as_count(runs, "runs", least=1), as_count(jobs, "jobs", least=1)
    (seed,) = check_seed(seed)
    if not fresh:
        for experiment in experiments:
            storage.check(directory, experiment, runs, seed)
    with ExitStack() as claims:
        with workers(backend, scheduler, jobs) as start:
            for experiment in experiments:
                claims.enter_context(storage.claimed(directory, experiment))
                storage.prepare(directory, experiment, runs, seed, fresh=fresh)
            work = [piece for experiment in experiments for piece in _pieces(directory, experiment, runs, seed, note)]
            counter = _Counter(directory, experiments, runs, work, progress)
            with closing(_whole_cells(start, work, counter)) as whole:
                for experiment, cell, found in whole:
                    storage.save_cell(directory, experiment, cell, found)
        finish = local(min(jobs, max(1, len(counter.stale))))
        with closing(finish(_finish, [(directory, id) for id in counter.stale])) as finished:
            for _ in finished:
                counter.advance(finished=1)


class _Counter:
    def __init__(
        self,
        directory: Path,
        experiments: Sequence[Experiment],
        runs: int,
        work: list[Piece],
        progress: Callable[[Progress], object],
    ) -> None:
        unfinished = {piece.experiment.id for piece in work}
        # experiments of many cells first
        ordered = sorted(experiments, key=lambda experiment: -len(experiment.cells))
        self.stale = [e.id for e in ordered if e.id in unfinished or not _up_to_date(directory, e)]
        of_runs = sum(len(experiment.cells) * experiment.repeats(runs) for experiment in experiments)
        self._now = Progress(of_runs - sum(len(piece.runs) for piece in work), of_runs, 0, len(self.stale))
        self._progress = progress
        progress(self._now)

    def advance(self, piece: Piece | None = None, *, finished: int = 0) -> None:
        self._now = self._now._replace(finished=self._now.finished + finished)
        if piece is not None:
            self._now = self._now._replace(runs=self._now.runs + len(piece.runs), experiment=piece.experiment.id)
        self._progress(self._now)


def _pieces(
    directory: Path, experiment: Experiment, runs: int, seed: int, note: Callable[[str], object]
) -> Iterator[Piece]:
    """The runs that are missing or whose file is damaged, cell by cell."""
    runs_of_cell = range(experiment.repeats(runs))
    for cell in storage.unfinished(directory, experiment):
        if (path := storage.cell_path(directory, experiment.id, cell)).exists():
            note(f"{path} is damaged and made again")
        size = -(-len(runs_of_cell) // _PIECES)
        for first in runs_of_cell[::size]:
            yield Piece(experiment, cell, seed, runs_of_cell[first : first + size])


def _whole_cells(
    start: Start, work: list[Piece], counter: _Counter
) -> Generator[tuple[Experiment, Cell, NDArray[Any]], None, None]:
    """Run all pieces, yielding a cell once the last of its runs is in."""
    found: dict[tuple[str, Cell], dict[int, NDArray[Any]]] = {}  # by cell and first run of a piece
    left = Counter(piece.key for piece in work)
    with closing(start(_run, [(k, piece) for k, piece in enumerate(work)])) as results:
        for k, some in results:
            piece = work[k]
            key = piece.key
            found.setdefault(key, {})[piece.runs.start] = some
            left[key] -= 1
            if not left[key]:
                parts = [part for _, part in sorted(found.pop(key).items())]
                yield piece.experiment, piece.cell, np.concatenate(parts)
            counter.advance(piece)


# what one run of a cell leaves, where these are not the hits after each measurement
_RUNS: dict[str, Callable[..., NDArray[Any]]] = {
    "stopping": stopped_search,
    "asymptotics": stopping_times,
    "lemmas": follow,
}


def _run(k: int, piece: Piece) -> tuple[int, NDArray[Any]]:
    if piece.version != __version__:
        raise ValueError(f"a worker has eccaht {__version__}, not {piece.version}: install the same version everywhere")
    experiment, (place, policy) = piece.experiment, piece.cell
    setting = experiment.settings[place]
    problem, options = setting.problem(), {**setting.options, **experiment.policy_options.get(policy, {})}
    seeds, horizon, once = [(piece.seed, run) for run in piece.runs], experiment.horizon, _RUNS.get(experiment.kind)
    try:
        if once is None:
            return k, np.stack([run_policy(problem, policy, horizon, seed, options)[0] for seed in seeds])
        return k, np.stack([once(problem, policy, horizon, seed, options) for seed in seeds])
    except (ValueError, ArithmeticError) as error:
        raise type(error)(f"{experiment.id}, {setting.label}, {error}") from None


def files(directory: Path, experiment: Experiment) -> list[Path]:
    return [*_sources(directory, experiment), *_derived(directory, experiment)]


def _sources(directory: Path, experiment: Experiment) -> list[Path]:
    cells = [storage.cell_path(directory, experiment.id, cell) for cell in experiment.cells]
    return [directory / experiment.id / storage.SPECIFICATION, *cells]


def _derived(directory: Path, experiment: Experiment) -> list[Path]:
    return [directory / experiment.id / name for name in (*experiment.tables, *experiment.pictures)]


def _up_to_date(directory: Path, experiment: Experiment) -> bool:
    """Are all tables and figures there, and none older than what they are made from?"""
    derived, sources = _derived(directory, experiment), _sources(directory, experiment)
    if not all(path.exists() for path in derived):
        return False
    return min(path.stat().st_mtime_ns for path in derived) >= max(path.stat().st_mtime_ns for path in sources)


_TABLES: dict[Kind, tuple[Callable[[Results], Table], ...]] = {  # in the order of their names
    "curves": (summary_table, curve_table),
    "sweep": (summary_table,),
    "rank": (summary_table,),
    "table": (rank_table,),
    "panels": (lambda results: fig1.trace(results.seed, results.experiment),),
    "stopping": (error_table, lambda results: run_table(results, seed=results.seed, version=__version__)),
    "asymptotics": (slope_table, run_table),
    "lemmas": (column_table, run_table),
}


def tables(results: Results) -> dict[str, Table]:
    names, makers = results.experiment.tables, _TABLES[results.experiment.kind]
    return {name: make(results) for name, make in zip(names, makers, strict=True)}


def _finish(directory: Path, id: str) -> str:
    from eccaht.base.presentation.style import saving_figure
    from eccaht.research.paper import figures

    results = storage.load(directory, id)
    experiment = results.experiment
    made = tables(results)
    for name, table in made.items():
        save_table(table, directory / id / name)
    if experiment.pictures:
        panels = experiment.kind == "panels"
        drawn = figures.draw_search(made[f"{id}.csv"]) if panels else figures.draw(results)
        list(saving_figure(drawn, directory / id / id))
    return id
