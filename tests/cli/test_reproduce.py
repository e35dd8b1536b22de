"""The command checks before it works, goes on where it was, and says where the results are."""

import io
import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from eccaht.cli.main import run
from eccaht.research.paper import figures, runner, storage
from tests.cli.commands import refused

QUICK = ["reproduce", "fig5a", "--runs", "2", "--jobs", "1"]


@pytest.fixture(autouse=True)
def _plain_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "draw", lambda _: Figure(figsize=(1, 1)))


def test_results_are_written_and_found_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "results"
    assert run([*QUICK, "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"fig5a is complete in {out} (")
    assert said.err == ""
    files = {path.name for path in (out / "fig5a").iterdir()}
    assert files == {
        ".lock",
        "spec.json",
        "cells",
        "summary.csv",
        "curves.csv",
        "fig5a.pdf",
        "fig5a.png",
    }
    spec = json.loads((out / "fig5a" / "spec.json").read_text())
    assert (spec["runs"], spec["seed"], spec["entry"]["id"]) == (2, 0, "fig5a")
    assert run([*QUICK, "--out", str(out)]) == 0
    assert capsys.readouterr().err == ""
    assert run([*QUICK, "--runs", "3", "--out", str(out)]) == 2
    assert "number of runs: use another --out, or --fresh" in capsys.readouterr().err
    assert run([*QUICK, "--runs", "3", "--out", str(out), "--fresh"]) == 0
    assert storage.load(out, "fig5a").runs == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name what to reproduce: all, fig1"),
        (["fig5x"], "unknown experiment 'fig5x': did you mean 'fig5"),
        (["fig1", "tabel1"], "did you mean 'table1'"),
        (["fig1", "--runs", "0"], "--runs"),
        (["fig1", "table1", "--runs", "3"], "nothing is repeated in fig1 and table1: drop --runs"),
        (["fig1", "--jobs", "0"], "--jobs"),
        (["fig1", "--backend", "spark"], "spark"),
        (["fig1", "--backend", "dask"], "add --scheduler"),
        (["fig1", "--scheduler", "tcp://here:1"], "add --backend dask"),
        (["fig1", "--out", "taken"], "is a file"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").touch()
    assert words in refused(["reproduce", *arguments], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_an_interrupt_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    once, calls = runner._run, []

    def interrupted(k: int, piece: runner.Piece) -> object:
        calls.append(piece.cell)
        if len(set(calls)) == 3:
            raise KeyboardInterrupt
        return once(k, piece)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "_run", interrupted)
        assert run([*QUICK, "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "eccaht: interrupted\n"
    assert len(list((tmp_path / "fig5a" / "cells").iterdir())) == 2
    assert run([*QUICK, "--out", str(tmp_path)]) == 0
    assert len(storage.load(tmp_path, "fig5a").cells) == 3


def test_a_terminal_gets_a_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    assert run([*QUICK, "--out", str(tmp_path)]) == 0
    assert "tables and figures" in screen.getvalue()
