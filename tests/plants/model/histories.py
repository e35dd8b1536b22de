"""Small histories as files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

START = np.datetime64("2017-09-25T18:00:00")


def clock(rows: int, step: int = 1) -> list[str]:
    """ISO times, `step` seconds apart."""
    return [str(START + k * np.timedelta64(step, "s")) for k in range(rows)]


def signals(rows: int, sensors: int, seed: int = 0) -> np.ndarray:
    """Correlated noise, rounded so that files hold it exactly."""
    rng = np.random.default_rng(seed)
    mixed = rng.standard_normal((rows, sensors)) @ rng.standard_normal((sensors, sensors))
    return np.round(mixed + 10.0, 3)


def write_csv(path: Path, names: Sequence[str], columns: Sequence[Sequence[object]], delimiter: str = ",") -> Path:
    """Write columns as they are shown."""
    rows = [names, *zip(*columns, strict=True)]
    path.write_text("".join(delimiter.join(map(str, row)) + "\n" for row in rows))
    return path


def history(path: Path, rows: int = 900, sensors: int = 4, step: int = 1) -> Path:
    """A clean history of sensors s0, s1, ..."""
    names = [f"s{k}" for k in range(sensors)]
    return write_csv(path, ["timestamp", *names], [clock(rows, step), *signals(rows, sensors).T.tolist()])
