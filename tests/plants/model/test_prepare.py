"""What a search is fed: each file is looked at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eccaht.cli.main import run
from eccaht.plants.data import source
from eccaht.plants.data.layout import Layout, sniff
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

    monkeypatch.setattr(source, "sniff", counting)
    data = [part for file in files for part in ("--data", str(file))]
    command = ["identify", "--model", str(tmp_path / "m.model"), *data, "--anomalies", "1", "--shift", "1"]
    assert run([*command, "--missing", missing, "--json"]) == 0
    assert seen == {"one.csv": 1, "two.csv": 1}
