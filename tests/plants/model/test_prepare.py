"""What a search is fed: each file is looked at once, and read once."""

from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest

from eccaht.cli.main import run
from eccaht.plants.data import recorded
from eccaht.plants.data.layout import Layout, sniff
from eccaht.plants.data.reading import load
from eccaht.plants.model.calibration import calibrate
from tests.plants.model.histories import clock, history, signals, write_csv


@pytest.mark.parametrize("missing", ["refuse", "allow"])
def test_identify_looks_at_each_file_once(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calibrate(history(tmp_path / "h.csv", rows=1800)).save(tmp_path / "m.model")
    names = ["timestamp", "s0", "s1", "s2", "s3", "new"]
    columns = [clock(600), *signals(600, 5, seed=1).T.tolist()]
    files = [write_csv(tmp_path / name, names, columns) for name in ("one.csv", "two.csv")]
    seen: Counter[str] = Counter()

    def counting(path: Path, *arguments: Any, **options: Any) -> Layout:
        seen[path.name] += 1
        return sniff(path, *arguments, **options)

    monkeypatch.setattr(recorded, "sniff", counting)
    data = [part for file in files for part in ("--data", str(file))]
    command = ["identify", "--model", str(tmp_path / "m.model"), *data]
    assert run([*command, "--missing", missing, "--json"]) == 0
    assert seen == {"one.csv": 1, "two.csv": 1}


def test_identify_reads_each_file_once_also_for_its_constants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names, rows = ["time", "a", "b", "c", "setpoint"], 1800

    def table(path: Path, setpoint: list[float]) -> Path:
        return write_csv(path, names, [clock(rows), *signals(rows, 3).T.tolist(), setpoint])

    calibrate(table(tmp_path / "h.csv", [7.0] * rows), window="10s").save(tmp_path / "m.model")
    new = table(tmp_path / "new.csv", [7.0] * 900 + [8.0] * 900)
    reads: list[str] = []

    def counting(layout: Layout, *arguments: Any) -> Any:
        reads.append(layout.path.name)
        return load(layout, *arguments)

    monkeypatch.setattr(recorded, "load", counting)
    assert run(["identify", "--model", str(tmp_path / "m.model"), "--data", str(new)]) == 0
    assert reads == ["new.csv"]
    assert "setpoint" in capsys.readouterr().out


@pytest.mark.parametrize("bad", ["refuse", "skip"])
def test_a_constant_that_holds_texts_now_or_a_row_of_constants_alone_is_no_fault(
    bad: Literal["refuse", "skip"], tmp_path: Path
) -> None:
    rows, names = 900, ["time", "a", "b", "setpoint"]
    readings = [clock(rows), *signals(rows, 2).T.tolist()]
    model = calibrate(write_csv(tmp_path / "h.csv", names, [*readings, [7.0] * rows]), window="10s")
    setpoint: list[Any] = [7.0] * 600 + ["manual"] + [8.5] * 299
    new = write_csv(tmp_path / "new.csv", names, [*readings, setpoint])
    new.write_text(new.read_text() + ",,,9.0\n")
    windows = model.prepare(new, bad=bad)
    assert windows.notes == ()
    assert len(windows.starts) == 90
    assert [(moved.name, moved.read) for moved in windows.moved()] == [("setpoint", 8.5)]
    assert windows.moved(windows.starts[80])[0].since == windows.starts[80]
