"""Results of experiments on disk: what was run, and one Parquet file a cell.

    DIR/<id>/spec.json                      the entry, number of runs, seed and version of the package
    DIR/<id>/cells/<setting>-<policy>.parquet

Every file appears by rename, so that a run killed at any moment leaves complete files only.
"""

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from eccaht.base.files import exclusive, replacing
from eccaht.research.experiments.tables import save_json
from eccaht.research.paper.experiment import Cell, Experiment
from eccaht.research.paper.results import Results
from eccaht.version import __version__

SPECIFICATION, _CELLS, _LOCK = "spec.json", "cells", ".lock"
_WORDS = {"entry": "entry of the catalogue", "version": "version of eccaht", "runs": "number of runs"}


def check(directory: Path, experiment: Experiment, runs: int, seed: int) -> None:
    """Refuse to add to results that were made in another way."""
    home = directory / experiment.id
    made = _read_spec(home) if (home / SPECIFICATION).is_file() else None
    if made is None and not any((home / _CELLS).glob("*.parquet")):
        return
    differing = [key for key, value in _spec(experiment, runs, seed).items() if (made or {}).get(key) != value]
    if differing:
        ways = " and ".join(_WORDS.get(key, key) for key in differing)
        how = "in an unknown way" if made is None else f"with another {ways}"
        raise ValueError(f"results in {home} were made {how}: use another --out, or --fresh to discard them")


@contextmanager
def claimed(directory: Path, experiment: Experiment) -> Iterator[None]:
    home = directory / experiment.id
    home.mkdir(parents=True, exist_ok=True)
    with exclusive(home / _LOCK, f"another process is writing to {home}: let it end, or use another --out"):
        yield


def prepare(directory: Path, experiment: Experiment, runs: int, seed: int, *, fresh: bool = False) -> None:
    """Make the claimed directory ready for cells: after `check`, or with earlier results discarded."""
    home = directory / experiment.id
    if fresh:  # no other file goes; what says how the results were made goes last
        shutil.rmtree(home / _CELLS, ignore_errors=True)
        for name in (*experiment.tables, *experiment.pictures, SPECIFICATION):
            (home / name).unlink(missing_ok=True)
    check(directory, experiment, runs, seed)
    (home / _CELLS).mkdir(parents=True, exist_ok=True)
    for leftover in (*home.glob(".*.part"), *(home / _CELLS).glob(".*.part")):
        leftover.unlink(missing_ok=True)
    if not (home / SPECIFICATION).is_file():
        save_json(_spec(experiment, runs, seed), home / SPECIFICATION)


def _spec(experiment: Experiment, runs: int, seed: int) -> dict[str, Any]:
    """As read back from JSON, so that the two compare."""
    made = {"version": __version__, "runs": experiment.repeats(runs), "seed": seed, "entry": experiment.as_dict()}
    return json.loads(json.dumps(made, allow_nan=False))


def _read_spec(home: Path) -> dict[str, Any]:
    try:
        spec = json.loads((home / SPECIFICATION).read_bytes())
    except ValueError as error:
        raise ValueError(f"cannot read {home / SPECIFICATION}: {error}") from None
    if not isinstance(spec, dict):
        raise ValueError(f"cannot read {home / SPECIFICATION}: it holds no specification")
    return spec


def cell_path(directory: Path, id: str, cell: Cell) -> Path:
    return directory / id / _CELLS / f"{cell[0]}-{cell[1]}.parquet"


def unfinished(directory: Path, experiment: Experiment) -> list[Cell]:
    """The cells without a file that can be read."""
    runs = int(_read_spec(directory / experiment.id)["runs"])
    return [cell for cell in experiment.cells if _read(directory, experiment, cell, runs) is None]


def save_cell(directory: Path, experiment: Experiment, cell: Cell, found: NDArray[Any]) -> None:
    """Write one row a (run, step) of hits, of other columns one row a run."""
    if experiment.columns:
        columns = {"run": np.arange(len(found), dtype=np.int32), **dict(zip(experiment.columns, found.T, strict=True))}
    else:
        run, step = np.indices(found.shape, dtype=np.int32)
        columns = {"run": run.ravel(), "step": step.ravel() + np.int32(1), "hits": found.astype(np.int32).ravel()}
    setting, policy = cell
    table = pl.DataFrame(columns).select(
        pl.lit(setting, pl.Int32).alias("setting"), pl.lit(policy).cast(pl.Categorical).alias("policy"), *columns
    )
    content = io.BytesIO()
    table.write_parquet(content, compression="zstd")
    with replacing(cell_path(directory, experiment.id, cell)) as file:
        file.write(content.getvalue())


def load(directory: Path, id: str) -> Results:
    """Read the results of an experiment, with the entry they were made by."""
    home = directory / id
    if not (home / SPECIFICATION).is_file():
        raise ValueError(f"no results of {id} in {directory}: run 'eccaht reproduce {id} --out {directory}'")
    spec = _read_spec(home)
    try:
        experiment, runs, seed = Experiment.from_dict(spec["entry"]), int(spec["runs"]), int(spec["seed"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{home / SPECIFICATION} was written by another version of eccaht: {error}") from None
    cells = {}
    for cell in experiment.cells:
        if (values := _read(directory, experiment, cell, runs)) is None:
            path, again = cell_path(directory, id, cell), f"'eccaht reproduce {id} --out {directory}'"
            raise ValueError(f"{path} is {'damaged' if path.exists() else 'missing'}: run {again}, which makes it")
        cells[cell] = values
    return Results(experiment, seed, cells)


def _read(directory: Path, experiment: Experiment, cell: Cell, runs: int) -> NDArray[Any] | None:
    """What a cell holds, (runs, steps or columns); None if its file is damaged."""
    names, columns = experiment.columns or ("hits",), len(experiment.columns) or experiment.horizon
    try:
        table = pl.read_parquet(cell_path(directory, experiment.id, cell), columns=list(names))
    except (pl.exceptions.PolarsError, OSError):
        return None
    values = table.to_numpy()
    return values.reshape(runs, columns) if values.size == runs * columns else None
