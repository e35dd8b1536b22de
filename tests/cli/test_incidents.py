"""The bench prints what the library computes, in one table or in the documented JSON."""

from functools import partial
from pathlib import Path

import pytest

from eccaht.cli.main import run
from eccaht.research.experiments import incidents, incidents_cases
from eccaht.research.experiments.detection import DETECTORS
from eccaht.research.experiments.incidents import CollectionSettings
from eccaht.research.experiments.incidents_summary import as_entry, summarise
from tests.cli import commands
from tests.research.datasets.labelled_format import find_entities, write_collection
from tests.research.datasets.testbed_format import write_batadal, write_skab, write_tep
from tests.research.experiments.incident_methods import z_scores

METHODS = ("eccaht", "z-mean", "z-max", "z-local")
QUICK = ["--runs", "4", "--jobs", "1", "--methods", ",".join(METHODS)]
invoke, document = partial(commands.invoke, "incidents"), partial(commands.document, "incidents")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("collections")
    write_collection(place / "one", ["a", "b"])
    write_collection(place / "two", ["c"])
    return place


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incidents_cases, "our_judge", z_scores)


def test_json_is_as_documented_and_holds_what_the_library_computes(directory: Path, tmp_path: Path) -> None:
    printed = document(str(directory), *QUICK, "--seed", "5", "--out", str(tmp_path))
    assert list(printed["collections"]) == ["one", "two"]
    for entry in printed["collections"].values():
        assert set(entry["labelled"]) == set(METHODS)
        for measures in entry["labelled"].values():
            assert set(measures) == {"precision_at_n", "hit_rate_150", "rc_top_3", "f1"}
        assert all(set(numbers) == {"1", "3"} for numbers in entry["replayed"].values())
        assert set(entry["quiet"]) == {"alarms", "stretches", "promise"}
        assert set(entry["sure_and_wrong"]) == {"wrong", "sure"}
        assert list(entry["detection"]) == list(DETECTORS)
    trials = incidents.run(find_entities(directory), CollectionSettings(4, 5, METHODS)).trials
    expected = {name: as_entry(summary) for name, summary in summarise(trials, seed=5).items()}
    assert printed["collections"]["one"]["labelled"] == expected["one"]["labelled"]
    assert printed["collections"]["two"]["replayed"] == expected["two"]["replayed"]
    assert printed["collections"]["one"]["sure_and_wrong"] == expected["one"]["sure_and_wrong"]


def test_the_table_fits_a_terminal_and_the_files_are_written(directory: Path, tmp_path: Path) -> None:
    text = invoke(str(directory), *QUICK, "--out", str(tmp_path / "out"))
    assert max(map(len, text.partition("Saved ")[0].splitlines())) <= 100
    assert "4 labelled, 8 injected, 8 replayed, 10 quiet" in text
    assert "two: 1 part; " in text
    assert "at most 5 % alarms in quiet stretches of 20 windows are meant" in text
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["detection.csv", "summary.csv", "trials.csv"]


@pytest.mark.slow
def test_testbeds_are_watched(tmp_path: Path) -> None:
    write_batadal(tmp_path / "data" / "batadal")
    write_skab(tmp_path / "data" / "skab")
    write_tep(tmp_path / "data" / "tep")
    arguments = [str(tmp_path / "data"), *QUICK, "--out", str(tmp_path / "out")]
    collections = document(*arguments)["collections"]
    assert [*map(list, collections.values())] == [["detection", "ranked_at_equal_rates"]] * 3
    assert all(list(entry["detection"]) == list(DETECTORS) for entry in collections.values())
    assert {each["method"] for each in collections["skab"]["ranked_at_equal_rates"]} == set(DETECTORS)
    text = invoke(*arguments)
    assert max(map(len, text.partition("Saved ")[0].splitlines())) <= 100
    assert "batadal: 2 incidents; 0.236 false alarms asked for, 0.0333 a day" in text
    assert text.count(", best first: ") == 3
    assert f"{collections['batadal']['detection']['T2']['S']:.3g}" in text
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["detection.csv", "summary.csv"]
    assert 'tep,detection,T2,"flagged, fault-01",' in (tmp_path / "out" / "summary.csv").read_text()


def test_directories_of_another_layout_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_batadal(tmp_path / "data" / "batadal")
    (tmp_path / "data" / "papers").mkdir()
    assert run(["incidents", str(tmp_path / "data"), *QUICK, "--out", str(tmp_path / "out")]) == 0
    assert "papers is skipped" in capsys.readouterr().err
    assert run(["incidents", str(tmp_path / "data" / "papers"), *QUICK, "--out", str(tmp_path / "new")]) == 2
    assert "no labelled collection in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "z-meen"], "did you mean 'z-mean'?"),
        (["--methods", "z-mean,z-mean"], "name each method once"),
        (["--runs", "0"], "--runs"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    given = ["incidents", str(directory), "--out", str(tmp_path / "new" / "out"), *arguments]
    assert message in commands.refused(given, capsys)
    assert not (tmp_path / "new").exists()


def test_a_history_that_is_too_short_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_collection(tmp_path / "short", ["s"], rows=200)
    assert run(["incidents", str(tmp_path / "short"), *QUICK, "--out", str(tmp_path / "out")]) == 2
    assert "short/s: 200 training rows are too few: give at least 483" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
