"""Small files in the two formats in which WaDi is given out, with all their quirks and a known content."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eccaht.base.arrays import Array

FLOATING = ("1_AIT_001_PV", "1_AIT_002_PV", "1_FIT_001_PV", "1_LT_001_PV", "2_LT_002_PV", "2_FIT_001_PV")
VALVES = tuple(f"2_MCV_{k}01_CO" for k in range(1, 7))
STATUS = ("1_MV_001_STATUS", "1_P_001_STATUS")
CONSTANT = {"1_P_006_STATUS": 1.0, "2_MCV_007_CO": 0.0, "2_PIC_003_SP": 0.6}
BLANK = ("2_LS_001_AL", "2_P_002_STATUS")
PREFIX = "\\\\WIN-25J4RO10SBF\\LOG_DATA\\SUTD_WADI\\LOG_DATA\\"
LABEL = "Attack LABLE (1:No Attack, -1:Attack)"


@dataclass(frozen=True)
class Rows:
    """Readings, one row a second; NaN is written as a blank or as `Bad Input`."""

    columns: dict[str, Array]
    hour: int  # of the first row

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def plant(n: int, *, seed: int, hour: int, gaps: bool = False) -> Rows:
    """Readings of floating sensors with common noise, valves that follow one set point, and two statuses."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal(n)
    columns = {name: 10.0 * (k + 1) + common + 0.2 * rng.standard_normal(n) for k, name in enumerate(FLOATING)}
    point = rng.standard_normal(n)
    columns |= {name: 40.0 + 5.0 * (point + 0.2 * rng.standard_normal(n)) for name in VALVES}
    columns |= {name: rng.integers(1, 3, n).astype(float) for name in STATUS}
    columns |= {name: np.full(n, value) for name, value in CONSTANT.items()}
    columns |= {name: np.full(n, np.nan) for name in BLANK}
    if gaps:
        columns["1_AIT_002_PV"][n // 2 : n // 2 + 6] = np.nan
        columns["2_MCV_101_CO"][n // 3] = np.nan
    return Rows(columns, hour)


def write_2017(path: Path, rows: Rows, *, day: int, month: int, preamble: bool) -> Path:
    """Windows paths as names, month first, twelve-hour clock with milliseconds, lines before the header if asked."""
    lines = ["Created: 10/9/2017 6:05:57.359 PM Malay Peninsula Standard Time", f"Number of rows: {len(rows):.4E}"]
    lines = [*lines, "Interpolation interval: 1 seconds", ""] if preamble else []
    lines.append(",".join(["Row", "Date", "Time", *(PREFIX + name for name in rows.columns)]))
    for k, values in enumerate(_texts(rows, "Bad Input")):
        seconds = rows.hour * 3600 + k
        hour, clock = seconds // 3600 % 24, f"{seconds % 3600 // 60:02d}:{seconds % 60:02d}.000"
        date = f"{month}/{day + seconds // 86400}/2017"
        lines.append(f"{k + 1},{date},{hour % 12 or 12}:{clock} {'AM' if hour < 12 else 'PM'},{values}")
    path.write_text("\r\n".join(lines) + "\r\n")
    return path


def write_2019(path: Path, rows: Rows, *, day: int, month: int, labels: bool) -> Path:
    """Short names, day first, no hours; with labels: numbers above the names, stray blanks, empty rows at the end."""
    names = [f"{name} " if k % 5 == 0 and labels else name for k, name in enumerate(rows.columns)]
    header = [
        "Row " if labels else "Row",
        "Date " if labels else "Date",
        "Time",
        *names,
        *([f'"{LABEL}"'] if labels else []),
    ]
    lines = [",".join(map(str, range(len(header))))] if labels else []
    lines.append(",".join(header))
    for k, values in enumerate(_texts(rows, "")):
        clock = f"{(k % 3600) // 60:02d}:{k % 60:02d}.0"
        lines.append(f"{k + 1},{day}/{month}/17,{clock},{values}" + (",1" if labels else ""))
    if labels:
        lines += ["," * (len(header) - 1)] * 2
    path.write_text("\n".join(lines) + "\n")
    return path


def write(directory: Path, edition: str, history: Rows, attacks: Rows) -> Path:
    """Write the two files of an edition."""
    if edition == "2017":
        write_2017(directory / "WADI_14days.csv", history, day=25, month=9, preamble=True)
        write_2017(directory / "WADI_attackdata.csv", attacks, day=9, month=10, preamble=False)
    else:
        write_2019(directory / "WADI_14days_new.csv", history, day=25, month=9, labels=False)
        write_2019(directory / "WADI_attackdataLABLE.csv", attacks, day=9, month=10, labels=True)
    return directory


def _texts(rows: Rows, missing: str) -> list[str]:
    """The values of each row; a column that is always blank is blank in either edition."""
    columns = []
    for name, column in rows.columns.items():
        blank = "" if name in BLANK else missing
        columns.append([blank if np.isnan(x) else f"{x:.6g}" for x in column.tolist()])
    return [",".join(row) for row in zip(*columns, strict=True)]
