"""`python -m benchmarks`: run the parts, print the tables, write CSV, Markdown and figures."""

from __future__ import annotations

import argparse
import json
import time
from importlib import import_module
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from benchmarks import machine
from benchmarks.jobs import Job, Row
from benchmarks.tables import Table
from eccaht.base.files import replacing

PARTS = ("steps", "designs", "scaling", "calibration", "joint", "loops")
# only if asked for
LONG = (
    "confidence",
    "checks",
    "watch",
    "watch-noise",
    "fleet",
    "live",
    "live-faults",
    "wide",
    "identification",
    "optimality",
    "limits",
    "revision",
)
TIMED = ("live", "live-faults")  # run for --duration
COUNTED = ("confidence",)  # as many --searches a line
FIGURES = ("steps", "scaling")


def main() -> None:
    """Read the options and run."""
    options = _options()
    if options.threads:
        machine.limit_threads(options.threads)
    console = Console()
    if not console.is_terminal:
        console.width = 150  # the tables of part 2 are wide
    options.out.mkdir(parents=True, exist_ok=True)
    start, sections = time.perf_counter(), [_heading(options)]
    for name in options.only or PARTS:
        rows, tables = _run(name, options, console)
        sections += _write(name, rows, tables, options.out)
        for table in tables:
            if table.on_screen:
                console.print(table.rich())
                console.print(*(f"  {note}" for note in table.notes), sep="\n", style="dim", highlight=False)
        _write_text(options.out / "bench.md", "\n".join(sections))
    taken = time.perf_counter() - start
    console.print(f"{taken:.0f} s; tables and figures are in {options.out}/", highlight=False)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("bench"), help="folder for what is written (bench)")
    parser.add_argument("--quick", action="store_true", help="few repeats and small sizes: does it all work?")
    parser.add_argument("--only", nargs="+", choices=(*PARTS, *LONG), help="some of the parts; bench.md is about these")
    parser.add_argument("--duration", type=float, help="seconds that the service is kept under load (600; quick: 20)")
    parser.add_argument("--searches", type=int, help="searches of a line of confidence (400; quick: 4)")
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help="threads of the linear algebra, for all sides (1); 0: as it chooses",
    )
    return parser.parse_args()


def _run(name: str, options: argparse.Namespace, console: Console) -> tuple[list[Row], list[Table]]:
    """Run the jobs of one part under a progress bar; a long part goes on where an earlier run was interrupted."""
    part = _module(name)
    more = [options.duration] if name in TIMED else [options.searches] if name in COUNTED else []
    jobs: list[Job] = part.jobs(options.quick, *more)
    kept = options.out / f"{name}{'-quick' if options.quick else ''}.json" if name in LONG else None
    done: dict[str, list[Row]] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    rows: list[Row] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task(name, total=len(jobs))
        for job in jobs:
            progress.update(task, description=job.label)
            if job.label not in done:
                done[job.label] = job.run()
                if kept:
                    _write_text(kept, json.dumps(done))
            rows += done[job.label]
            progress.advance(task)
    source = _module("design_tables") if name == "designs" else part
    tables: list[Table] = source.tables(rows)
    return rows, tables


def _module(name: str) -> ModuleType:
    """Import late: numpy must find the number of threads settled."""
    return import_module(f"benchmarks.{name.replace('-', '_')}")


def _heading(options: argparse.Namespace) -> str:
    kind = "quick run: too few repeats to quote" if options.quick else "full run"
    facts = [f"- {line}" for line in (*machine.description(), kind)]
    return "\n".join(["# Benchmarks of eccaht", "", *facts, ""])


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())


def _write(name: str, rows: list[Row], tables: list[Table], out: Path) -> list[str]:
    """Write CSV files and the figure of a part; return its sections of the report."""
    for table in tables:
        _write_text(out / f"{table.name}.csv", table.csv())
    sections = [table.markdown() for table in tables if table.on_screen]
    if name in FIGURES:
        figures = _module("figures")
        figures.save(getattr(figures, f"draw_{name}")(rows), out, name)
        sections.append(f"![{name}]({name}.png)\n")
    return sections


if __name__ == "__main__":
    main()
