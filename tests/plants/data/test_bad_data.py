"""New data may be bad: what cannot be read is missing and counted, the rest is as it would be without it."""

from pathlib import Path

import numpy as np
import pytest

from eccaht.plants.intake import Follower
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model, Notation
from tests.plants.model.histories import clock, signals, write_csv

NAMES = ["time", "a", "b", "valve"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    tmp_path = tmp_path_factory.mktemp("history")
    valve = ["ON" if (k // 90) % 2 else "OFF" for k in range(900)]
    return calibrate(
        write_csv(tmp_path / "h.csv", NAMES, [clock(900), *signals(900, 2).T.tolist(), valve]), window="1min"
    )


def columns(rows: int = 120) -> list[list[object]]:
    return [clock(rows), *signals(rows, 2, seed=3).T.tolist(), ["ON"] * rows]


@pytest.mark.parametrize("late", [False, True])
def test_values_that_are_no_numbers_are_missing(late: bool, model: Model, tmp_path: Path) -> None:
    """Also where the first rows, from which types are guessed, do not show them."""
    rows = 40_000 if late else 120
    good, bad = columns(rows), columns(rows)
    where = [rows - 100, rows - 99, rows - 5]
    for k in where:
        good[1][k], bad[1][k] = "", "ERROR"
    good[3][rows - 7], bad[3][rows - 7] = "", "FAULT"
    path = write_csv(tmp_path / "n.csv", NAMES, bad)
    windows = model.prepare(path, bad="skip")
    clean = model.prepare(write_csv(tmp_path / "g.csv", NAMES, good))
    assert np.array_equal(windows.values, clean.values, equal_nan=True)
    assert clean.notes == ()
    a, valve = windows.notes
    assert a == f"column 'a': 3 values count as missing, the first: 'ERROR' in line {rows - 98} of {path} (no number)"
    assert f"column 'valve': 1 value counts as missing, the first: 'FAULT' in line {rows - 5} of" in valve
    with pytest.raises(ValueError, match=rf"line {rows - 98} of .*'ERROR' in column 'a' is no number"):
        model.prepare(path)


@pytest.mark.parametrize("value", [1e18, -1e300])
def test_values_that_no_sensor_can_have_read_are_missing(value: float, model: Model, tmp_path: Path) -> None:
    good, bad = columns(), columns()
    good[1][70], bad[1][70] = "", value
    path = write_csv(tmp_path / "n.csv", NAMES, bad)
    windows = model.prepare(path, bad="skip")
    clean = model.prepare(write_csv(tmp_path / "g.csv", NAMES, good))
    assert np.array_equal(windows.values, clean.values, equal_nan=True)
    assert windows.notes[0].startswith(f"column 'a': 1 value counts as missing, the first: '{value:g}' in the row of")
    followed = Follower(model, path, timeout=0.0, poll=0.001)
    assert np.array_equal([sample.values for sample in followed], clean.values, equal_nan=True)
    assert followed.notes == list(windows.notes)
    with pytest.raises(ValueError, match=r"'a' of .* usual spread"):
        model.prepare(path)


def test_lines_that_are_no_rows_are_left_out(model: Model, tmp_path: Path) -> None:
    good = write_csv(tmp_path / "g.csv", NAMES, columns())
    lines = good.read_text().splitlines(keepends=True)
    bad = ["2017-09-25T18:00:30,1\n", "x,1,2,ON\n", "\xff\x01\0\n", lines[0], "1,2,3,4,5,6\n", ",7,7,ON\n"]
    for place, line in zip((110, 90, 70, 50, 30, 10), bad, strict=True):
        lines.insert(place, line)
    path = tmp_path / "n.csv"
    path.write_text("".join(lines), encoding="latin-1")
    windows = model.prepare(path, bad="skip")
    assert np.array_equal(windows.values, model.prepare(good).values)
    encoding, note = windows.notes
    assert "Latin-1" in encoding
    assert note.startswith("5 bad lines were left out, the first: ")
    path.write_text("".join(line for line in lines if "\0" not in line))
    with pytest.raises(ValueError, match=r"line 32 .* has 6 values"):
        model.prepare(path)


@pytest.mark.parametrize("in_history", [False, True])
def test_the_decimal_comma_is_the_file_s_own(in_history: bool, tmp_path: Path) -> None:
    def write(name: str, rows: int, comma: bool) -> Path:
        numbers = [[str(x).replace(".", "," if comma else ".") for x in column] for column in signals(rows, 2).T]
        return write_csv(tmp_path / name, ["time", "a", "b"], [clock(rows), *numbers], ";" if comma else ",")

    model = calibrate(write("h.csv", 900, in_history))
    points, commas = write("p.csv", 120, False), write("c.csv", 120, True)
    assert np.array_equal(model.prepare(points).values, model.prepare(commas).values)
    windows = model.prepare(commas, bad="skip", notation=Notation(decimal_comma=False))
    assert np.isnan(windows.values).all()
    assert "add --decimal-comma (in Python decimal_comma=True)?" in windows.notes[0]


def test_a_model_without_column_names(tmp_path: Path) -> None:
    first, *rest = zip(clock(900), *signals(900, 2).T.tolist(), strict=True)
    history = write_csv(tmp_path / "h.csv", [str(x) for x in first], list(zip(*rest, strict=True)))
    model = calibrate(history, header=False)
    assert model.names == ("c2", "c3")
    assert model.prepare(history).values.mean(axis=0) == pytest.approx(model.mean)


def test_damaged_data_are_read_alike_whether_recorded_or_followed(model: Model, tmp_path: Path) -> None:
    """Whatever happens to a few places of a file, its other rows count."""
    path = tmp_path / "n.csv"
    data = write_csv(path, NAMES, columns(180)).read_bytes()
    clean, rng = model.prepare(path), np.random.default_rng(0)
    pieces = [b",", b";", b"\n", b"\t", b"1e400", b"\0", b"\xff", b"\n\n", b"ON", b"inf", b"1,5", b"ERROR", b'"', b""]
    same = 0
    for _ in range(25):
        changed = bytearray(data)
        for place in rng.integers(len("time,a,b,valve\n"), len(data), rng.integers(1, 4)):
            changed[place : place + int(rng.integers(0, 12))] = pieces[rng.integers(len(pieces))]
        path.write_bytes(bytes(changed).rstrip(b"\n") + b"\n")
        followed = {sample.start: sample.values for sample in Follower(model, path, timeout=0.0, poll=0.001)}
        assert set(followed) >= set(clean.starts)
        windows = model.prepare(path, bad="skip")
        again = np.array([followed.get(start, np.full(3, np.inf)) for start in windows.starts])
        same += bool(np.array_equal(again, windows.values, equal_nan=True))
        there = np.isin(windows.starts, clean.starts)
        assert np.nanmedian(np.abs(windows.values[there] - clean.values)) < 0.1  # the rest counts as it did
    assert same >= 22  # a time with a digit changed may close a followed window early
