"""Where commands write, and how they show that they are at work."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import typer

from eccaht.files import NotWritten, destination

PLOTS = (".png", ".pdf", ".svg")
_NONE: Mapping[str, Any] = MappingProxyType({})

Inputs = Mapping[str, Iterable[Path | None] | Path | None]  # by option or argument


def check_outputs(
    outputs: Mapping[str, Path | None],
    inputs: Inputs = _NONE,
    endings: Mapping[str, Sequence[str]] = _NONE,
) -> None:
    """Refuse, before any work, a file that cannot be written or that would cost another one, each by its option."""
    wanted = [(option, path) for option, path in outputs.items() if path is not None]
    for option, path in wanted:
        if option in endings and path.suffix not in endings[option]:
            raise ValueError(f"{option} {path} must end in {' or '.join(endings[option])}")
        _check_place(option, path)
    _check_distinct(wanted, inputs)


def writable_directory(
    path: Path,
    option: str = "--out",
    files: Iterable[str] = (),
    inputs: Inputs = _NONE,
) -> Path:
    """Return the directory, made if need be, after proving that a file, and each of these files, can be written."""
    if path.exists() and not path.is_dir():
        raise ValueError(f"{option} {path} is a file: give a directory")
    inside = [path / name for name in files]
    for file in inside:
        destination(file)
    _check_distinct([(option, file) for file in inside], inputs)
    try:
        path.mkdir(parents=True, exist_ok=True)
        _prove_writable(path)
    except OSError as error:
        raise ValueError(f"cannot write to {option} {path}: {error.strerror}; give another directory") from None
    return path


def _check_place(option: str, path: Path) -> None:
    if path.suffix in PLOTS:
        find_spec("matplotlib")  # if it is missing, that is said before the work starts
    try:
        target = destination(path)
    except ValueError as error:
        raise ValueError(f"{option} {error}") from None
    if not target.parent.is_dir():
        lacking = f"there is no directory {target.parent}"
        raise ValueError(f"cannot write {option} {path}: {lacking}, give a file in a directory that exists")
    try:
        _prove_writable(target.parent)
    except OSError as error:
        raise ValueError(f"cannot write {option} {path}: {error.strerror}; give another place") from None


def _prove_writable(directory: Path) -> None:
    with tempfile.TemporaryFile(dir=directory):  # permissions alone do not tell: the disk may be read-only or full
        pass


def _check_distinct(outputs: Iterable[tuple[str, Path]], inputs: Inputs) -> None:
    """No output is an input, another output, or the file that standard output or standard error goes to."""
    several = {option: [given] if isinstance(given, Path) else given or () for option, given in inputs.items()}
    seen = [(option, path) for option, paths in several.items() for path in paths if path is not None]
    for option, path in outputs:
        for other, taken in seen:
            if same_file(path, taken):
                raise ValueError(f"{option} {path} would overwrite {other} {taken}: give another file")
        for number, name in ((1, "standard output"), (2, "standard error")):
            with suppress(OSError):
                if os.path.samestat(os.fstat(number), path.stat()):
                    raise ValueError(f"{option} {path} is where {name} goes: give another file")
        seen.append((option, path))


def same_file(one: Path, other: Path) -> bool:
    """Do two names mean one file, through links of either kind?"""
    try:
        return one.samefile(other)
    except OSError:  # one is not there
        return os.path.realpath(one) == os.path.realpath(other)


def deliver(
    writes: Iterable[Iterator[Path]],
    *,
    tell: Callable[[], object],
    document: Callable[[list[str]], Mapping[str, Any]] | None,
) -> None:
    """Print what was found, then write the files, so that a full disk costs nothing but the files.

    writes: each names its files as it writes them. tell: prints. document: makes what is printed as JSON instead, from
    the names of the files that were written.
    """
    unprinted: OSError | None = None  # standard output may be closed or full: the files are written all the same
    if document is None:
        try:
            tell()
            sys.stdout.flush()
        except OSError as error:
            unprinted = error
    files: list[str] = []
    failures: list[OSError] = []
    for write in writes:
        try:
            for path in write:
                files.append(str(path))
        except OSError as error:
            failures.append(error)
    if document is not None:
        typer.echo(json.dumps(document(files), allow_nan=False))
    elif files and unprinted is None:
        typer.echo(f"Saved {', '.join(files)}")
    if unprinted is not None and not failures:
        raise unprinted
    if failures:
        names = ", ".join(str(error.filename) for error in failures)
        raise NotWritten(failures[0].errno, failures[0].strerror or str(failures[0]), names)


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
