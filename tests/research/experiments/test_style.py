"""What is saved is complete, repeatable, and nothing else is left behind."""

import csv
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from eccaht.base.presentation.style import figure_style, saving_figure
from eccaht.research.experiments.tables import save_table


def small_figure() -> Figure:
    with figure_style():
        figure = Figure(figsize=(1.5, 1.0))
        figure.add_subplot().plot([0, 1], [0, 1])
    return figure


def test_a_figure_is_saved_as_pdf_and_png(tmp_path: Path) -> None:
    files = [*saving_figure(small_figure(), tmp_path / "a.b")]
    assert [file.name for file in files] == ["a.b.pdf", "a.b.png"]
    assert files[0].read_bytes().startswith(b"%PDF")
    assert files[1].read_bytes().startswith(b"\x89PNG")
    assert sorted(tmp_path.iterdir()) == files


def test_the_same_figure_gives_the_same_bytes_and_no_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [file.read_bytes() for file in saving_figure(small_figure(), tmp_path / "first")]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")  # another day for whoever asks
    second = [file.read_bytes() for file in saving_figure(small_figure(), tmp_path / "second")]
    assert first == second
    assert b"CreationDate" not in first[0]


def test_a_table_reads_back_exactly(tmp_path: Path) -> None:
    table = {"k": np.arange(4), "x": np.array([0.1, 1 / 3, 1e-300, np.nan]), "on": np.array([True, False] * 2)}
    with save_table(table, tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["k"]) for row in rows] == [0, 1, 2, 3]
    np.testing.assert_array_equal([float(row["x"]) for row in rows], table["x"])
    assert [row["on"] for row in rows] == ["True", "False", "True", "False"]
