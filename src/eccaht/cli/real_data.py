"""What `eccaht wadi`, `eccaht water` and `eccaht smd` have in common."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import typer

from eccaht.cli.output import Inputs, writable_directory

if TYPE_CHECKING:
    from eccaht.statistics import Delay, Estimate

Lines = list[list[str]]


@contextmanager
def output_directory(path: Path, files: Sequence[str], inputs: Inputs = MappingProxyType({})) -> Iterator[Path]:
    """Yield the directory, proved to take these files; if the work fails, directories made for it go if empty."""
    made = [place for place in (path, *path.parents) if not place.exists()]
    try:
        yield writable_directory(path, files=files, inputs=inputs)
    except BaseException:
        for place in made:
            try:
                place.rmdir()
            except OSError:  # never made, or not empty
                break
        raise


class Progress:
    """A bar on a terminal with the stage beside it; silent where standard error goes to a file."""

    def __init__(self, update: Callable[..., object] | None = None) -> None:
        self._update = update

    def stage(self, name: str) -> None:
        """Say what is done now."""
        if self._update is not None:
            self._update(description=name)

    def total(self, searches: int) -> None:
        """Begin to count searches."""
        if self._update is not None:
            self._update(total=searches, completed=0, description="searches")

    def advance(self, finished: int) -> None:
        """Count finished searches."""
        if self._update is not None:
            self._update(advance=finished)


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """A bar on a terminal; nothing where standard error goes to a file."""
    if not sys.stderr.isatty():
        yield Progress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)
        yield Progress(lambda **now: bar.update(task, **now))


def chosen_policies(policies: str | None, default: Sequence[str]) -> tuple[str, ...]:
    """The names that were given with commas between, or the default ones."""
    return tuple(default) if policies is None else tuple(name.strip() for name in policies.split(","))


def show_lines(lines: Lines) -> None:
    """Print a table in columns."""
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    for line in lines:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def show_delay(value: Delay) -> str:
    """Mean, interval and how many were cut off; >= where the mean is a lower bound."""
    censored = f" {value.censored}/{len(value.times)} never" if value.censored else ""
    return f"{'>=' * bool(censored)}{show_mean(value)}{censored}"


def show_mean(value: Delay | Estimate, places: int | None = None) -> str:
    """Mean and interval, with one decimal place below 100 and none above if `places` does not say."""
    mean, *ends = (
        _rounded(x, int(abs(x) < 100) if places is None else places) for x in (value.mean, *(value.interval or ()))
    )
    return mean + (f" [{', '.join(ends)}]" if ends else "")


def _rounded(x: float, places: int) -> str:
    return f"{round(x, places) + 0.0:.{places}f}"  # never -0.0
