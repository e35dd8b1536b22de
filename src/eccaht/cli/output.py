"""Where commands write, and how they show that they are at work."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def writable_directory(path: Path, option: str = "--out") -> Path:
    """Return the directory, made if need be, after proving that a file can be written there."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{option} {path} is a file: give a directory")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):  # permissions alone do not tell: the disk may be read-only or full
            return path
    except OSError as error:
        raise ValueError(f"cannot write to {option} {path}: {error.strerror}; give another directory") from None


@contextmanager
def counting(total: int, what: str) -> Iterator[Callable[[int], object]]:
    """A bar on a terminal, to be told how many more are done; nothing where standard error goes to a file."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(f"{what}, time left"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda finished: bar.advance(task, finished)
