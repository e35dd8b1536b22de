"""Part 4: calibrating on a history as large as WaDi's, beside the same steps in pandas.

Each side runs in a fresh process of its own (`python -m benchmarks.calibration SIDE FILE RESULT`), so that peak memory
is its own; both read the same file, and their models are compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.jobs import Job, Row
from benchmarks.tables import Column, Table, scientific, thousands, three_digits, times

ROOT = Path(__file__).resolve().parent.parent
SIDES = ("eccaht", "pandas")
ROWS, QUICK_ROWS = 1_200_000, 30_000
CONTINUOUS, STATUS, CONSTANT, EMPTY = 70, 44, 6, 4  # with Row, Date and Time: 127 columns
REPEATS, TIME_LIMIT = 2, 600.0
TARGET_TIMES, TARGET_MB = 3.0, 4096.0


def jobs(quick: bool) -> list[Job]:
    """The file is written first; then the sides take turns."""
    rows = QUICK_ROWS if quick else ROWS
    turns = [(side, turn) for turn in range(1 if quick else REPEATS) for side in SIDES]
    return [
        Job(f"calibration, writing {rows:,} rows", partial(_write, rows)),
        *(Job(f"calibration, {side}", partial(_measure, side, rows)) for side, _ in turns),
    ]


# -- the history ---------------------------------------------------------------------------------------


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Removed when the benchmark ends."""
    return tempfile.TemporaryDirectory(prefix="eccaht-calibration-")


def _history(rows: int) -> Path:
    return Path(_directory().name) / f"history-{rows}.csv"


def _write(rows: int) -> list[Row]:
    """A file with the quirks of WaDi: lines before the header, paths as names, gaps, empty and constant columns."""
    rng = np.random.default_rng(0)
    n = CONTINUOUS + STATUS + CONSTANT + EMPTY
    names = [rf"\\HISTORIAN\LOG_DATA\PLANT\{k // 40 + 1}_AIT_{k:03d}_PV" for k in range(n)]
    loads, state = rng.standard_normal((10, CONTINUOUS)), np.zeros(10)
    with _history(rows).open("wb") as file:
        file.write(b"exported by a historian\n\n14 days\n\n")
        file.write((",".join(["Row", "Date", "Time", *names]) + "\n").encode())
        for first in range(0, rows, 100_000):
            numbers = np.arange(first, min(first + 100_000, rows))
            block, state = _block(numbers, names, loads, state, rng)
            file.write(block.write_csv(include_header=False).encode())
    return []


def _block(numbers: Any, names: list[str], loads: Any, state: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    import polars as pl

    n = len(numbers)
    moments = np.datetime64("2017-09-25T18:00:00", "us") + numbers * np.timedelta64(1, "s")
    causes = state + np.cumsum(0.01 * rng.standard_normal((n, len(state))), axis=0)
    readings = np.round(50.0 + causes @ loads + 0.3 * rng.standard_normal((n, CONTINUOUS)), 4)
    missing = rng.random(readings.shape) < 1e-3
    t = pl.Series(moments)
    columns = [pl.Series(readings[:, k]).set(pl.Series(missing[:, k]), None) for k in range(CONTINUOUS)]
    columns += [pl.Series((numbers // (100 + 37 * k)) % 2 + 1) for k in range(STATUS)]
    columns += [pl.Series(np.ones(n, dtype=np.int64))] * CONSTANT
    empty = [pl.Series([None] * n, dtype=pl.Float64)] * EMPTY
    columns[3:3] = empty  # WaDi's empty columns are in the middle
    heads = {
        "Row": pl.Series(numbers + 1),
        "Date": t.dt.strftime("%-m/%-d/%Y"),
        "Time": t.dt.strftime("%-I:%M:%S.000 %p"),
    }
    return pl.DataFrame(heads | dict(zip(names, columns, strict=True))), causes[-1]


# -- the two sides -------------------------------------------------------------------------------------


def _with_eccaht(path: Path) -> tuple[list[str], Any, Any]:
    from eccaht.plants.model.calibration import calibrate

    model = calibrate(path, window="1min")
    return list(model.names), model.mean, model.covariance.dense()


def _with_pandas(path: Path) -> tuple[list[str], Any, Any]:
    """The same steps as a user who knows pandas writes them."""
    import pandas as pd
    from sklearn.covariance import LedoitWolf

    frame = pd.read_csv(path, skiprows=4, skip_blank_lines=False)
    moments = pd.to_datetime(frame["Date"] + " " + frame["Time"], format="%m/%d/%Y %I:%M:%S.%f %p")
    frame = frame.drop(columns=["Row", "Date", "Time"]).set_index(pd.DatetimeIndex(moments)).sort_index()
    frame.columns = [name.rsplit("\\", 1)[-1] for name in frame.columns]
    frame = frame.dropna(axis=1, how="all").astype("float64")
    frame = frame.loc[:, frame.max() > frame.min()]
    status = [name for name in frame if frame[name].head(1000).nunique() <= 10 and frame[name].nunique() <= 10]
    continuous = frame.columns.difference(status, sort=False)
    frame[continuous] = frame[continuous].interpolate(method="time").bfill()
    frame[status] = frame[status].ffill().bfill()
    quartiles = frame.quantile([0.25, 0.5, 0.75])
    scale = (quartiles.loc[0.75] - quartiles.loc[0.25]).where(lambda iqr: iqr > 0, frame.std(ddof=0))
    windows = ((frame - quartiles.loc[0.5]) / scale).resample("1min").mean().dropna(how="all")
    spread = windows.std(ddof=0)
    standard = ((windows - windows.mean()) / spread).to_numpy()
    correlation = LedoitWolf(store_precision=False, assume_centered=True).fit(standard).covariance_
    return list(windows.columns), windows.mean().to_numpy(), correlation * np.outer(spread, spread)


def _measure(side: str, rows: int) -> list[Row]:
    """Measure in a fresh process; a side that fails or takes too long says so in its row."""
    row: Row = {"side": side, "rows": rows}
    path = _history(rows)
    result = path.with_name(f"{side}.npz")
    command = [sys.executable, "-m", "benchmarks.calibration", side, str(path), str(result)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIME_LIMIT, check=True)
    except subprocess.TimeoutExpired:
        return [row | {"remark": f"not done in {TIME_LIMIT:g} s"}]
    except subprocess.CalledProcessError as error:
        return [row | {"remark": (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]}]
    row |= {"file_mb": path.stat().st_size / 1e6, **json.loads(done.stdout)}
    other = path.with_name("eccaht.npz")
    if side != "eccaht" and other.exists():
        row["difference"] = _difference(result, other)
    return [row]


def _difference(one: Path, other: Path) -> float:
    """The largest difference between the two models, in robust units."""
    with np.load(one) as a, np.load(other) as b:
        if a["names"].tolist() != b["names"].tolist():
            return float("inf")
        return float(max(np.abs(a[key] - b[key]).max() for key in ("mean", "covariance")))


# -- the table -----------------------------------------------------------------------------------------


def tables(rows: Sequence[Row]) -> list[Table]:
    """The faster turn of each side, and how they compare."""
    best = {side: min((row for row in rows if row["side"] == side), key=_seconds) for side in SIDES}
    ours = best["eccaht"]
    lines = []
    for row in best.values():
        compared = {}
        if "wall_s" in row and "wall_s" in ours and row is not ours:
            compared = {
                "times": row["wall_s"] / ours["wall_s"],
                "processor_times": row["processor_s"] / ours["processor_s"],
            }
            compared["remark"] = f"target: at least {TARGET_TIMES:g}x, eccaht under {TARGET_MB:,.0f} MB"
        lines.append(compared | row)
    size = ours.get("file_mb", 0.0)
    notes = [
        f"A generated CSV of {ours['rows']:,} rows x 127 columns ({size:,.0f} MB); reading, cleaning, scaling, "
        "one-minute windows and Ledoit-Wolf, in a fresh process each, imports included; the faster of the turns.",
    ]
    return [Table("calibration", "4. Calibration beside pandas", _COLUMNS, lines, notes)]


def _seconds(row: Row) -> float:
    return float(row.get("wall_s", np.inf))


_COLUMNS = [
    Column("side", "with", right=False),
    Column("wall_s", "seconds", three_digits),
    Column("processor_s", "processor seconds", three_digits),
    Column("peak_mb", "peak MB", thousands),
    Column("times", "slower by", times),
    Column("processor_times", "more work by", times),
    Column("difference", "models differ by", scientific),
    Column("remark", "remark", right=False),
]


def main(side: str, path: str, result: str) -> None:
    """Calibrate once and print what it took."""
    from benchmarks.point import peak_memory

    start, processor = time.perf_counter(), time.process_time()
    names, mean, covariance = {"eccaht": _with_eccaht, "pandas": _with_pandas}[side](Path(path))
    taken = {"wall_s": time.perf_counter() - start, "processor_s": time.process_time() - processor}
    peak = peak_memory() / 2**20
    np.savez(result, names=np.array(names), mean=mean, covariance=covariance)
    print(json.dumps(taken | {"peak_mb": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
