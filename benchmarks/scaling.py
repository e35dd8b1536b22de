"""Part 3: time of a step and peak memory against the number of streams, for the structured covariances."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.jobs import Job, Row
from benchmarks.point import KINDS
from benchmarks.tables import Column, Table, milliseconds, thousands, three_digits

ROOT = Path(__file__).resolve().parent.parent
TIME_LIMIT = 60.0  # seconds a point may take, imports and construction included
TARGET_KIND, TARGET_STREAMS, TARGET_SECONDS, TARGET_MB = "AR1", 10**6, 0.050, 2048.0


def jobs(quick: bool) -> list[Job]:
    """One job a point."""
    sizes = [10**k for k in range(2, 5 if quick else 7)]
    patience = 0.1 if quick else 0.6
    lines = [*((kind, 5.0) for kind in KINDS), ("AR1", 0.5)]
    return [
        Job(f"scaling, {kind}, K = {K:,}, budget {budget:g}", partial(_point, kind, K, budget, patience))
        for kind, budget in lines
        for K in sizes
    ]


def _point(kind: str, streams: int, budget: float, patience: float) -> list[Row]:
    """Measure in a fresh process; a point that fails or takes too long says so in its row."""
    row: Row = {"covariance": kind, "limit": "binds" if budget < 1 else "free", "streams": streams}
    command = [sys.executable, "-m", "benchmarks.point", kind, str(streams), str(budget), str(patience)]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return [row | {"remark": f"not done in {TIME_LIMIT:g} s"}]
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"exit code {error.returncode}"])[-1]
        return [row | {"remark": last}]
    row |= json.loads(done.stdout)
    if (kind, streams, budget) == (TARGET_KIND, TARGET_STREAMS, 5.0):
        target = f"target {1e3 * TARGET_SECONDS:g} ms, {TARGET_MB:,.0f} MB"
        row["remark"] = f"{target} (processor: {milliseconds(row['processor_s'])} ms)"
    return [row]


def tables(rows: Sequence[Row]) -> list[Table]:
    """Every point, and the same as one line a covariance."""
    points = Table("scaling", "3. All points", _POINT_COLUMNS, rows, on_screen=False)
    return [_wide(rows, "median_s"), _wide(rows, "peak_mb"), points]


_POINT_COLUMNS = [
    Column("covariance", "covariance", right=False),
    Column("limit", "L1 limit", right=False),
    Column("streams", "K", thousands),
    Column("build_s", "build, ms", milliseconds),
    Column("first_s", "first step, ms", milliseconds),
    Column("median_s", "median step, ms", milliseconds),
    Column("processor_s", "median processor time, ms", milliseconds),
    Column("timed_steps", "steps timed"),
    Column("peak_mb", "peak MB", three_digits),
    Column("import_mb", "after import, MB", three_digits),
    Column("remark", "remark", right=False),
]


def _wide(rows: Sequence[Row], key: str) -> Table:
    """One line a covariance, one column a K."""
    lines: dict[tuple[str, str], Row] = {}
    for row in rows:
        name = (row["covariance"], row["limit"])
        line = lines.setdefault(name, {"covariance": name[0], "limit": name[1]})
        line[str(row["streams"])] = row.get(key)
        if row.get("remark"):
            line["remark"] = f"at {row['streams']:,}: {row['remark']}"
    show = milliseconds if key == "median_s" else three_digits
    sizes = sorted({row["streams"] for row in rows})
    columns = [
        *_POINT_COLUMNS[:2],
        *(Column(str(K), f"{K:,}", show) for K in sizes),
        _POINT_COLUMNS[-1],
    ]
    if key == "median_s":
        note = "Shift 3, n = 5, budget 5 (free) or 0.5 (binds). The first step is not in the median."
        return Table("scaling_time", "3a. Median step against K, ms", columns, list(lines.values()), [note])
    imported = min((row["import_mb"] for row in rows if "import_mb" in row), default=0.0)
    note = (
        "Peak resident memory of a fresh process that builds the problem and steps; "
        f"Python with eccaht imported takes {imported:.0f} MB of it."
    )
    return Table("scaling_memory", "3b. Peak memory against K, MB", columns, list(lines.values()), [note])
