"""The command says where the page is, or what is missing."""

from pathlib import Path

import pytest

from eccaht.cli.main import run


def test_without_results_it_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for directory in (tmp_path, tmp_path / "missing", tmp_path / "file"):
        assert run(["report", str(directory)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err == f"eccaht: no results in {directory}: run 'eccaht reproduce all --out {directory}' first\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert run(["report"]) == 2


def test_it_says_where_the_page_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "table1", "--out", str(tmp_path), "--jobs", "1"]) == 0
    capsys.readouterr()
    assert run(["report", str(tmp_path)]) == 0
    page = tmp_path / "report.html"
    assert capsys.readouterr().out.startswith(f"Open {page} in a browser.\n")
    text = page.read_text()
    assert "46.6" in text  # toeplitz, Shannon
    assert (tmp_path / "report.md").exists()
