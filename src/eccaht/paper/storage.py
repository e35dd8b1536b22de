"""Results of experiments on disk: what was run, one Parquet file a cell, and tables a person can open.

    DIR/<id>/spec.json                      the entry, number of runs, seed and version of the package
    DIR/<id>/cells/<setting>-<policy>.parquet     also those of policies asked for beside the entry's
    DIR/<id>/manifest.json                  a digest of each cell
    DIR/<id>/summary.csv, curves.csv        derived from the cells

Every file appears by rename, so that a run killed at any moment leaves whole files only.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from eccaht import __version__
from eccaht.covariance.spectrum import effective_rank
from eccaht.files import locked, replacing
from eccaht.paper import manifest
from eccaht.paper.results import Cell, Results
from eccaht.paper.spec import Experiment, Setting
from eccaht.policies import policy_names
from eccaht.randomness import rng_for
from eccaht.statistics import Delay, Estimate, bca_interval, delay, estimate, first_reached, reached_for_good

TARGET = 0.95  # the F1 whose first and last passing are timed
POINTS = 300  # of a curve
_SPEC, _CELLS = "spec.json", "cells"
_WORDS = {"entry": "entry of the catalogue", "version": "version of eccaht", "runs": "number of runs"}


def cells(experiment: Experiment) -> list[Cell]:
    """What has to be run: every policy in every setting, nothing for a table or figure 1."""
    if experiment.kind in ("table", "panels"):
        return []
    return [(k, policy) for k in range(len(experiment.settings)) for policy in experiment.shown]


# -- what was run --------------------------------------------------------------------------------------


def check(directory: Path, experiment: Experiment, runs: int, seed: int) -> None:
    """Refuse to add to results that were made in another way."""
    home = directory / experiment.id
    made = _read_spec(home) if (home / _SPEC).is_file() else None
    if made is None and not any((home / _CELLS).glob("*.parquet")):
        return
    differing = [key for key, value in _spec(experiment, runs, seed).items() if (made or {}).get(key) != value]
    if differing:
        ways = " and ".join(_WORDS.get(key, key) for key in differing)
        how = "in an unknown way" if made is None else f"with another {ways}"
        raise ValueError(f"results in {home} were made {how}: use another --out, or --fresh to discard them")


@contextmanager
def claimed(directory: Path, experiment: Experiment) -> Iterator[None]:
    """Be the only process that writes results of this experiment there."""
    home = directory / experiment.id
    home.mkdir(parents=True, exist_ok=True)
    with locked(home):
        yield


def prepare(directory: Path, experiment: Experiment, runs: int, seed: int, *, fresh: bool = False) -> None:
    """Make the directory, which is claimed, ready for cells: after `check`, or with earlier results discarded."""
    home = directory / experiment.id
    if fresh:
        discard(home)
    check(directory, experiment, runs, seed)
    (home / _CELLS).mkdir(parents=True, exist_ok=True)
    for leftover in (*home.glob(".*.part"), *(home / _CELLS).glob(".*.part")):
        leftover.unlink(missing_ok=True)
    if not (home / _SPEC).is_file():
        with replacing(home / _SPEC) as file:
            file.write(json.dumps(_spec(experiment, runs, seed), indent=1, allow_nan=False).encode() + b"\n")


def discard(home: Path) -> None:
    """Remove the results of one experiment, and no other file; what says how they were made goes last."""
    shutil.rmtree(home / _CELLS, ignore_errors=True)
    for name in (
        "summary.csv",
        "curves.csv",
        f"{home.name}.csv",
        f"{home.name}.pdf",
        f"{home.name}.png",
        manifest.MANIFEST,
        _SPEC,
    ):
        (home / name).unlink(missing_ok=True)


def _spec(experiment: Experiment, runs: int, seed: int) -> dict[str, Any]:
    """As read back from JSON, so that the two compare."""
    spec = {"version": __version__, "runs": runs, "seed": seed, "entry": experiment.as_dict()}
    return json.loads(json.dumps(spec, allow_nan=False))


def _read_spec(home: Path) -> dict[str, Any]:
    try:
        spec = json.loads((home / _SPEC).read_bytes())
    except ValueError as error:
        raise ValueError(f"cannot read {home / _SPEC}: {error}") from None
    if not isinstance(spec, dict):
        raise ValueError(f"cannot read {home / _SPEC}: it holds no specification")
    return spec


def _experiment(entry: dict[str, Any]) -> Experiment:
    settings = ({**setting, "x": np.nan if setting["x"] is None else setting["x"]} for setting in entry["settings"])
    whole = {"settings": tuple(Setting(**setting) for setting in settings), "policies": tuple(entry["policies"])}
    return Experiment(**{**entry, **whole})


# -- cells ---------------------------------------------------------------------------------------------


def cell_path(directory: Path, id: str, cell: Cell) -> Path:
    """The file of a cell."""
    return directory / id / _CELLS / f"{cell[0]}-{cell[1]}.parquet"


def missing(directory: Path, experiment: Experiment) -> list[Cell]:
    """The cells that were not finished yet."""
    return [cell for cell in cells(experiment) if not cell_path(directory, experiment.id, cell).is_file()]


def damaged(directory: Path, experiment: Experiment) -> list[Cell]:
    """The cells whose files are not those that were written for them."""
    home = directory / experiment.id
    spec = _read_spec(home)
    there = set(cells(experiment)) - set(missing(directory, experiment))
    return [cell for cell in cells(experiment) if cell in there and _content(home, spec, cell) is None]


def _content(home: Path, spec: dict[str, Any], cell: Cell) -> bytes | None:
    """The bytes of a cell, None if they are not the ones that were written for it."""
    path = cell_path(home.parent, home.name, cell)
    content = path.read_bytes()
    return content if manifest.belongs(home, spec, path.stem, content) else None


def with_added(directory: Path, experiment: Experiment) -> Experiment:
    """The experiment with all further policies whose cells are complete, whenever they were asked for."""

    def complete(policy: str) -> bool:
        cells = ((k, policy) for k in range(len(experiment.settings)))
        return all(cell_path(directory, experiment.id, cell).is_file() for cell in cells)

    return experiment.beside(*filter(complete, policy_names()))


def save_cell(directory: Path, id: str, cell: Cell, hits: NDArray[np.int32]) -> None:
    """Write the hits of a cell, (runs, horizon), one row a (run, step)."""
    run, step = np.indices(hits.shape, dtype=np.int32)
    columns = {"run": run.ravel(), "step": step.ravel() + np.int32(1), "hits": hits.astype(np.int32).ravel()}
    setting, policy = cell
    table = pl.DataFrame(columns).select(
        pl.lit(setting, pl.Int32).alias("setting"), pl.lit(policy).cast(pl.Categorical).alias("policy"), *columns
    )
    content, path, home = io.BytesIO(), cell_path(directory, id, cell), directory / id
    table.write_parquet(content, compression="zstd")
    manifest.record(home, _read_spec(home), path.stem, content.getvalue())
    with replacing(path) as file:
        file.write(content.getvalue())


def load(directory: Path, id: str) -> Results:
    """Read the results of an experiment, with the entry they were made by and the policies added to it."""
    home = directory / id
    if not (home / _SPEC).is_file():
        raise ValueError(f"no results of {id} in {directory}: run 'eccaht reproduce {id} --out {directory}'")
    spec = _read_spec(home)
    try:
        experiment, runs, seed = _experiment(spec["entry"]), int(spec["runs"]), int(spec["seed"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"{home / _SPEC} was written by another version of eccaht: {error}") from None
    if absent := missing(directory, experiment):
        raise ValueError(f"{len(absent)} cells of {id} in {directory} are missing: run 'eccaht reproduce {id}' again")
    experiment = with_added(directory, experiment)
    shape = runs, experiment.horizon
    hits = {cell: _load_cell(home, spec, cell, shape) for cell in cells(experiment)}
    return Results(experiment, seed, hits)


def _load_cell(home: Path, spec: dict[str, Any], cell: Cell, shape: tuple[int, int]) -> NDArray[np.int32]:
    content = _content(home, spec, cell)
    if content is None:
        again = f"'eccaht reproduce {home.name} --out {home.parent}'"
        path = cell_path(home.parent, home.name, cell)
        raise ValueError(f"{path} is damaged or was made in another way: run {again}, which makes it again")
    hits: NDArray[np.int32] = pl.read_parquet(content, columns=["hits"])["hits"].to_numpy().reshape(shape)
    return hits


# -- tables a person can open --------------------------------------------------------------------------


def save_tables(directory: Path, results: Results) -> list[Path]:
    """Write summary.csv and, for curves, curves.csv."""
    home, experiment = directory / results.experiment.id, results.experiment
    rows = ranks(experiment) if experiment.kind == "table" else [_summary(results, *cell) for cell in cells(experiment)]
    files = [_save_csv(pl.DataFrame(rows, infer_schema_length=None), home / "summary.csv")]
    if experiment.kind == "curves":
        curves = pl.concat([_curve(results, *cell) for cell in cells(experiment)])
        files.append(_save_csv(curves, home / "curves.csv"))
    return files


def ranks(experiment: Experiment) -> list[dict[str, Any]]:
    """Effective ranks of the covariances of an experiment."""
    built = [(setting.label, setting.covariance()) for setting in experiment.settings]
    return [
        {"family": label, "shannon": effective_rank(S), "participation": effective_rank(S, kind="participation")}
        for label, S in built
    ]


def curve_steps(horizon: int) -> NDArray[np.intp]:
    """About 300 measurements, all of the first ones and then ever fewer."""
    return np.unique(np.geomspace(1, horizon, min(horizon, POINTS)).round().astype(np.intp))


def _summary(results: Results, k: int, policy: str) -> dict[str, Any]:
    setting, f1 = results.experiment.settings[k], results.f1(k, policy)
    runs, horizon = f1.shape
    return {
        "setting": k,
        "label": setting.label,
        "x": None if np.isnan(setting.x) else setting.x,
        "policy": policy,
        **_named("first", delay([first_reached(run, TARGET) for run in f1], horizon, rng=_bootstrap(results))),
        **_named("good", delay([reached_for_good(run, TARGET) for run in f1], horizon, rng=_bootstrap(results))),
        **_named("final_f1", estimate(f1[:, -1], rng=_bootstrap(results))),
        "runs": runs,
        "horizon": horizon,
    }


def _named(what: str, found: Delay | Estimate) -> dict[str, float | int | None]:
    low, high = found.interval or (None, None)
    censored = {f"{what}_censored": found.censored} if isinstance(found, Delay) else {}
    return {f"{what}_mean": found.mean, f"{what}_low": low, f"{what}_high": high, **censored}


def _curve(results: Results, k: int, policy: str) -> pl.DataFrame:
    steps = curve_steps(results.experiment.horizon)
    f1 = results.f1(k, policy)[:, steps - 1]
    low, high = bca_interval(f1, rng=_bootstrap(results))
    columns = {"step": steps, "mean": f1.mean(axis=0), "low": low, "high": high}
    return pl.DataFrame(columns, nan_to_null=True).select(
        pl.lit(k).alias("setting"), pl.lit(policy).alias("policy"), *columns
    )


def _bootstrap(results: Results) -> np.random.Generator:
    """The same resamples for every number: none depends on which others are asked for."""
    return rng_for(results.seed, "bootstrap")


def _save_csv(table: pl.DataFrame, path: Path) -> Path:
    with replacing(path) as file:
        table.write_csv(file)
    return path


def up_to_date(derived: Sequence[Path], sources: Sequence[Path]) -> bool:
    """Are all these files there, and none older than what they are made from?"""
    if not all(path.exists() for path in derived):
        return False
    return min(path.stat().st_mtime_ns for path in derived) >= max(path.stat().st_mtime_ns for path in sources)
