"""Cells that were swapped, shuffled, edited or brought from elsewhere never reach a table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

from eccaht.base.files import locked
from eccaht.cli.main import run as command
from eccaht.research.paper import figures, runner, storage
from eccaht.research.paper.experiment import Experiment, Setting
from eccaht.research.paper.runner import reproduce

SMALL = Experiment(
    "small",
    "A small one",
    "curves",
    tuple(Setting(f"{rho}", "toeplitz", {"K": 12, "rho": rho}, 2, 4.0, 3.0) for rho in (0.3, 0.7)),
    ("ecc-aht", "random-sparse"),
    horizon=20,
)


@pytest.fixture(autouse=True)
def _plain_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "draw", lambda _: Figure(figsize=(1, 1)))


def run(directory: Path, experiment: Experiment = SMALL, seed: int = 1) -> list[str]:
    """What it says of damaged cells."""
    notes: list[str] = []
    reproduce([experiment], directory, runs=2, seed=seed, note=notes.append)
    return notes


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def swap(one: Path, other: Path) -> None:
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])


def _swapped(home: Path, _: Path) -> None:
    swap(home / "cells" / "0-ecc-aht.parquet", home / "cells" / "1-ecc-aht.parquet")


def _shuffled(home: Path, _: Path) -> None:
    path = home / "cells" / "0-ecc-aht.parquet"
    pl.read_parquet(path).sample(fraction=1.0, shuffle=True, seed=3).write_parquet(path)


def _edited(home: Path, _: Path) -> None:
    path = home / "cells" / "0-ecc-aht.parquet"
    pl.read_parquet(path).with_columns(hits=pl.col("hits") * 0 + 2).write_parquet(path)


def _of_another_seed(home: Path, elsewhere: Path) -> None:
    shutil.copy(elsewhere / "cells" / "0-ecc-aht.parquet", home / "cells" / "0-ecc-aht.parquet")


def _of_another_seed_with_its_manifest(home: Path, elsewhere: Path) -> None:
    shutil.copytree(elsewhere / "cells", home / "cells", dirs_exist_ok=True)
    shutil.copy(elsewhere / "manifest.json", home / "manifest.json")


def _swapped_with_their_entries(home: Path, elsewhere: Path) -> None:
    _swapped(home, elsewhere)
    entries = json.loads((home / "manifest.json").read_text())
    entries["0-ecc-aht"], entries["1-ecc-aht"] = entries["1-ecc-aht"], entries["0-ecc-aht"]
    (home / "manifest.json").write_text(json.dumps(entries))


def _without_manifest(home: Path, _: Path) -> None:
    (home / "manifest.json").unlink()


def _cut(home: Path, _: Path) -> None:
    path = home / "cells" / "0-ecc-aht.parquet"
    path.write_bytes(path.read_bytes()[:50])


@pytest.mark.parametrize(
    "harm",
    [
        *(_swapped, _shuffled, _edited, _cut, _of_another_seed),
        *(_of_another_seed_with_its_manifest, _swapped_with_their_entries, _without_manifest),
    ],
)
def test_what_is_not_the_cells_own_is_refused_named_and_made_again(
    harm: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    results, elsewhere = tmp_path / "results", tmp_path / "elsewhere"
    run(results)
    whole = files(results)
    run(elsewhere, seed=2)
    harm(results / "small", elsewhere / "small")
    with pytest.raises(ValueError, match=r"small/cells/0-ecc-aht.parquet is damaged .* run 'eccaht reproduce small"):
        storage.load(results, "small")
    (line,) = run(results)
    assert "made again: 0-ecc-aht" in line
    assert files(results) == whole
    assert run(results) == []


def test_a_damaged_cell_of_an_added_policy_is_made_again_without_naming_it(tmp_path: Path) -> None:
    run(tmp_path, SMALL.beside("diagonal"))
    whole = files(tmp_path)
    cell = tmp_path / "small" / "cells" / "1-diagonal.parquet"
    cell.write_bytes(b"nonsense")
    assert "1-diagonal" in run(tmp_path)[0]
    assert files(tmp_path) == whole


def test_a_run_killed_before_its_cell_appeared_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    run(tmp_path)
    whole = files(tmp_path)
    (tmp_path / "small" / "cells" / "0-ecc-aht.parquet").unlink()  # the manifest has its entry first
    assert run(tmp_path) == []
    assert files(tmp_path) == whole


def test_a_second_process_leaves_the_first_ones_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path)
    (tmp_path / "small" / "cells" / "0-ecc-aht.parquet").unlink()
    unfinished = tmp_path / "small" / "cells" / ".0-ecc-aht.parquet.0123abcd.part"
    unfinished.write_bytes(b"half")
    before = files(tmp_path)
    with monkeypatch.context() as patch, locked(tmp_path / "small"):
        patch.setattr(runner, "_run", lambda *_: pytest.fail("work began"))
        with pytest.raises(ValueError, match=f"another process is writing to {tmp_path / 'small'}"):
            run(tmp_path)
        assert files(tmp_path) == before
    run(tmp_path)
    assert not unfinished.exists()


def test_the_report_says_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["reproduce", "fig5a", "--runs", "2", "--jobs", "1", "--out", str(tmp_path)]
    assert command(quick) == 0
    cells = tmp_path / "fig5a" / "cells"
    swap(*sorted(cells.iterdir())[:2])
    capsys.readouterr()
    assert command(["report", str(tmp_path)]) == 2  # there is nothing else
    assert "is damaged or was made in another way" in capsys.readouterr().err
    assert command(quick) == 0
    assert capsys.readouterr().err.startswith("Note: cells of fig5a that are damaged or were made in another way")
