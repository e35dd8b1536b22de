"""The WaDi command goes from files of either edition to both figures, or says in one line why not."""

from pathlib import Path

import numpy as np
import pytest

from eccaht.cli.main import run
from tests.cli import commands
from tests.research.datasets.wadi_format import plant, write

FIRST, LAST = 5100, 6616  # rows of the first attack, on the valve 1_MV_001
QUICK = ["--runs", "1", "--jobs", "1"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    attacks = plant(6700, seed=4, hour=18)
    attacks.columns["1_MV_001_STATUS"][FIRST:LAST] += 1.0  # its interquartile range in the history
    return write(tmp_path_factory.mktemp("wadi"), "2017", plant(4000, seed=3, hour=18), attacks)


def test_both_figures_come_from_the_files(directory: Path, tmp_path: Path) -> None:
    printed = commands.document("wadi", str(directory), "--out", str(tmp_path / "out"), *QUICK)
    assert printed["edition"] == "2017"
    (attack,) = printed["fig4a"]
    assert attack["attack"] == "attack 1"
    assert [row["policy"] for row in attack["policies"]] == [
        *("ecc-aht", "diagonal", "ttts-challenger", "random-sparse"),
        *("simple-difference", "base-arm-combgape", "round-robin"),
    ]
    assert attack["policies"][0]["final_f1"]["mean"] == 1.0
    assert {row["pipeline"] for row in printed["fig4b"]} == {"ecc-aht", "combgape"}
    # all others lie after the end of the data, or on points that never moved
    assert printed["left_out"]["attack 8"] == "2_MCV_007: 2_MCV_007_CO was dropped: constant in the history"
    assert printed["left_out"]["attack 2"] == "no whole window of the data lies within it"
    assert len(printed["left_out"]) == 13
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        Path(file).name for file in printed["files"]
    )
    assert {"fig4a.png", "fig4a.pdf", "fig4a.csv", "fig4b.png", "fig4b.csv", "attacks.csv", "columns.csv"} <= {
        Path(file).name for file in printed["files"]
    }


def test_the_table_names_points_that_cannot_be_found(directory: Path, tmp_path: Path) -> None:
    arguments = ["wadi", str(directory), "--out", str(tmp_path), *QUICK, "--attacks", "1,9", "--policies", "diagonal"]
    said = commands.invoke(*arguments)
    assert "attack 9 is left out: 1_P_006" in said
    assert "fig4b: " in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--attacks", "16"], "no attack '16'"),
        (["--policies", "ecc-ath"], "did you mean 'ecc-aht'?"),
        (["--window", "1"], "is not a length of time"),
        (["--window", "0.5s"], "holds no row"),
        (["--shift", "0.1"], "budget 5 cannot separate"),
        (["--shift", "0"], "shift must be positive"),
    ],
)
def test_bad_options_are_one_line(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    out = tmp_path / "new" / "out"
    assert message in commands.refused(["wadi", str(directory), "--out", str(out), *arguments], capsys)
    assert not (tmp_path / "new").exists()


def test_damaged_files_are_one_line_and_leave_nothing(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "data"
    broken.mkdir()
    (broken / "WADI_14days.csv").write_bytes((directory / "WADI_14days.csv").read_bytes())
    (broken / "WADI_attackdata.csv").write_text("Row,Date,Time,x\n1,9/25/2017,6:00:00.000 PM,1\n")
    assert run(["wadi", str(broken), "--out", str(tmp_path / "new" / "out")]) == 2
    assert "should begin on 9 October 2017" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert run(["wadi", str(tmp_path), "--out", str(tmp_path / "out"), "--attacks", "1"]) == 2
    assert run(["wadi", str(tmp_path / "absent"), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_the_generated_rows_are_what_they_are_said_to_be() -> None:
    history = plant(4000, seed=3, hour=18).columns["1_MV_001_STATUS"]
    assert np.subtract(*np.quantile(history, [0.75, 0.25])) == 1.0
