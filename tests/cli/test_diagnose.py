"""The command reports on a model, and refuses what is none."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from eccaht import families, make_policy
from eccaht.cli.main import app, run
from eccaht.plants.diagnose import diagnose
from eccaht.plants.model.model import load_model
from eccaht.streams.problem import Problem
from tests.checks.archives import packed, unpacked
from tests.plants.diagnose.worlds import model_of, white


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clean") / "clean.model"
    model_of(white(800, 10)).save(path)
    return path


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("copied") / "copied.model"
    x = white(800, 10)
    x[:, 4] = x[:, 1]
    model_of(x).save(path)
    return path


def test_every_check_has_a_line_and_what_is_wrong_has_a_remedy(
    clean: Path, copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diagnose", str(clean)]) == 0
    out = capsys.readouterr().out
    assert "Verdict: ok" in out
    assert sum(line.startswith("ok ") for line in out.splitlines()) == 10
    assert "What to do" not in out
    assert run(["diagnose", str(copied)]) == 0  # a report, whatever it says
    out = capsys.readouterr().out
    assert "Verdict: not fit" in out
    assert "not fit  near-duplicate sensors  correlation 1" in out
    assert "  What to do: Leave the copies out (`--exclude S04`)" in out


def test_json_carries_what_the_library_computes(copied: Path) -> None:
    words = ["diagnose", str(copied), "--anomalies", "1", "--shift", "-4", "--runs", "3", "--horizon", "30", "--json"]
    printed = json.loads(CliRunner().invoke(app, words).stdout)
    same = diagnose(load_model(copied), n_anomalies=1, shift=-4.0, runs=3, horizon=30)
    assert printed == {"file": str(copied), **json.loads(json.dumps(same.as_dict())), "files": []}
    assert printed["verdict"] == "not fit"
    assert printed["expectation"]["runs"] == 3
    assert [check["name"] for check in printed["checks"]][-1] == "expected measurements"
    assert json.loads(CliRunner().invoke(app, ["diagnose", str(copied), "--json"]).stdout)["expectation"] is None


def test_it_writes_a_page(copied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert run(["diagnose", str(copied), "--html", str(page)]) == 0
    assert capsys.readouterr().out.endswith(f"Saved {page}\n")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def bad_files(directory: Path, good: Path) -> dict[str, Path]:
    """Files that are no model, by what the line must say."""
    files = {
        "it was not written by eccaht": directory / "pickle.npz",
        "its format version is 99": directory / "other.model",
        "not written by eccaht as this kind of file": directory / "policy",
        "is not a valid model file": directory / "half.model",
        "no model file": directory / "missing",
    }
    paths = list(files.values())
    paths[0].write_bytes(pickle.dumps({"names": ["a"]}))
    header, arrays = unpacked(good.read_bytes())
    paths[1].write_bytes(packed(header | {"version": 99}, arrays))
    make_policy("ecc-aht", Problem(families.identity(3), shift=1.0, n_anomalies=1, budget=2.0)).save(paths[2])
    paths[3].write_bytes(good.read_bytes()[:2000])
    return files


def test_what_is_no_model_is_one_line_and_leaves_nothing(
    clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    cases = bad_files(tmp_path / "in", clean) | {"": tmp_path / "in"}
    (tmp_path / "in" / "empty").touch()
    cases["empty"] = tmp_path / "in" / "empty"
    for says, path in cases.items():
        assert run(["diagnose", str(path), "--html", str(tmp_path / "out" / "page.html")]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        assert err.startswith("eccaht: ")
        assert str(path) in err
        assert says in err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--anomalies 10 --shift 1", "n_anomalies = 10 must be smaller than the number of streams, 10"),
        ("--anomalies 99 --shift 1", "n_anomalies = 99"),
        ("--anomalies 0 --shift 1", "--anomalies"),
        ("--anomalies 2", "give --shift"),
        ("--shift 2", "give --anomalies"),
        ("--budget 3", "give --anomalies and --shift"),
        ("--anomalies 1 --shift 0", "shift of stream 0 is 0"),
        ("--anomalies 1 --shift nan", "shift has a non-finite value"),
        ("--anomalies 1 --shift 1 --budget 0", "budget must be positive"),
        ("--anomalies 1 --shift 1 --budget 0.5", "raise the budget"),
        ("--anomalies 1 --shift x", "--shift"),
        ("--runs 0", "--runs"),
    ],
)
def test_a_search_that_makes_no_sense_is_one_line_and_leaves_no_page(
    words: str, says: str, clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diagnose", str(clean), "--html", str(tmp_path / "page.html"), *words.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert says in err
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_written_is_refused_first(
    clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for page in (tmp_path, tmp_path / "none" / "page.html", clean):
        before = clean.read_bytes()
        assert run(["diagnose", str(clean), "--html", str(page)]) == 2
        assert f"--html {page}" in capsys.readouterr().err
        assert clean.read_bytes() == before
    assert list(tmp_path.iterdir()) == []


def test_a_covariance_that_cannot_be_searched_with_is_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import eccaht.plants.diagnose.report as report

    def refuse(*_: object, **__: object) -> None:
        raise ArithmeticError("the covariance is too ill-conditioned to cancel noise exactly")

    monkeypatch.setattr(report, "expect", refuse)
    path = tmp_path / "m"
    model_of(np.random.default_rng(0).standard_normal((200, 5))).save(path)
    assert run(["diagnose", str(path), "--anomalies", "1", "--shift", "2"]) == 0
    out = capsys.readouterr().out
    assert "not fit  expected measurements" in out
    assert "`--ridge 0.01`" in out
