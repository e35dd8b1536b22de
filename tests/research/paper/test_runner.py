"""The same tables whoever runs them, however often they are interrupted."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal

from eccaht.base.files import NotWritten, exclusive
from eccaht.research.experiments.comparison import compare
from eccaht.research.paper import figures, runner, storage
from eccaht.research.paper.catalogue import EXPERIMENTS
from eccaht.research.paper.experiment import Experiment, Setting
from eccaht.research.paper.runner import Progress, reproduce
from tests.base.test_files import full_disk
from tests.checks.held import held_after
from tests.clusters import cluster

RUNS, SEED = 3, 4
SMALL = Experiment(
    "small",
    "A small one",
    "curves",
    (
        Setting("rbf", "rbf", {"K": 16, "length_scale": 2.0}, 2, 4.0, 3.0),
        Setting("ridge", "toeplitz", {"K": 16, "rho": 0.7}, 2, 4.0, 3.0, options={"regularize": 0.01}),
    ),
    ("ecc-aht", "random-sparse"),
    horizon=30,
)
SWEEP = replace(
    SMALL, id="sweep", kind="sweep", settings=tuple(replace(s, x=float(k)) for k, s in enumerate(SMALL.settings))
)
TABLE = replace(SMALL, id="table", kind="table", policies=())
RULES = [
    replace(
        SMALL,
        id=id,
        kind=EXPERIMENTS[id].kind,
        settings=(Setting("toeplitz", "toeplitz", {"K": 16, "rho": 0.3}, 2, 2.0, 3.0),),
        policies=("ecc-aht",),
        horizon=1000,
        policy_options=EXPERIMENTS[id].policy_options,
        searches=EXPERIMENTS[id].searches,
    )
    for id in ("stopping", "asymptotics")
]
ALL = [SMALL, SWEEP, TABLE, EXPERIMENTS["fig1"], *RULES]


def without_figures(patch: pytest.MonkeyPatch) -> None:
    for name in ("draw", "draw_search"):
        patch.setattr(figures, name, lambda _: Figure(figsize=(1, 1)))


@pytest.fixture(autouse=True)
def _plain_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    without_figures(monkeypatch)


def run(
    directory: Path, *experiments: Experiment, runs: int = RUNS, jobs: int = 1, fresh: bool = False
) -> list[Progress]:
    reported: list[Progress] = []
    chosen = experiments or ALL
    reproduce(chosen, directory, runs=runs, seed=SEED, jobs=jobs, fresh=fresh, progress=reported.append)
    return reported


def tables(directory: Path) -> dict[str, bytes]:
    """Every file but the pictures."""
    files = [path for path in directory.rglob("*") if path.is_file() and path.suffix not in (".pdf", ".png")]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of it, run once without interruption."""
    directory = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        run(directory)
    return directory


def test_hits_are_those_of_a_comparison(whole: Path) -> None:
    results = storage.load(whole, "small")
    assert results.experiment.as_dict() == SMALL.as_dict()
    assert (results.runs, results.seed) == (RUNS, SEED)
    for k, setting in enumerate(SMALL.settings):
        options = {"runs": RUNS, "horizon": SMALL.horizon, "seed": SEED, "options": setting.options}
        records = compare(setting.problem(), SMALL.policies, **options)  # type: ignore[arg-type]
        for policy in SMALL.policies:
            assert results.cells[k, policy].dtype == np.int32
            assert_array_equal(results.cells[k, policy], records.hits[policy])


def test_summaries_can_be_opened(whole: Path) -> None:
    summary = pl.read_csv(whole / "sweep" / "summary.csv")
    assert summary["x"].to_list() == [0, 0, 1, 1]
    first = summary.row(0, named=True)
    assert (first["policy"], first["runs"], first["horizon"]) == ("ecc-aht", RUNS, SMALL.horizon)
    assert first["first_low"] <= first["first_mean"] <= first["first_high"]
    assert first["first_mean"] <= first["good_mean"]
    final = storage.load(whole, "sweep").f1(0, "ecc-aht")[:, -1].mean()
    assert first["final_f1_mean"] == pytest.approx(final, abs=1e-15)
    curves = pl.read_csv(whole / "small" / "curves.csv")
    assert curves.columns == ["setting", "policy", "step", "mean", "low", "high"]
    f1 = storage.load(whole, "small").f1(1, "random-sparse").mean(axis=0)
    some = curves.filter(setting=1, policy="random-sparse")
    np.testing.assert_allclose(some["mean"], f1[some["step"].to_numpy() - 1])
    assert pl.read_csv(whole / "table" / "summary.csv").columns == ["family", "shannon", "participation"]
    assert {path.name for path in (whole / "fig1").iterdir()} >= {"fig1.csv", "fig1.pdf", "fig1.png"}
    assert not (whole / "table" / "table.png").exists()


def test_searches_of_a_stopping_rule_are_cells_like_the_others(whole: Path) -> None:
    stopping, asymptotics = (storage.load(whole, entry.id) for entry in RULES)
    assert (stopping.runs, asymptotics.runs) == (10 * RUNS, RUNS)
    runs = pl.read_csv(whole / "stopping" / "runs.csv")
    assert_array_equal(runs.select(*stopping.experiment.columns).to_numpy(), stopping.cells[0, "ecc-aht"])
    (counted,) = pl.read_csv(whole / "stopping" / "summary.csv").rows(named=True)
    assert counted["wrong"] == int((runs["hits"] < 2).sum())
    assert counted["share_low"] <= counted["share"] <= counted["share_high"]
    stops = pl.read_csv(whole / "asymptotics" / "runs.csv")
    assert (stops["first_stop"] < stops["last_stop"]).any()
    (slope,) = pl.read_csv(whole / "asymptotics" / "summary.csv").rows(named=True)
    assert slope["slope_low"] <= slope["slope"] <= slope["slope_high"]


def test_two_processes_write_the_same_tables(whole: Path, tmp_path: Path) -> None:
    reported = run(tmp_path, jobs=2)
    assert tables(tmp_path) == tables(whole)
    assert reported[0].share == 0
    runs = sum(len(experiment.cells) * experiment.repeats(RUNS) for experiment in ALL)
    assert reported[-1]._replace(experiment="") == Progress(runs, runs, 6, 6)
    assert {now.experiment for now in reported} == {"", *(e.id for e in ALL if e.cells)}
    assert [now.runs for now in reported] == sorted(now.runs for now in reported)
    assert [now.share for now in reported] == sorted(now.share for now in reported)


def test_pieces_of_a_cell_make_the_same_cell(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_PIECES", 1)
    run(tmp_path)
    assert tables(tmp_path) == tables(whole)


def test_a_second_call_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for work in ("_run", "_finish"):
        monkeypatch.setattr(runner, work, lambda *_: pytest.fail("it is done"))
    run(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_only_missing_cells_are_run_again(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path)
    (tmp_path / "small" / "cells" / "0-ecc-aht.parquet").unlink()
    (tmp_path / "sweep" / "sweep.png").unlink()
    leftover = tmp_path / "small" / "cells" / ".0-ecc-aht.parquet.0123abcd.part"
    leftover.write_bytes(b"half")
    ran, finished = [], []
    once, finish = runner._run, runner._finish

    def counted_run(k: int, piece: runner.Piece) -> object:
        ran.append(piece.key)
        return once(k, piece)

    def counted_finish(directory: Path, id: str) -> str:
        finished.append(id)
        return finish(directory, id)

    monkeypatch.setattr(runner, "_run", counted_run)
    monkeypatch.setattr(runner, "_finish", counted_finish)
    run(tmp_path)
    assert set(ran) == {("small", (0, "ecc-aht"))}
    assert sorted(finished) == ["small", "sweep"]
    assert tables(tmp_path) == tables(whole)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"runs": 9}, "number of runs"),
        ({"seed": 9}, "seed"),
        ({"version": "9"}, "version of eccaht"),
        ({"entry": {**SMALL.as_dict(), "horizon": 9}}, "entry of the catalogue"),
    ],
)
def test_results_made_in_another_way_are_not_mixed_in(
    change: dict[str, object], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, SMALL)
    spec = tmp_path / "small" / "spec.json"
    spec.write_text(json.dumps({**json.loads(spec.read_text()), **change}))
    (tmp_path / "small" / "cells" / "0-ecc-aht.parquet").unlink()
    before = tables(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_run", lambda *_: pytest.fail("work began"))
        with pytest.raises(ValueError, match=f"made with another {words}: use another --out, or --fresh"):
            run(tmp_path, TABLE, SMALL)
    assert tables(tmp_path) == before


def test_fresh_discards_results_and_nothing_else(whole: Path, tmp_path: Path) -> None:
    run(tmp_path, SMALL, runs=1)
    (tmp_path / "small" / "notes.txt").write_text("mine")
    run(tmp_path, SMALL, fresh=True)
    found = tables(tmp_path)
    assert found.pop("small/notes.txt") == b"mine"
    assert found == {name: text for name, text in tables(whole).items() if name.startswith("small/")}


def test_cells_of_unknown_origin_are_not_mixed_in(tmp_path: Path) -> None:
    run(tmp_path, SMALL)
    (tmp_path / "small" / "spec.json").unlink()
    with pytest.raises(ValueError, match="unknown way"):
        run(tmp_path, SMALL)


def test_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no results of small"):
        storage.load(tmp_path, "small")
    run(tmp_path, SMALL)
    cell = tmp_path / "small" / "cells" / "0-ecc-aht.parquet"
    cell.write_bytes(cell.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"0-ecc-aht\.parquet is damaged"):
        storage.load(tmp_path, "small")
    run(tmp_path, SMALL)
    assert storage.load(tmp_path, "small").cells.keys() == {*SMALL.cells}
    cell.unlink()
    with pytest.raises(ValueError, match="missing"):
        storage.load(tmp_path, "small")
    (tmp_path / "small" / "spec.json").write_text("{")
    with pytest.raises(ValueError, match=r"cannot read .*spec.json"):
        run(tmp_path, SMALL)


def test_a_second_process_leaves_the_first_ones_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, SMALL)
    (tmp_path / "small" / "cells" / "0-ecc-aht.parquet").unlink()
    unfinished = tmp_path / "small" / "cells" / ".0-ecc-aht.parquet.0123abcd.part"
    unfinished.write_bytes(b"half")
    before = tables(tmp_path)
    with monkeypatch.context() as patch, exclusive(tmp_path / "small" / ".lock", ""):
        patch.setattr(runner, "_run", lambda *_: pytest.fail("work began"))
        with pytest.raises(ValueError, match="another process"):
            run(tmp_path, SMALL)
        assert tables(tmp_path) == before
    run(tmp_path, SMALL)
    assert not unfinished.exists()


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_full_disk_ends_it_with_the_file_and_no_other_word(jobs: int, tmp_path: Path) -> None:
    with full_disk(1000), pytest.raises(NotWritten, match=r"cannot write .*parquet: File too large"):
        run(tmp_path, SMALL, jobs=jobs)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} <= {".lock", "spec.json"}
    assert not list(tmp_path.rglob("*.part"))


# -- killed, and on a cluster --------------------------------------------------------------------------

FIGURES = ("fig5a", "fig2")
REPRODUCE = ["reproduce", *FIGURES, "--runs", "2", "--seed", str(SEED)]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        run(directory, *(EXPERIMENTS[id] for id in FIGURES), runs=2)
    return directory


def wait_for_workers(group: int) -> None:
    """The processes that a killed one has started end by themselves."""
    limit = time.monotonic() + 120
    with contextlib.suppress(ProcessLookupError):  # the group is empty
        while time.monotonic() < limit:
            os.killpg(group, 0)
            time.sleep(0.05)
        os.killpg(group, signal.SIGKILL)
        pytest.fail("workers outlived the process that started them")


_ONE_PIECE = """
import sys, time
from pathlib import Path
from eccaht.research.experiments.workers import local


def hold(path):
    Path(path).touch()
    time.sleep(600)


list(local(2)(hold, [(sys.argv[1],)]))
"""


def test_a_worker_that_got_no_piece_ends_with_the_killed_process(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", _ONE_PIECE, str(tmp_path / "begun")], start_new_session=True)
    while process.poll() is None and not (tmp_path / "begun").exists():
        time.sleep(0.002)
    process.kill()
    process.wait()
    wait_for_workers(process.pid)


def test_a_killed_run_goes_on_where_it_was(published: Path, tmp_path: Path) -> None:
    command = held_after(".parquet", *REPRODUCE, "--jobs", "2", "--out", str(tmp_path))
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(tmp_path.glob("*/cells/*.parquet")):
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    wait_for_workers(process.pid)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/cells/*.parquet")}
    assert len(kept) == 1
    run(tmp_path, *(EXPERIMENTS[id] for id in FIGURES), runs=2)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert tables(tmp_path) == tables(published)


@pytest.mark.parametrize(
    "processes", [pytest.param(["processes"], marks=pytest.mark.slow), []], ids=["processes", "threads"]
)
def test_two_workers_of_a_cluster_write_the_same_tables(processes: list[str], published: Path, tmp_path: Path) -> None:
    """Processes take long to start; threads that are spoken to over the network show the same."""
    out = tmp_path / "out"
    with cluster(*processes) as address:
        command = [sys.executable, "-m", "eccaht", *REPRODUCE, "--jobs", "1", "--out", str(out)]
        command += ["--backend", "dask", "--scheduler", address]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert tables(out) == tables(published)
