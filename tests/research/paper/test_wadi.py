"""Attacks that were put into files of WaDi's format are found, under either edition, and by the right clock."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from eccaht.plants.data.windows import Windows
from eccaht.plants.model.model import Model
from eccaht.research.datasets.wadi import FIRST_ATTACK_ROW, Attack, find_files
from eccaht.research.paper.wadi import (
    WadiSettings,
    attack_table,
    attack_windows,
    build_model,
    mean_seconds,
    pipeline_table,
    prepare_attacks,
    run_fig4a,
    run_fig4b,
)
from tests.research.datasets.wadi_format import BLANK, CONSTANT, FLOATING, STATUS, VALVES, Rows, plant, write

SETTINGS = WadiSettings(runs=2)
MINUTES = 60


def attack(minute: float, minutes: float, *points: str) -> Attack:
    start = FIRST_ATTACK_ROW + timedelta(minutes=minute)
    return Attack(f"{minute:g}", start, start + timedelta(minutes=minutes), points, "")


FLOW = attack(10, 12, "1_FIT_001")
TWO = attack(30.5, 14, "2_MCV_101", "1-lt-001")
HIDDEN = attack(50, 5, "1_P_006", "2_LT_002")
NOTHING = attack(56, 2, "2_MCV_007", "9_XX_001")


def attacked(history: Rows) -> Rows:
    """An hour in which the attacks of this test happen: one window's interquartile range each."""
    rows = plant(MINUTES * 60, seed=2, hour=18, gaps=True)
    for each in (FLOW, TWO, HIDDEN):
        first = round((each.start - FIRST_ATTACK_ROW).total_seconds())
        last = round((each.end - FIRST_ATTACK_ROW).total_seconds())
        for point in each.points:
            (name,) = (name for name in rows.columns if name.startswith(point.upper().replace("-", "_")))
            if name not in CONSTANT:
                quartiles = np.quantile(history.columns[name], [0.25, 0.75])
                rows.columns[name][first:last] += quartiles[1] - quartiles[0]
    return rows


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Model, Windows]]:
    history = plant(2 * 3600, seed=1, hour=18, gaps=True)
    models = {}
    for edition in ("2017", "2019"):
        files = find_files(write(tmp_path_factory.mktemp(edition), edition, history, attacked(history)))
        model = build_model(files, SETTINGS)
        models[edition] = model, attack_windows(model, files)
    return models


def test_both_editions_give_the_same_model_and_windows(data: dict[str, tuple[Model, Windows]]) -> None:
    (old, old_windows), (new, new_windows) = data["2017"], data["2019"]
    assert old.names == new.names == (*FLOATING, *VALVES, *STATUS)
    assert old.n_windows == 120
    np.testing.assert_array_equal(old.covariance.dense(), new.covariance.dense())
    np.testing.assert_array_equal(old.mean, new.mean)
    np.testing.assert_array_equal(old_windows.values, new_windows.values[:MINUTES])
    assert np.isnan(new_windows.values[MINUTES:]).all()  # the empty rows at the end


def test_the_model_is_the_papers(data: dict[str, tuple[Model, Windows]]) -> None:
    model, _ = data["2017"]
    history = plant(2 * 3600, seed=1, hour=18)
    k = FLOATING.index("1_FIT_001_PV")
    column = np.array([float(f"{x:.6g}") for x in history.columns["1_FIT_001_PV"]])
    low, middle, high = np.quantile(column, [0.25, 0.5, 0.75])
    windows = ((column - middle) / (high - low)).reshape(120, 60).mean(axis=1)
    assert model.covariance.diagonal()[k] == pytest.approx(windows.var(ddof=1) + 1e-6)
    assert model.mean[k] == pytest.approx(windows.mean())
    reasons = {column.name: column.reason for column in model.columns}
    assert {reasons[name] for name in CONSTANT} == {"constant"}
    assert {reasons[name] for name in BLANK} == {"empty"}


def test_points_that_never_moved_cannot_be_named_and_that_is_said(data: dict[str, tuple[Model, Windows]]) -> None:
    prepared = prepare_attacks(data["2017"][0], [HIDDEN, NOTHING, TWO])
    assert prepared[0].columns == ("2_LT_002_PV",)
    assert prepared[0].unmatched == {"1_P_006": "1_P_006_STATUS was dropped: constant in the history"}
    assert prepared[1].without == "2_MCV_007: 2_MCV_007_CO was dropped: constant in the history; 9_XX_001: no column"
    assert prepared[2].columns == ("2_MCV_101_CO", "1_LT_001_PV")
    table = attack_table(prepared)
    assert table["n"].tolist() == [1, 0, 2]


@pytest.mark.parametrize("edition", ["2017", "2019"])
def test_what_was_attacked_is_named(data: dict[str, tuple[Model, Windows]], edition: str) -> None:
    model, windows = data[edition]
    prepared = prepare_attacks(model, [FLOW, TWO, HIDDEN, NOTHING])
    fig = run_fig4a(model, windows, prepared, ("ecc-aht", "diagonal"), SETTINGS)
    assert list(fig.records) == ["attack 10", "attack 30.5", "attack 50"]
    assert list(fig.left_out) == ["attack 56"]
    # 30.5 to 44.5: thirteen whole minutes
    assert [records.hits["ecc-aht"].shape[1] for records in fig.records.values()] == [12, 13, 5]
    for records in fig.records.values():
        # a shift of ten standard deviations: single sensors show it, and so do combinations if one point was attacked
        for name in ("diagonal", "ecc-aht")[: 1 + (records.n_anomalies == 1)]:
            assert (records.f1(name)[:, -1] == 1.0).all()


def test_pipelines_are_timed_from_the_beginning_of_the_attack(
    data: dict[str, tuple[Model, Windows]], tmp_path: Path
) -> None:
    model, minutes = data["2017"]
    history = plant(600, seed=1, hour=18)
    files = find_files(write(tmp_path, "2017", history, attacked(plant(2 * 3600, seed=1, hour=18))))
    seconds = attack_windows(model, files, seconds=1.0)
    assert seconds.seconds == 1.0
    assert len(seconds.starts) == MINUTES * 60
    prepared = prepare_attacks(model, [attack(10.5, 11, "1_FIT_001")])  # from the middle of FLOW's first minute
    timed = run_fig4b(model, {"ecc-aht": minutes, "combgape": seconds}, prepared, replace(SETTINGS, runs=1))
    windowed, raw = timed
    assert (windowed.limit, raw.limit) == (30 + 10 * 60, 11 * 60)  # the first whole minute begins after 30 seconds
    assert windowed.first[0] is not None
    assert windowed.first[0] % 60 == 30
    assert raw.first[0] is None or raw.first[0] == int(raw.first[0])
    table = pipeline_table(timed)
    assert table["first_seconds"][0] == windowed.first[0] == mean_seconds(windowed.first, windowed.limit)


def test_an_attack_outside_of_the_data_is_left_out(data: dict[str, tuple[Model, Windows]]) -> None:
    model, windows = data["2017"]
    late = Attack("x", datetime(2017, 10, 11), datetime(2017, 10, 12), ("1_FIT_001",), "")
    fig = run_fig4a(model, windows, prepare_attacks(model, [FLOW, late]), ("round-robin",), SETTINGS)
    assert fig.left_out == {"attack x": "no whole window of the data lies within it"}
    with pytest.raises(ValueError, match="no attack can be searched for: attack x"):
        run_fig4a(model, windows, prepare_attacks(model, [late]), ("round-robin",), SETTINGS)
