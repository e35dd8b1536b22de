"""The command on server data prints what the library computes, in one table or one JSON document."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from eccaht.cli.main import run
from eccaht.datasets.smd import find_entities
from eccaht.experiments.comparison import summarise
from eccaht.experiments.smd import Settings, run_tier1
from tests.cli import commands
from tests.datasets.smd_format import write_collection

QUICK = ["--runs", "3", "--horizon", "30", "--jobs", "1", "--policies", "ecc-aht,diagonal"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("servers")
    write_collection(place / "one", ["a", "b"])
    write_collection(place / "two", ["c"])
    return place


invoke, document = partial(commands.invoke, "smd"), partial(commands.document, "smd")


def test_json_holds_what_the_library_computes(directory: Path) -> None:
    told = document(str(directory), *QUICK, "--tier", "1", "--anomalies", "2", "--seed", "5")
    settings = Settings((2,), horizon=30, runs=3, seed=5)
    tier = run_tier1(find_entities(directory), ("ecc-aht", "diagonal"), settings)
    (group,) = told["tier1"]
    assert group["n_anomalies"] == 2
    assert "tier2" not in told
    for said, (label, records) in zip(group["entities"], tier.records[2].items(), strict=True):
        assert said["entity"] == label
        assert [row["for_good"]["times"] for row in said["policies"]] == [
            row.for_good.times for row in summarise(records)
        ]
    assert [overall["entities"] for overall in group["overall"]] == ["all of one", "all of two", "all"]


def test_the_table_has_both_tiers_and_the_files_are_written(directory: Path, tmp_path: Path) -> None:
    text = invoke(str(directory / "one"), *QUICK, "--anomalies", "1", "--out", str(tmp_path / "out"))
    assert "Tier 1: 1 of the K metrics moved by 1 robust units" in text
    assert "diagonal - ecc-aht" in text
    assert "Tier 2: labelled segments, 1 measurement of each row" in text
    assert "z-score of all" in text
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["tier1-1.csv", "tier1-1.pdf", "tier1-1.png", "tier2.csv", "tier2.pdf", "tier2.png"]


def test_tier_2_alone(directory: Path) -> None:
    told = document(str(directory), *QUICK, "--tier", "2", "--per-row", "2")
    assert "tier1" not in told
    assert [group["segments"] for group in told["tier2"]] == [2, 2, 2, 4, 2, 6]
    assert told["tier2"][0]["precision"]["chance"]["mean"] == pytest.approx(3 / 14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--anomalies", "1,x"], "not whole numbers"),
        (["--anomalies", "7"], "n_anomalies = 7 must be smaller"),
        (["--policies", "diagnal"], "did you mean 'diagonal'?"),
        (["--estimator", "x"], "unknown estimator 'x'"),
        (["--shift", "0.1"], "budget 5 cannot separate"),
        (["--shift", "0"], "shift 0 is no anomaly"),
        (["--horizon", "1000"], "fewer than the horizon 1000"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["smd", str(directory), "--tier", "1", "--out", str(tmp_path / "new" / "out"), *arguments]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err
    assert told.err.count("\n") == 1
    assert not (tmp_path / "new").exists()
